//! Panics. A call of a function of `core` that panics becomes a trap, or a call of `__assertfail`
//! with message and source line.
//!
//! Formatting a message would take hundreds of kilobytes of PTX, so a message is printed only if it
//! is a literal; otherwise the message names the kind of panic.

use std::collections::HashSet;

use crate::ir::{Instruction, Token, lex};

/// The effect of a panic in a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Panics {
    /// Prints the message, the source line and the thread, as `assert` of CUDA C++ does, and ends
    /// the launch with an error.
    #[default]
    Message,
    /// Ends the launch with an error. Kernels need fewer registers.
    Trap,
}

/// The panic of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PanicKind {
    /// The message if the panic has no literal.
    pub(crate) message: &'static str,
    /// `true` if the first two parameters of the function are an index and a length.
    pub(crate) has_index: bool,
}

/// Functions of `core` whose first two parameters are an index and the length that it exceeds.
const WITH_INDEX: &[&str] = &[
    "core::panicking::panic_bounds_check",
    "core::slice::index::slice_start_index_len_fail",
    "core::slice::index::slice_end_index_len_fail",
];

/// Functions of `core` and `alloc` that only panic, and the message if the panic has no literal.
const FUNCTIONS: &[(&str, &str)] = &[
    ("core::panicking::panic", "panicked"),
    ("core::panicking::panic_fmt", "panicked"),
    ("core::panicking::panic_display", "panicked"),
    ("core::panicking::panic_explicit", "explicit panic"),
    ("core::panicking::panic_nounwind", "panicked"),
    ("core::panicking::panic_nounwind_fmt", "panicked"),
    ("core::panicking::panic_nounwind_nobacktrace", "panicked"),
    (
        "core::panicking::panic_cannot_unwind",
        "panicked in a function that cannot unwind",
    ),
    (
        "core::panicking::panic_in_cleanup",
        "panicked in a destructor during cleanup",
    ),
    ("core::panicking::const_panic_fmt", "panicked"),
    (
        "core::panicking::unreachable_display",
        "entered unreachable code",
    ),
    (
        "core::panicking::assert_failed_inner",
        "assertion failed: the operands of `assert_eq!` or `assert_ne!`",
    ),
    ("core::panicking::panic_bounds_check", "index out of bounds"),
    (
        "core::panicking::panic_misaligned_pointer_dereference",
        "misaligned pointer dereference",
    ),
    (
        "core::panicking::panic_null_pointer_dereference",
        "null pointer dereference",
    ),
    (
        "core::panicking::panic_invalid_enum_construction",
        "invalid value of an enum",
    ),
    (
        "core::panicking::panic_const::panic_const_add_overflow",
        "attempt to add with overflow",
    ),
    (
        "core::panicking::panic_const::panic_const_sub_overflow",
        "attempt to subtract with overflow",
    ),
    (
        "core::panicking::panic_const::panic_const_mul_overflow",
        "attempt to multiply with overflow",
    ),
    (
        "core::panicking::panic_const::panic_const_div_overflow",
        "attempt to divide with overflow",
    ),
    (
        "core::panicking::panic_const::panic_const_rem_overflow",
        "attempt to calculate the remainder with overflow",
    ),
    (
        "core::panicking::panic_const::panic_const_neg_overflow",
        "attempt to negate with overflow",
    ),
    (
        "core::panicking::panic_const::panic_const_shl_overflow",
        "attempt to shift left with overflow",
    ),
    (
        "core::panicking::panic_const::panic_const_shr_overflow",
        "attempt to shift right with overflow",
    ),
    (
        "core::panicking::panic_const::panic_const_div_by_zero",
        "attempt to divide by zero",
    ),
    (
        "core::panicking::panic_const::panic_const_rem_by_zero",
        "attempt to calculate the remainder with a divisor of zero",
    ),
    (
        "core::option::unwrap_failed",
        "called `Option::unwrap()` on a `None` value",
    ),
    (
        "core::option::expect_failed",
        "called `Option::expect()` on a `None` value",
    ),
    (
        "core::result::unwrap_failed",
        "called `Result::unwrap()` or `expect()` on an `Err` value",
    ),
    (
        "core::cell::panic_already_borrowed",
        "RefCell already borrowed",
    ),
    (
        "core::cell::panic_already_mutably_borrowed",
        "RefCell already mutably borrowed",
    ),
    (
        "core::slice::index::slice_index_fail",
        "slice index out of range",
    ),
    (
        "core::slice::index::slice_start_index_len_fail",
        "slice start out of range",
    ),
    (
        "core::slice::index::slice_end_index_len_fail",
        "slice end out of range",
    ),
    (
        "core::slice::index::slice_index_order_fail",
        "slice index starts after its end",
    ),
    (
        "core::slice::index::slice_start_index_overflow_fail",
        "slice start out of range",
    ),
    (
        "core::slice::index::slice_end_index_overflow_fail",
        "slice end out of range",
    ),
    (
        "core::slice::copy_from_slice_impl::len_mismatch_fail",
        "the slices have different lengths",
    ),
    (
        "<[_]>::copy_from_slice::len_mismatch_fail",
        "the slices have different lengths",
    ),
    ("core::str::slice_error_fail", "string index out of range"),
    (
        "alloc::alloc::handle_alloc_error",
        "memory allocation failed",
    ),
    ("alloc::raw_vec::handle_error", "memory allocation failed"),
    ("alloc::raw_vec::capacity_overflow", "capacity overflow"),
];

