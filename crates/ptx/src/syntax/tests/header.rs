//! `.version`, `.target`, `.address_size`.

use curium_format::{PtxVersion, TargetVariant};

use super::TestResult;
use crate::syntax::ast::Texturing;
use crate::syntax::{ErrorKind, parse, parse_for};

fn header(version: &str, target: &str) -> String {
    format!(".version {version}\n.target {target}\n.address_size 64\n")
}

#[test]
fn version_is_two_numbers() -> TestResult {
    let module = parse(&header("8.10", "sm_90"))?;
    assert_eq!(module.version, PtxVersion::new(8, 10));
    let error =
        parse_for(&header("8.10", "sm_90"), PtxVersion::new(8, 9)).expect_err("8.10 follows 8.9");
    assert_eq!(error.kind(), ErrorKind::UnsupportedVersion);
    Ok(())
}

#[test]
fn unsupported_version_kind() {
    let error = parse(&header("9.6", "sm_90")).expect_err("too new");
    assert_eq!(error.kind(), ErrorKind::UnsupportedVersion);
    assert_eq!(
        error.to_string(),
        "line 1, column 10: unsupported .version 9.6 (newest supported version: 9.5)"
    );
}

/// Version too new is reported even if the rest is not understood.
#[test]
fn unsupported_version_comes_first() {
    let error = parse(".version 42.0\n.target sm_999\n§").expect_err("too new");
    assert_eq!(error.kind(), ErrorKind::UnsupportedVersion);
}

#[test]
fn target_options_are_read() -> TestResult {
    let module = parse(&header("9.0", "sm_100f, debug, texmode_independent"))?;
    assert_eq!(module.target.architecture, 100);
    assert_eq!(module.target.variant, TargetVariant::Family);
    assert!(module.target_options.debug);
    assert_eq!(module.target_options.texturing, Texturing::Independent);
    let module = parse(&header("8.0", "sm_90a"))?;
    assert_eq!(module.target.variant, TargetVariant::Architecture);
    let module = parse(&header("1.4", "sm_13, map_f64_to_f32"))?;
    assert!(module.target_options.map_f64_to_f32);
    Ok(())
}

#[test]
fn unknown_target_kind() {
    for target in ["sm_9000", "gfx90a", "sm_", "sm_+90", "sm_90b"] {
        let error = parse(&header("8.0", target)).expect_err("no such target");
        assert_eq!(error.kind(), ErrorKind::UnsupportedTarget, "{target}");
        assert_eq!((error.line(), error.column()), (2, 9));
    }
}

/// Address size of 32 bits is its own kind also by default.
#[test]
fn address_size_32_kind() {
    let error = parse(".version 8.0\n.target sm_90\n.address_size 32\n").expect_err("32 bits");
    assert_eq!(error.kind(), ErrorKind::UnsupportedAddressSize);
    assert_eq!(
        error.to_string(),
        "line 3, column 15: unsupported address size 32 (expected 64)"
    );
    let error = parse(".version 8.0\n.target sm_90\n").expect_err("32 bits is the default");
    assert_eq!(error.kind(), ErrorKind::UnsupportedAddressSize);
}

#[test]
fn empty_text_expects_a_version() {
    let error = parse("").expect_err("nothing there");
    assert_eq!(
        error.to_string(),
        "line 1, column 1: expected '.version', found the end of the text"
    );
}
