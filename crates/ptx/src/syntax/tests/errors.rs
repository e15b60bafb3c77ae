//! Positions and messages of errors.

use super::{HEADER, refused, refused_body};
use crate::syntax::parse;

#[test]
fn columns_count_characters() {
    let error = parse(&format!("{HEADER}/* žluť\n 世界 */ ;;; ret")).expect_err("no such item");
    assert_eq!((error.line(), error.column()), (5, 12));
    assert!(error.to_string().ends_with("found 'ret'"), "{error}");
}

/// Carriage returns and tabs count as one character.
#[test]
fn tabs_count_as_one_character() {
    let error =
        parse(&HEADER.replace('\n', "\r\n").replace("64", "64\t\tx")).expect_err("x is no item");
    assert_eq!((error.line(), error.column()), (3, 19));
}

#[test]
fn invalid_tokens_are_described() {
    assert_eq!(
        refused("/* never"),
        "line 4, column 1: unterminated comment ('/*')"
    );
    assert_eq!(
        refused(".file 1 \"open\n"),
        "line 4, column 9: unterminated string ('\"open')"
    );
    assert_eq!(
        refused_body("add.u32 %r1, #, 1;"),
        "line 6, column 14: unexpected character ('#')"
    );
    assert_eq!(
        refused_body("é"),
        "line 6, column 1: unexpected character ('é')"
    );
}

#[test]
fn long_tokens_are_shortened() {
    let error = refused(&"x".repeat(1000));
    assert!(
        error.ends_with(&format!("found '{}…'", "x".repeat(40))),
        "{error}"
    );
}

#[test]
fn missing_semicolon() {
    assert_eq!(
        refused_body("ret\nret;"),
        "line 7, column 1: unknown name 'ret'"
    );
    assert_eq!(
        refused_body("add.u32 %r1, %r1, 1\nret;"),
        "line 7, column 1: expected ';', found 'ret'"
    );
    assert_eq!(
        refused_body("add.u32 %r1, ;"),
        "line 6, column 14: expected a register, an immediate, an address or a declared name, found ';'"
    );
}
