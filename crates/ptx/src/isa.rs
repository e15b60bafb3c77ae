//! Definitions of instructions that compute a result from registers, including comparisons and
//! conversions.
//!
//! A [`Definition`] is the only description of its instruction: the parser finds it by its name,
//! the front end checks the operands and suffixes against its forms, and the lowering selects the
//! handler of the form. Other instructions are rows of the table of opcodes, with methods for each
//! of these:
//!
//! - `mov`, whose operands are also special registers, addresses of variables and functions, and
//!   vectors that are packed or unpacked;
//! - loads, stores and atomics, whose suffixes depend on the state space, the order and the scope,
//!   and which are lowered to several ops: checks, and one op for each element;
//! - video instructions, whose operands have selectors of bytes and halves, and whose types combine
//!   freely. One interpreter of their parameters computes all of them;
//! - control flow, and instructions of whole warps and blocks.

mod arithmetic;
mod bits;
mod comparison;
mod conversion;
mod extremes;
mod functions;
mod logic;
mod selection;

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::LazyLock;

use crate::exec::check::undefined::Propagation;
use crate::exec::machine::op::{Handler, Operation as Step};
use crate::syntax::{Compare, ScalarType};

/// The definitions, by family.
const FAMILIES: &[&[Definition]] = &[
    arithmetic::DEFINITIONS,
    bits::DEFINITIONS,
    comparison::DEFINITIONS,
    conversion::DEFINITIONS,
    extremes::DEFINITIONS,
    functions::DEFINITIONS,
    logic::DEFINITIONS,
    selection::DEFINITIONS,
];

/// Every definition by its name.
static BY_NAME: LazyLock<HashMap<&'static str, &'static Definition>> = LazyLock::new(|| {
    Definition::all()
        .map(|definition| (definition.name, definition))
        .collect()
});

/// An instruction that computes a result from registers and immediates.
#[derive(Debug)]
pub(crate) struct Definition {
    /// The spelling without suffixes.
    pub(crate) name: &'static str,
    /// The versions of the ISA and the architectures that its forms require, as
    /// `syntax::validate::since` reads them.
    pub(crate) requires: &'static [&'static str],
    /// The forms. An instruction has the first form that its types and suffixes fit.
    pub(crate) forms: &'static [Form],
}

/// Operands and suffixes that an instruction may have, and the computation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    /// The operands, separated by spaces. The result is the first.
    ///
    /// `t` and `u` have the first and the second type; the registers of `t+` and `u+` may be wider.
    /// `n` has the second type and is converted to the first, `u4` is a vector of four of the
    /// second, `w` has twice the width of the first, `x` has 32 bits, `r` is an integer of 32 bits,
    /// `b` is one that is below 256 if it is a constant, `i` is an integer constant and `p` a
    /// predicate, of which the handler also receives the negation. A result `_t` may be discarded,
    /// `_t|p` is followed by a predicate, and `p|p` is one or two predicates.
    ///
    /// The last source of the handler may be no operand of the instruction: `m` is the rounding,
    /// flushing and saturation, and `c` describes a conversion.
    pub(crate) operands: &'static str,
    /// The suffixes, as in the ISA manual: `{.ftz}` may be absent, `.and|or` is one of two, `.rnd`
    /// is one of `.rn`, `.rz`, `.rm` and `.rp`, and `.irnd` one of `.rni`, `.rzi`, `.rmi` and
    /// `.rpi`. Spaces separate alternatives. Their order in the instruction is irrelevant.
    pub(crate) suffixes: &'static str,
    /// The types. Spaces separate alternatives, and `f16|f32.s32` is `f16.s32 f32.s32`.
    pub(crate) types: &'static str,
    pub(crate) run: Run,
    /// The propagation of undefined bytes.
    pub(crate) undefined: Propagation,
    /// `true` if the result is defined if both sources are the same register, whatever it contains.
    pub(crate) cancels: bool,
    /// The step of a superinstruction that does the same.
    pub(crate) step: Option<Step>,
}