/// Returns the panic of a function that only panics. It must be of the real `core` or `alloc`:
/// `library_symbols` are the symbols that these libraries define.
pub(crate) fn kind(symbol: &str, library_symbols: &HashSet<String>) -> Option<PanicKind> {
    if !library_symbols.contains(symbol) {
        return None;
    }
    let path = format!("{:#}", rustc_demangle::demangle(symbol));
    FUNCTIONS
        .iter()
        .find(|(function, _)| *function == path)
        .map(|(function, message)| PanicKind {
            message,
            has_index: WITH_INDEX.contains(function),
        })
}

/// The operands of a call that panics.
pub(crate) struct Panic<'a> {
    /// The global and the length of a literal message.
    pub(crate) literal: Option<(&'a str, u64)>,
    /// The index and the length, as operands of LLVM IR, if the panic has them.
    pub(crate) index: Option<[&'a str; 2]>,
    /// The source location, as an operand of LLVM IR.
    pub(crate) location: Option<&'a str>,
}

impl<'a> Panic<'a> {
    /// Reads the operands of a call.
    pub(crate) fn parse(instruction: &Instruction<'a>, kind: PanicKind) -> Self {
        let call = instruction.call.iter();
        let values: Vec<Option<&'a str>> = call
            .flat_map(|call| &call.arguments)
            .map(|argument| value(argument))
            .collect();
        let pointer = |argument: &&'a str| argument.starts_with("ptr");
        let location = instruction.call.as_ref().and_then(|call| {
            let last = call.arguments.last().filter(|argument| pointer(argument))?;
            value(last)
        });
        let literal = match values[..] {
            [Some(text), Some(length), _] => {
                let global = text.strip_prefix('@');
                let length = literal_length(length);
                global.zip(length)
            }
            _ => None,
        };
        let index = match values[..] {
            [Some(index), Some(length), _] if kind.has_index => Some([index, length]),
            _ => None,
        };
        Self {
            literal,
            index,
            location,
        }
    }
}

/// Returns the length of a message: an integer, or the second word of `fmt::Arguments`, which is
/// odd for a literal, and twice the length.
fn literal_length(value: &str) -> Option<u64> {
    if let Ok(length) = value.parse() {
        return Some(length);
    }
    let word: u64 = value
        .strip_prefix("inttoptr (i64 ")?
        .strip_suffix(" to ptr)")?
        .parse()
        .ok()?;
    (word % 2 == 1).then_some(word / 2)
}

/// Words that begin a value. Words before it are the type and attributes, some with operands in
/// parentheses.
const VALUES: &[&str] = &[
    "null",
    "undef",
    "poison",
    "zeroinitializer",
    "true",
    "false",
    "inttoptr",
    "ptrtoint",
    "getelementptr",
    "addrspacecast",
];

/// Returns the value of an argument `TYPE [attributes] VALUE`.
fn value(argument: &str) -> Option<&str> {
    let lexemes = lex(argument);
    let mut depth = 0_i32;
    let start = lexemes.iter().skip(1).find(|lexeme| {
        let is_value = match lexeme.token {
            Token::Global(_) | Token::Local(_) => true,
            Token::Word(word) => VALUES.contains(&word) || is_number(word),
            _ => false,
        };
        if lexeme.is('(') {
            depth += 1;
        }
        if lexeme.is(')') {
            depth -= 1;
        }
        let follows_align = argument[..lexeme.start].trim_end().ends_with(" align");
        depth == 0 && is_value && !follows_align
    })?;
    Some(argument[start.start..].trim_end())
}

fn is_number(word: &str) -> bool {
    word.starts_with(|character: char| character.is_ascii_digit() || character == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_follow_types_and_attributes() {
        let location =
            "ptr noalias align 8 captures(address, read_provenance) dereferenceable(24) @anon.5";
        assert_eq!(value(location), Some("@anon.5"));
        assert_eq!(value("i64 noundef 4"), Some("4"));
        let packed = "ptr noundef nonnull inttoptr (i64 11 to ptr)";
        assert_eq!(value(packed), Some("inttoptr (i64 11 to ptr)"));
        assert_eq!(literal_length("inttoptr (i64 11 to ptr)"), Some(5));
        assert_eq!(literal_length("inttoptr (i64 10 to ptr)"), None);
        assert_eq!(literal_length("%4"), None);
    }

    /// A function of a user's crate with the path of one of `core` is an ordinary function.
    #[test]
    fn only_the_real_core_panics() {
        let symbol = "_RNvNtCs407BcpMJGyA_4core9panicking5panic";
        let symbols = HashSet::from([symbol.to_owned()]);
        let panicked = PanicKind {
            message: "panicked",
            has_index: false,
        };
        assert_eq!(kind(symbol, &symbols), Some(panicked));
        let other = "_RNvNtCs000000000_4core9panicking5panic";
        assert_eq!(kind(other, &symbols), None);
        let nested = "_RNvNtNtCs407BcpMJGyA_3app4core9panicking5panic";
        assert_eq!(kind(nested, &HashSet::from([nested.to_owned()])), None);
    }
}
