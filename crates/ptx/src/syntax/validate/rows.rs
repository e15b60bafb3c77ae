//! Instructions whose forms are rows of a table.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::{Context, Width, alternatives, type_list};
use crate::isa::{self, Definition};
use crate::syntax::ast::Instruction;
use crate::syntax::error::Error;
use crate::syntax::modifier::Modifier;
use crate::syntax::opcode::Opcode;
use crate::syntax::operand::Operand;
use crate::syntax::scalar::ScalarType;

const INTEGERS: &str = "u16 s16 u32 s32 u64 s64";
const CARRIED: &str = "u32 s32 u64 s64";
const SELECTED: &str =
    "b16.s32 u16.s32 s16.s32 b32.s32 u32.s32 s32.s32 b64.s32 u64.s32 s64.s32 f32.s32 f64.s32";
const SELECTED_BY_FLOAT: &str =
    "b16.f32 u16.f32 s16.f32 b32.f32 u32.f32 s32.f32 b64.f32 u64.f32 s64.f32 f32.f32 f64.f32";

/// The opcodes, the operands, and the suffixes with their types. An instruction has the form of exactly one row.
///
/// The destination is the first operand. `t` and `u` have the first and the second type, `r` is an integer of 32 bits, `b` is one that is
/// below 256 if it is a constant, `i` is an integer constant and `p` a predicate. A result `_t` may be discarded, and `_t|p` is followed
/// by a predicate.
///
/// Suffixes are written as in the ISA manual: `{.ftz}` may be absent, and `.rnd` is one of `.rn`, `.rz`, `.rm` and `.rp`. Spaces separate
/// alternatives. Their order in the instruction is irrelevant.
type Row = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

const ROWS: &[Row] = &[
    (
        "abs neg",
        "t t",
        &[
            ("", "s16 s32 s64 f16 f16x2 bf16 bf16x2 f32 f64"),
            (".ftz", "f16 f16x2 f32"),
        ],
    ),
    (
        "addc subc",
        "t t t",
        &[("", INTEGERS), (".cc", CARRIED), (".sat", "s32")],
    ),
    ("copysign", "t t t", &[("", "f32 f64")]),
    ("cos lg2 sin", "t t", &[(".approx{.ftz}", "f32")]),
    (
        "div",
        "t t t",
        &[
            ("", INTEGERS),
            (".approx{.ftz} .full{.ftz} .rnd{.ftz}", "f32"),
            (".rnd", "f64"),
        ],
    ),
    (
        "ex2",
        "t t",
        &[
            (".approx{.ftz}", "f32"),
            (".approx", "f16 f16x2"),
            (".approx.ftz", "bf16 bf16x2"),
        ],
    ),
    (
        "madc",
        "t t t t",
        &[
            (".lo .hi", INTEGERS),
            (".lo.cc .hi.cc", CARRIED),
            (".hi.sat", "s32"),
        ],
    ),
    (
        "rcp",
        "t t",
        &[
            (".approx{.ftz} .rnd{.ftz}", "f32"),
            (".approx.ftz .rnd{.ftz}", "f64"),
        ],
    ),
    ("rsqrt", "t t", &[(".approx{.ftz}", "f32 f64")]),
    (
        "slct",
        "t t t u",
        &[("", SELECTED), ("{.ftz}", SELECTED_BY_FLOAT)],
    ),
    (
        "sqrt",
        "t t",
        &[(".approx{.ftz} .rnd{.ftz}", "f32"), (".rnd", "f64")],
    ),
    ("tanh", "t t", &[(".approx", "f16 f16x2 bf16 bf16x2 f32")]),
    (
        "testp",
        "p t",
        &[(
            ".finite .infinite .normal .notanumber .number .subnormal",
            "f32 f64",
        )],
    ),
];