/// The execution of a form.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Run {
    /// A handler whose operands are those of the form.
    Handler(fn() -> Handler),
    /// Such a handler for each of the first types.
    Typed(fn(ScalarType) -> Option<Handler>),
    /// Such a handler for each pair of types.
    Converting(fn(ScalarType, ScalarType) -> Option<Handler>),
    /// Two handlers, of which the second has the next two elements of a vector, the other sources,
    /// and the result of the first.
    Quad(fn() -> [Handler; 2]),
    /// A handler of a comparison for each relation and type. The argument is `true` if it flushes
    /// subnormals. Packed numbers are compared one by one.
    Comparison(fn(Compare, ScalarType, bool) -> Option<Handler>),
    /// Arithmetic with the carry flag.
    Extended(Extended),
    /// A handler of a comparison, whose result is a predicate.
    Test(fn() -> Handler),
    /// Logic of predicates.
    Predicates(PredicateLogic),
    /// `lop3` with a predicate that is set if the result is not zero.
    TestedTable,
}

/// Integer arithmetic with the carry flag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extended {
    /// One of the operations of `exec::ops::extended`.
    pub(crate) operation: u8,
    /// Flags that state if it reads and writes the carry.
    pub(crate) flags: u64,
    pub(crate) saturates: bool,
}

/// An operation on predicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PredicateLogic {
    And,
    Or,
    Xor,
    Not,
}

impl Definition {
    /// Returns every definition.
    pub(crate) fn all() -> impl Iterator<Item = &'static Self> {
        FAMILIES.iter().copied().flatten()
    }

    /// Returns the definition of an instruction by its name.
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        BY_NAME.get(name).copied()
    }

    /// Returns `true` if the instruction compares its sources.
    pub(crate) fn compares(&self) -> bool {
        self.forms
            .iter()
            .any(|form| matches!(form.run, Run::Comparison(_)))
    }
}

impl PartialEq for Definition {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Definition {}

impl PartialOrd for Definition {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Definition {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name.cmp(other.name)
    }
}

impl Hash for Definition {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Display for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The kind of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperandKind {
    /// `t`
    First,
    /// `t+`
    WideFirst,
    /// `_t`
    Discardable,
    /// `_t|p`
    Tested,
    /// `p|p`
    Predicates,
    /// `u`
    Second,
    /// `u+`
    WideSecond,
    /// `u4`
    Four,
    /// `n`
    Narrow,
    /// `w`
    Wide,
    /// `x`
    Bits,
    /// `r`
    Word,
    /// `b`
    Byte,
    /// `i`
    Constant,
    /// `p`
    Predicate,
}

impl OperandKind {
    fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "t" => Self::First,
            "t+" => Self::WideFirst,
            "_t" => Self::Discardable,
            "_t|p" => Self::Tested,
            "p|p" => Self::Predicates,
            "u" => Self::Second,
            "u+" => Self::WideSecond,
            "u4" => Self::Four,
            "n" => Self::Narrow,
            "w" => Self::Wide,
            "x" => Self::Bits,
            "r" => Self::Word,
            "b" => Self::Byte,
            "i" => Self::Constant,
            "p" => Self::Predicate,
            _ => return None,
        })
    }

    /// Returns the type of the operand in an instruction with these types.
    pub(crate) fn scalar(self, first: ScalarType, second: Option<ScalarType>) -> ScalarType {
        match self {
            Self::First | Self::WideFirst | Self::Discardable | Self::Tested => first,
            Self::Second | Self::WideSecond | Self::Four | Self::Narrow => second.unwrap_or(first),
            Self::Wide => widened(first).unwrap_or(first),
            Self::Bits => ScalarType::B32,
            Self::Word | Self::Byte | Self::Constant => ScalarType::U32,
            Self::Predicate | Self::Predicates => ScalarType::Pred,
        }
    }

    /// Returns `true` if a register may be wider than the type.
    pub(crate) fn may_be_wider(self) -> bool {
        matches!(self, Self::WideFirst | Self::WideSecond)
    }
}

impl Form {
    /// Returns the kinds of the operands.
    pub(crate) fn operand_kinds(&self) -> impl Iterator<Item = OperandKind> {
        self.operands.split(' ').filter_map(OperandKind::parse)
    }

    /// Returns `true` if the handler receives the rounding, flushing and saturation.
    pub(crate) fn has_mode(&self) -> bool {
        self.operands.ends_with('m')
    }

    /// Returns `true` if the handler receives the description of a conversion.
    pub(crate) fn has_conversion(&self) -> bool {
        self.operands.ends_with('c')
    }

    /// Sets the propagation of undefined bytes, which is [`Propagation::All`] otherwise.
    const fn undefined(mut self, undefined: Propagation) -> Self {
        self.undefined = undefined;
        self
    }

    /// Sets the step of a superinstruction that does the same.
    const fn step(mut self, step: Step) -> Self {
        self.step = Some(step);
        self
    }

