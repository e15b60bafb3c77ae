//! Instructions and functions that kernels may use. Everything else is refused, so that a new form
//! of rustc's output cannot bypass a rule of the device crate.

use super::remainder::{self, Remainder};
use crate::ir::{Callee, Instruction, Token, lex};

/// Instructions that compute, access memory without synchronization, and branch.
const OPCODES: &[&str] = &[
    "add",
    "alloca",
    "and",
    "ashr",
    "bitcast",
    "br",
    "call",
    "extractelement",
    "extractvalue",
    "fadd",
    "fcmp",
    "fdiv",
    "fmul",
    "fneg",
    "fpext",
    "fptosi",
    "fptoui",
    "fptrunc",
    "freeze",
    "fsub",
    "getelementptr",
    "icmp",
    "insertelement",
    "insertvalue",
    "inttoptr",
    "load",
    "lshr",
    "mul",
    "or",
    "phi",
    "ptrtoaddr",
    "ptrtoint",
    "ret",
    "sdiv",
    "select",
    "sext",
    "shl",
    "shufflevector",
    "sitofp",
    "srem",
    "store",
    "sub",
    "switch",
    "trunc",
    "udiv",
    "uitofp",
    "unreachable",
    "urem",
    "xor",
    "zext",
];

/// LLVM's intrinsics that rustc's output contains, without the types at the end of their names.
const INTRINSICS: &[&str] = &[
    "abs",
    "assume",
    "bitreverse",
    "bswap",
    "ceil",
    "copysign",
    "ctlz",
    "ctpop",
    "cttz",
    "expect",
    "experimental.noalias.scope.decl",
    "fabs",
    "floor",
    "fma",
    "fmuladd",
    "fptosi.sat",
    "fptoui.sat",
    "fshl",
    "fshr",
    "is.constant",
    "is.fpclass",
    "launder.invariant.group",
    "lifetime.end",
    "lifetime.start",
    "maximum",
    "maximumnum",
    "maxnum",
    "memcpy",
    "memmove",
    "memset",
    "minimum",
    "minimumnum",
    "minnum",
    "nearbyint",
    "ptrmask",
    "rint",
    "round",
    "roundeven",
    "sadd.sat",
    "sadd.with.overflow",
    "scmp",
    "smax",
    "smin",
    "smul.with.overflow",
    "sqrt",
    "ssub.sat",
    "ssub.with.overflow",
    "strip.invariant.group",
    "trap",
    "trunc",
    "uadd.sat",
    "uadd.with.overflow",
    "ucmp",
    "umax",
    "umin",
    "umul.with.overflow",
    "usub.sat",
    "usub.with.overflow",
    "vector.reduce.add",
    "vector.reduce.and",
    "vector.reduce.or",
    "vector.reduce.xor",
];

/// Functions that the device's runtime defines.
const RUNTIME: &[&str] = &["vprintf", "malloc", "free", "__assertfail"];

/// Functions that allocate memory, at addresses that differ between threads.
pub(crate) const ALLOCATOR: &[&str] = &["malloc", "free"];

