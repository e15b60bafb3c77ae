//! Spellings of numbers, and constant expressions.

use super::{TestResult, operands, refused_body};
use crate::syntax::{Integer, Operand};

fn value(text: &str) -> TestResult<i128> {
    Ok(match operands(&format!("mov.b64 %d1, {text};"))?[1] {
        Operand::Integer(Integer { bits, negative }) => Integer { bits, negative }.value(),
        ref other => panic!("{text} is {other:?}"),
    })
}

#[test]
fn integer_spellings() -> TestResult {
    for (text, expected) in [
        ("42", 42),
        ("42U", 42),
        ("0", 0),
        ("052", 42),
        ("0x2A", 42),
        ("0X2aU", 42),
        ("0b101010", 42),
        ("-1", -1),
        ("-9223372036854775808", -(1 << 63)),
        ("18446744073709551615", (1 << 64) - 1),
        ("0xFFFFFFFFFFFFFFFF", (1 << 64) - 1),
        ("WARP_SZ", 32),
    ] {
        assert_eq!(value(text)?, expected, "{text}");
    }
    Ok(())
}

#[test]
fn floats_keep_their_bits() -> TestResult {
    assert_eq!(
        operands("mov.f32 %f1, 0f3F800000;")?[1],
        Operand::Single(0x3F80_0000)
    );
    assert_eq!(
        operands("mov.f32 %f1, 0Fffc00001;")?[1],
        Operand::Single(0xFFC0_0001)
    );
    assert_eq!(
        operands("mov.f64 %e1, 0d7FF8000000000001;")?[1],
        Operand::Double(0x7FF8_0000_0000_0001)
    );
    assert_eq!(operands("mov.f64 %e1, -0.0;")?[1], Operand::Double(1 << 63));
    for text in ["2.5", "25e-1", "0.25E+1", "2.5e0"] {
        assert_eq!(
            operands(&format!("mov.f64 %e1, {text};"))?[1],
            Operand::Double(2.5f64.to_bits()),
            "{text}"
        );
    }
    Ok(())
}

#[test]
fn precedence_is_that_of_c() -> TestResult {
    for (text, expected) in [
        ("1+2*3", 7),
        ("(1+2)*3", 9),
        ("10-4-3", 3),
        ("1<<4|1", 17),
        ("7&3==3", 1),
        ("~0", -1),
        ("!5", 0),
        ("-7/2", -3),
        ("-7 % 3", -1),
        ("-8>>1", -4),
        ("(.u64)-8>>60", 15),
        ("1<2 ? 5 : 6", 5),
        ("0 ? 1 : 0 ? 2 : 3", 3),
        ("1 && 0 || 1", 1),
        ("1 << 64", 0),
        ("-1 < 1", 1),
        ("-1 < 1U", 0),
    ] {
        assert_eq!(value(text)?, expected, "{text}");
    }
    Ok(())
}

#[test]
fn invalid_numbers_are_described() {
    for (number, problem) in [
        ("0f3F8", "malformed f32: expected 8 hexadecimal digits"),
        ("0d3F8", "malformed f64: expected 16 hexadecimal digits"),
        (
            "18446744073709551616",
            "malformed integer or more than 64 bits",
        ),
        ("12x", "malformed integer or more than 64 bits"),
        ("089", "malformed integer or more than 64 bits"),
        ("1.e+", "malformed decimal number"),
    ] {
        assert_eq!(
            refused_body(&format!("mov.b64 %d1, {number};")),
            format!("line 6, column 14: {problem} ('{number}')")
        );
    }
}

#[test]
fn division_by_zero_is_an_error() {
    let error = refused_body("mov.b64 %d1, 5/0;");
    assert_eq!(
        error,
        "line 6, column 15: unsupported operands for the operator ('/')"
    );
    assert!(refused_body("mov.b64 %d1, 5 % 0U;").contains("('%')"));
}

#[test]
fn deep_expressions_are_refused() -> TestResult {
    for open in ["(", "-", "~", "1?", "(.u64)"] {
        let error = refused_body(&format!("mov.b64 %d1, {};", open.repeat(100_000)));
        assert!(
            error.contains("more than 64 levels of nesting"),
            "{open}: {error}"
        );
    }
    assert_eq!(value(&format!("{}7{}", "(".repeat(50), ")".repeat(50)))?, 7);
    assert_eq!(value(&format!("1{}", "+1".repeat(50_000)))?, 50_001);
    Ok(())
}
