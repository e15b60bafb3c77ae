//! Tensor maps that kernels modify.

use super::super::ReportKind;
use super::{Bench, kernel, lower, syntax};

/// Returns the refusal of a kernel.
fn refusal(body: &str) -> String {
    let text = format!(
        ".version 8.6\n.target sm_90a\n.address_size 64\n{}",
        kernel(body)
    );
    let module = syntax::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    lower(&module).expect_err("it is refused").to_string()
}

#[test]
fn misaligned_tensor_map() {
    let bench = Bench::body(
        "tensormap.replace.tile.rank.global.b1024.b32 [%p+32], 0;",
        256,
    );
    assert_eq!(
        bench.launch(1, 1).expect_err("a map is aligned").kind,
        ReportKind::MisalignedAddress
    );
}

#[test]
fn tensor_map_outside_memory() {
    let body = ".shared .align 128 .b8 map[4]; mov.u32 %r2, map; tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r2], 2;";
    let fault = Bench::body(body, 256)
        .launch(1, 1)
        .expect_err("a map has 128 bytes");
    assert_eq!(fault.kind, ReportKind::IllegalAddress);
}

#[test]
fn invalid_field_value() {
    for case in [
        "elemtype.global.b1024.b32 [%p], 16",
        "swizzle_mode.global.b1024.b32 [%p], 5",
        "fill_mode.global.b1024.b32 [%p], %r2",
        "global_stride.global.b1024.b64 [%p], 4, %d2",
        "box_dim.global.b1024.b32 [%p], 5, %r2",
    ] {
        let error = refusal(&format!("tensormap.replace.tile.{case};"));
        assert!(
            error.contains("tensor map") || error.contains("`tensormap.replace.tile."),
            "{case}: {error}"
        );
    }
}