/// Returns why a kernel may not execute an instruction.
pub(crate) fn refuse(instruction: &Instruction<'_>) -> Option<&'static str> {
    const ATOMIC: &str = "uses an atomic of `core`; use the atomics of `curium_kernel`";
    match instruction.opcode {
        "atomicrmw" | "cmpxchg" | "fence" => Some(ATOMIC),
        "load" | "store" if instruction.modifier == Some("atomic") => Some(ATOMIC),
        "invoke" | "landingpad" | "resume" | "cleanuppad" | "catchpad" => {
            Some("unwinds, but kernels cannot unwind")
        }
        _ if converts_wide_integers(instruction) => Some(
            "converts between a floating-point number and an integer of 128 bits, for which LLVM has no code; convert a half of the integer",
        ),
        remainder::OPCODE if Remainder::parse(instruction).is_some() => None,
        opcode if OPCODES.contains(&opcode) => None,
        _ => Some("uses an instruction that kernels cannot use"),
    }
}

/// Returns `true` for a conversion that LLVM calls a library for, which the device does not have.
fn converts_wide_integers(instruction: &Instruction<'_>) -> bool {
    let is_conversion = match (instruction.opcode, &instruction.call) {
        ("fptosi" | "fptoui" | "sitofp" | "uitofp", _) => true,
        (_, Some(call)) => match &call.callee {
            Callee::Direct(name) => name.starts_with("llvm.fpto") && name.contains(".i128."),
            Callee::Indirect => false,
        },
        _ => false,
    };
    let is_wide = |token| matches!(token, Token::Word("i128"));
    is_conversion
        && lex(instruction.text)
            .iter()
            .any(|lexeme| is_wide(lexeme.token))
}

/// Returns `true` for an intrinsic of LLVM that rustc may call.
pub(crate) fn is_intrinsic(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("llvm.") else {
        return false;
    };
    INTRINSICS.iter().any(|intrinsic| {
        let types = rest.strip_prefix(intrinsic);
        types.is_some_and(|types| {
            types.is_empty() || types.split('.').skip(1).all(is_type) && types.starts_with('.')
        })
    })
}

/// Returns `true` for a type in the name of an intrinsic: `i32`, `p0`, `v2f32`, `nxv4i1`.
fn is_type(text: &str) -> bool {
    let element = text.trim_start_matches("nx");
    let element = match element.strip_prefix('v') {
        Some(vector) => vector.trim_start_matches(|character: char| character.is_ascii_digit()),
        None => element,
    };
    let Some((letter, digits)) = element.split_at_checked(1) else {
        return false;
    };
    let digits = if element.starts_with("bf") {
        &digits[1..]
    } else {
        digits
    };
    "ifpb".contains(letter)
        && !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns `true` for a function that the device's runtime defines.
pub(crate) fn is_runtime_function(name: &str) -> bool {
    RUNTIME.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// LLVM ends with a fatal error that names nothing.
    #[test]
    fn conversions_of_wide_integers_are_refused() -> Result<(), String> {
        let refusal = |code: &str| {
            let text = format!("define void @f() {{\n  {code}\n}}\n");
            let module = crate::ir::Module::parse(&text)?;
            match module.functions[0].body.as_deref() {
                Some([crate::ir::Line::Instruction(instruction)]) => Ok(refuse(instruction)),
                _ => Err(format!("no instruction: {code}")),
            }
        };
        for code in [
            "%1 = uitofp i128 %x to float",
            "%1 = fptosi double %x to i128",
            "%1 = call i128 @llvm.fptoui.sat.i128.f32(float %x)",
        ] {
            assert!(
                refusal(code)?.is_some_and(|problem| problem.contains("128 bits")),
                "{code}"
            );
        }
        for code in [
            "%1 = uitofp i64 %x to float",
            "%1 = call i64 @llvm.fptoui.sat.i64.f32(float %x)",
            "%1 = udiv i128 %x, %y",
        ] {
            assert_eq!(refusal(code)?, None, "{code}");
        }
        Ok(())
    }

    /// The name of one intrinsic is never the beginning of another.
    #[test]
    fn intrinsics_are_matched_with_their_types() {
        for name in [
            "llvm.fabs.f32",
            "llvm.memcpy.p0.p0.i64",
            "llvm.assume",
            "llvm.ctpop.v4i32",
            "llvm.fptoui.sat.i64.f32",
            "llvm.trap",
        ] {
            assert!(is_intrinsic(name), "{name}");
        }
        for name in [
            "llvm.nvvm.barrier0",
            "llvm.trapping",
            "llvm.fabs.evil",
            "llvm.abs.",
            "fabs.f32",
            "llvm.read_register.i32",
        ] {
            assert!(!is_intrinsic(name), "{name}");
        }
    }
}