    /// Declares that equal sources have a defined result.
    const fn cancels(mut self) -> Self {
        self.cancels = true;
        self
    }
}

/// Returns the type of twice the width.
fn widened(scalar: ScalarType) -> Option<ScalarType> {
    Some(match scalar {
        ScalarType::U16 => ScalarType::U32,
        ScalarType::S16 => ScalarType::S32,
        ScalarType::U32 => ScalarType::U64,
        ScalarType::S32 => ScalarType::S64,
        _ => return None,
    })
}

/// Creates a form with one handler.
const fn form(
    operands: &'static str,
    suffixes: &'static str,
    types: &'static str,
    handler: fn() -> Handler,
) -> Form {
    with_run(operands, suffixes, types, Run::Handler(handler))
}

/// Creates a form with a handler for each type.
const fn typed(
    operands: &'static str,
    suffixes: &'static str,
    types: &'static str,
    handler: fn(ScalarType) -> Option<Handler>,
) -> Form {
    with_run(operands, suffixes, types, Run::Typed(handler))
}

const fn with_run(
    operands: &'static str,
    suffixes: &'static str,
    types: &'static str,
    run: Run,
) -> Form {
    Form {
        operands,
        suffixes,
        types,
        run,
        undefined: Propagation::All,
        cancels: false,
        step: None,
    }
}

/// Creates a form of arithmetic with the carry flag.
const fn extended(
    operands: &'static str,
    suffixes: &'static str,
    types: &'static str,
    operation: u8,
    flags: u64,
) -> Form {
    let extended = Extended {
        operation,
        flags,
        saturates: false,
    };
    with_run(operands, suffixes, types, Run::Extended(extended))
}

/// Creates a form of arithmetic with the carry flag, whose result saturates.
const fn saturating(
    operands: &'static str,
    suffixes: &'static str,
    types: &'static str,
    operation: u8,
    flags: u64,
) -> Form {
    let extended = Extended {
        operation,
        flags,
        saturates: true,
    };
    with_run(operands, suffixes, types, Run::Extended(extended))
}

/// Selects a handler by integer type. `T` stands for the type in the body.
macro_rules! by_type {
    ($t:ident => $body:expr) => {
        |scalar| match scalar {
            ScalarType::U16 => {
                type $t = u16;
                Some($body)
            }
            ScalarType::S16 => {
                type $t = i16;
                Some($body)
            }
            ScalarType::U32 => {
                type $t = u32;
                Some($body)
            }
            ScalarType::S32 => {
                type $t = i32;
                Some($body)
            }
            ScalarType::U64 => {
                type $t = u64;
                Some($body)
            }
            ScalarType::S64 => {
                type $t = i64;
                Some($body)
            }
            _ => None,
        }
    };
}

/// Selects a handler by width.
macro_rules! by_width {
    ($t:ident => $body:expr) => {
        |scalar| match scalar.bits() {
            16 => {
                type $t = u16;
                Some($body)
            }
            32 => {
                type $t = u32;
                Some($body)
            }
            64 => {
                type $t = u64;
                Some($body)
            }
            _ => None,
        }
    };
}

/// Selects a handler by floating-point type. `T` stands for the type in the body.
macro_rules! by_real {
    ($t:ident => $body:expr) => {
        |scalar| match scalar {
            ScalarType::F16 => {
                type $t = Half;
                Some($body)
            }
            ScalarType::Bf16 => {
                type $t = Bfloat;
                Some($body)
            }
            ScalarType::F32 => {
                type $t = f32;
                Some($body)
            }
            ScalarType::F64 => {
                type $t = f64;
                Some($body)
            }
            _ => None,
        }
    };
}

/// Selects a handler by the type of two floating-point numbers. `T` stands for the pair in the
/// body.
macro_rules! by_pair {
    ($t:ident => $body:expr) => {
        |scalar| match scalar {
            ScalarType::F16x2 => {
                type $t = Pair<Half>;
                Some($body)
            }
            ScalarType::Bf16x2 => {
                type $t = Pair<Bfloat>;
                Some($body)
            }
            _ => None,
        }
    };
}

use by_pair;
use by_real;
use by_type;
use by_width;

/// The types of integer arithmetic.
const INTEGERS: &str = "u16 s16 u32 s32 u64 s64";

/// The types of integer arithmetic with a carry.
const CARRIED: &str = "u32 s32 u64 s64";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique() {
        let names: BTreeSet<_> = Definition::all()
            .map(|definition| definition.name)
            .collect();
        assert_eq!(names.len(), Definition::all().count());
    }
}