/// The forms of each opcode in the table.
static FORMS: LazyLock<HashMap<Opcode, Vec<Form>>> = LazyLock::new(|| {
    let mut forms: HashMap<Opcode, Vec<Form>> = HashMap::new();
    for (opcodes, operands, alternatives) in ROWS {
        for opcode in opcodes.split(' ').filter_map(Opcode::from_name) {
            forms.entry(opcode).or_default().extend(
                parse_row(opcode, operands, alternatives)
                    .into_iter()
                    .flatten(),
            );
        }
    }
    for definition in Definition::all() {
        let opcode = Opcode::Defined(definition);
        let parsed = definition.forms.iter().filter_map(|form| {
            let row = parse_row(opcode, form.operands, &[(form.suffixes, form.types)])?;
            Some(row.into_iter().map(|parsed| Form {
                definition: Some(form),
                ..parsed
            }))
        });
        forms.insert(opcode, parsed.flatten().collect());
    }
    forms
});

/// Suffixes with the types that they apply to.
struct Form {
    /// The operands as in the table.
    operands: &'static str,
    /// The suffixes as in the table.
    text: &'static str,
    suffixes: Vec<Suffix>,
    types: Vec<Vec<ScalarType>>,
    definition: Option<&'static isa::Form>,
}

struct Suffix {
    /// The spellings, of which an instruction has one.
    alternatives: Vec<Modifier>,
    is_optional: bool,
}

/// Returns the forms of a row, or `None` if the row is invalid.
fn parse_row(
    opcode: Opcode,
    operands: &'static str,
    alternatives: &[(&'static str, &'static str)],
) -> Option<Vec<Form>> {
    let mut forms = Vec::new();
    for (texts, types) in alternatives {
        let types = parse_types(types)?;
        for text in texts.split(' ') {
            forms.push(Form {
                operands,
                text,
                suffixes: parse_suffixes(text, opcode)?,
                types: types.clone(),
                definition: None,
            });
        }
    }
    Some(forms)
}

/// Returns the alternative lists of types, such as `f32.s32 f64.s32`.
fn parse_types(text: &str) -> Option<Vec<Vec<ScalarType>>> {
    if text.is_empty() {
        return Some(vec![Vec::new()]);
    }
    text.split(' ')
        .map(|names| names.split('.').map(ScalarType::from_name).collect())
        .collect()
}

fn parse_suffixes(text: &str, opcode: Opcode) -> Option<Vec<Suffix>> {
    let mut suffixes = Vec::new();
    for word in text.split('.').skip(1) {
        let name = word.trim_end_matches(['{', '}']);
        let names: &[&str] = if name == "rnd" {
            &["rn", "rz", "rm", "rp"]
        } else {
            &[name]
        };
        let alternatives = names
            .iter()
            .map(|name| Modifier::parse(name, opcode))
            .collect::<Option<_>>()?;
        suffixes.push(Suffix {
            alternatives,
            is_optional: word.contains('}'),
        });
    }
    Some(suffixes)
}

impl Form {
    /// Returns `true` if these are the suffixes of the form.
    fn has(&self, modifiers: &[Modifier]) -> bool {
        let mut matched = 0;
        for suffix in &self.suffixes {
            let count = modifiers
                .iter()
                .filter(|modifier| suffix.alternatives.contains(modifier))
                .count();
            if count > 1 || count == 0 && !suffix.is_optional {
                return false;
            }
            matched += count;
        }
        matched == modifiers.len()
    }
}

impl Instruction {
    /// Returns the form of an instruction that has a definition.
    pub(crate) fn form(&self) -> Option<&'static isa::Form> {
        let types: Vec<ScalarType> = self.types().collect();
        let suffixes = self.suffixes();
        FORMS
            .get(&self.opcode)?
            .iter()
            .find(|form| form.types.contains(&types) && form.has(&suffixes))?
            .definition
    }

    /// Returns the modifiers that are not types.
    fn suffixes(&self) -> Vec<Modifier> {
        self.modifiers
            .iter()
            .filter(|modifier| !matches!(modifier, Modifier::Type(_)))
            .copied()
            .collect()
    }
}

