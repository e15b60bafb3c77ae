//! Tensor maps that kernels modify.

use super::super::ReportKind;
use super::super::tensor_map::Field;
use super::{Bench, kernel, lower, syntax};

/// Runs `body` on a map of zeros, which is followed by words for the kernel, and returns the map.
fn changed(body: &str) -> Vec<u64> {
    let bench = Bench::body(body, 256);
    bench.memory.write(128, &[0x1234_5678_9abc_def0_u64, 7]);
    bench.launch(1, 1).expect("no fault");
    bench.memory.read::<u64>(0, 16)
}

/// Returns the refusal of a kernel.
fn refusal(body: &str) -> String {
    let text = format!(
        ".version 8.6\n.target sm_90a\n.address_size 64\n{}",
        kernel(body)
    );
    let module = syntax::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    lower(&module).expect_err("it is refused").to_string()
}

/// Returns a map with only these fields set.
fn map_of(fields: &[(Field, u64)]) -> Vec<u64> {
    let mut words = vec![0; 16];
    for (field, value) in fields {
        words[field.word()] = field.set(words[field.word()], *value);
    }
    words
}

#[test]
fn replaced_field_of_a_tensor_map_is_the_only_one_that_changes() {
    let cases: [(&str, Field, u64); 13] = [
        (
            "global_address.global.b1024.b64 [%p], %d2",
            Field::ADDRESS,
            0x1234_5678_9abc_def0,
        ),
        ("rank.global.b1024.b32 [%p], 4", Field::RANK, 5),
        (
            "box_dim.global.b1024.b32 [%p], 0, 256",
            Field::boxed(0),
            255,
        ),
        ("box_dim.global.b1024.b32 [%p], 4, %r2", Field::boxed(4), 6),
        (
            "global_dim.global.b1024.b32 [%p], 3, %r2",
            Field::extent(3),
            7,
        ),
        (
            "global_stride.global.b1024.b64 [%p], 1, %d2",
            Field::stride(1),
            0x1234_5678_9abc_def0,
        ),
        (
            "element_stride.global.b1024.b32 [%p], 2, 8",
            Field::step(2),
            8,
        ),
        // The driver numbers f64 before bf16 and flushed f32, the instruction after them.
        ("elemtype.global.b1024.b32 [%p], 9", Field::DATA_TYPE, 8),
        ("elemtype.global.b1024.b32 [%p], 15", Field::DATA_TYPE, 15),
        (
            "interleave_layout.global.b1024.b32 [%p], 2",
            Field::INTERLEAVE,
            2,
        ),
        ("swizzle_mode.global.b1024.b32 [%p], 3", Field::SWIZZLE, 3),
        (
            "swizzle_atomicity.global.b1024.b32 [%p], 2",
            Field::ATOMICITY,
            2,
        ),
        ("fill_mode.b1024.b32 [%p], 1", Field::FILL, 1),
    ];
    for (case, field, value) in cases {
        let body = format!(
            "ld.global.u64 %d2, [%p+128]; ld.global.u32 %r2, [%p+136]; tensormap.replace.tile.{case};"
        );
        assert_eq!(changed(&body), map_of(&[(field, value)]), "{case}");
    }
}

#[test]
fn replacing_a_field_in_shared_memory_keeps_the_other_fields() {
    let words = changed(
        "
    .shared .align 128 .b8 map[128];
    mov.u32 %r2, map;
    st.shared.u64 [%r2+16], -1;
    tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r2], 0;
    tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%r2], 0;
    ld.shared.u64 %d2, [%r2+16];
    st.global.u64 [%p+16], %d2;",
    );
    assert_eq!(words[2], Field::FILL.set(Field::RANK.set(u64::MAX, 1), 0));
}

#[test]
fn tensor_map_that_is_not_aligned_is_a_fault() {
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
fn tensor_map_past_the_end_of_shared_memory_is_a_fault() {
    let body = ".shared .align 128 .b8 map[4]; mov.u32 %r2, map; tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r2], 2;";
    let fault = Bench::body(body, 256)
        .launch(1, 1)
        .expect_err("a map has 128 bytes");
    assert_eq!(fault.kind, ReportKind::IllegalAddress);
}

#[test]
fn field_of_a_tensor_map_with_a_value_that_it_cannot_have_is_refused() {
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