impl Context<'_> {
    /// Checks an instruction whose forms are in the table.
    pub(super) fn row(&self) -> Result<(), Error> {
        let forms = FORMS
            .get(&self.instruction.opcode)
            .map_or(&[][..], Vec::as_slice);
        let types: Vec<ScalarType> = self.instruction.types().collect();
        let candidates: Vec<&Form> = forms
            .iter()
            .filter(|form| form.types.contains(&types))
            .collect();
        if candidates.is_empty() {
            return Err(self.unsupported_types(forms, &types));
        }
        let suffixes = self.instruction.suffixes();
        match candidates.iter().find(|form| form.has(&suffixes)) {
            Some(form) => self.row_operands(form.operands, &types),
            None => Err(self.unsupported_suffixes(&candidates, &types)),
        }
    }

    fn unsupported_types(&self, forms: &[Form], types: &[ScalarType]) -> Error {
        let mut first_types: Vec<ScalarType> = Vec::new();
        for scalar in forms
            .iter()
            .flat_map(|form| &form.types)
            .filter_map(|types| types.first())
        {
            if !first_types.contains(scalar) {
                first_types.push(*scalar);
            }
        }
        match self.member(types.first().copied(), &first_types) {
            Ok(_) => self.error(format!(
                "unsupported combination of types ({})",
                type_list(types)
            )),
            Err(error) => error,
        }
    }

    fn unsupported_suffixes(&self, forms: &[&Form], types: &[ScalarType]) -> Error {
        let types: String = types
            .iter()
            .map(|scalar| format!(".{}", scalar.name()))
            .collect();
        let opcode = self.instruction.opcode;
        let expected = alternatives(
            forms
                .iter()
                .map(|form| format!("'{opcode}{}{types}'", form.text)),
        );
        self.error(format!("unsupported suffixes (expected {expected})"))
    }

    fn row_operands(&self, operands: &str, types: &[ScalarType]) -> Result<(), Error> {
        let count = operands.split_whitespace().count();
        self.count(count..=count)?;
        for (index, word) in operands.split_whitespace().enumerate() {
            let scalar = match word.trim_start_matches('_') {
                "b" if matches!(self.operand(index), Operand::Integer(integer) if integer.bits > 255) =>
                {
                    return Err(self.operand_error(index, "a number from 0 to 255"));
                }
                "r" | "b" => ScalarType::U32,
                "p" => ScalarType::Pred,
                "u" => types[1],
                "i" if matches!(self.operand(index), Operand::Integer(_)) => continue,
                "i" => return Err(self.operand_error(index, "an integer constant")),
                "t|p" => {
                    self.pair(index, types[0])?;
                    continue;
                }
                _ => types[0],
            };
            match self.operand(index) {
                Operand::Sink if word.starts_with('_') => {}
                _ if index == 0 => self.destination(index, scalar, Width::Exact)?,
                _ => self.source(index, scalar, Width::Exact)?,
            }
        }
        Ok(())
    }

    /// Checks a result, which may be discarded, with a predicate.
    fn pair(&self, index: usize, scalar: ScalarType) -> Result<(), Error> {
        match self.operand(index) {
            Operand::Pair(first, Some(_))
                if first.is_none_or(|id| self.register_fits(id, scalar, Width::Exact)) =>
            {
                Ok(())
            }
            _ => Err(self.operand_error(
                index,
                format!("a register for .{} and a predicate", scalar.name()),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_valid() {
        for (opcodes, operands, alternatives) in ROWS {
            for name in opcodes.split(' ') {
                let opcode = Opcode::from_name(name).unwrap_or_else(|| panic!("{name}"));
                assert!(
                    parse_row(opcode, operands, alternatives).is_some(),
                    "{name}"
                );
            }
        }
        for definition in Definition::all() {
            let opcode = Opcode::Defined(definition);
            for form in definition.forms {
                let row = [(form.suffixes, form.types)];
                assert!(
                    parse_row(opcode, form.operands, &row).is_some(),
                    "{definition} {form:?}"
                );
            }
        }
        assert!(parse_row(Opcode::Abs, "t t", &[(".frobnicate", "f32")]).is_none());
        assert!(parse_row(Opcode::Abs, "t t", &[("", "f33")]).is_none());
    }
}
