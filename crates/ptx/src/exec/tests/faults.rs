//! Faults that stop a launch, and refusals before it.

use std::sync::Mutex;

use super::super::{ReportKind, lower};
use super::{BASE, Bench, TestResult};
use crate::syntax;

/// An illegal address names block thread line and access.
#[test]
fn illegal_address_report() -> TestResult {
    let bench = Bench::body(
        "
    setp.ne.u32 %p1, %i, 70;
    @%p1 bra OUT;
    st.global.u32 [%p+4094], %t;
OUT:",
        4096,
    );
    let fault = bench.launch(3, 32).expect_err("misaligned");
    assert_eq!(fault.kind, ReportKind::MisalignedAddress);
    let bench = Bench::body(
        "
    setp.ne.u32 %p1, %i, 70;
    @%p1 bra OUT;
    st.global.u64 [%p+4096], 1;
OUT:",
        4096,
    );
    let fault = bench.launch(3, 32).expect_err("one past the end");
    assert_eq!(fault.kind, ReportKind::IllegalAddress);
    assert_eq!((fault.block, fault.thread), ([2, 0, 0], [6, 0, 0]));
    let access = fault.access.ok_or("no failed access")?;
    assert_eq!(
        (access.address, access.size, access.write),
        (BASE + 4096, 8, true)
    );
    assert_eq!(fault.location.line, 22);
    assert_eq!(
        fault.to_string(),
        "kernel `main`: illegal address: 8-byte write at 0x7f0000001000, \
         block (2, 0, 0), thread (6, 0, 0), PTX line 22"
    );
    Ok(())
}

#[test]
fn out_of_space_access_is_illegal() {
    for access in [
        "ld.global.u32 %r2, [%p+4096];",
        "ld.global.u32 %r2, [%p+-4];",
        "ld.u32 %r2, [0];",
        "ld.shared.u32 %r2, [8];",
        "ld.local.u32 %r2, [64];",
        "mov.u64 %d1, 0xffffffffffffff00; ld.u32 %r2, [%d1];",
        "mov.u64 %d1, 0x1000000000000; ld.u32 %r2, [%d1];",
        "st.global.u32 [%p+4096], 0;",
        "atom.global.add.u32 %r2, [%p+4096], 1;",
        // The first bytes are in bounds, the last are not.
        "mov.u32 %r3, 0; @%q bra SKIP; ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%p+4096]; SKIP:",
    ] {
        let fault = Bench::body(access, 4096).launch(1, 1).expect_err(access);
        assert_eq!(fault.kind, ReportKind::IllegalAddress, "{access}");
    }
}

#[test]
fn vectors_are_aligned() -> TestResult {
    let fault = Bench::body("ld.global.v2.u32 {%r2, %r3}, [%p+4];", 4096)
        .launch(1, 32)
        .expect_err("8 bytes at an odd multiple of 4");
    assert_eq!(fault.kind, ReportKind::MisalignedAddress);
    Bench::body("ld.global.v2.u32 {%r2, %r3}, [%p+8];", 4096).launch(1, 32)?;
    Ok(())
}

/// The report of a misaligned vector names all of it, not an element.
#[test]
fn misaligned_vector_is_reported() -> TestResult {
    for space in ["global", "shared", "local"] {
        for (code, write) in [
            ("ld.SPACE.v4.u32 {%r2, %r3, %r4, %r5}, [BASE+8];", false),
            ("st.SPACE.v4.u32 [BASE+8], {%r2, %r3, %r4, %r5};", true),
        ] {
            let base = if space == "global" { "%p" } else { "box" };
            let code = code.replace("SPACE", space).replace("BASE", base);
            let variable = if space == "global" { "global" } else { space };
            let declaration = if space == "global" {
                String::new()
            } else {
                format!(".{variable} .align 16 .b8 box[64];")
            };
            let fault = Bench::body(&format!("{declaration}{code}"), 4096)
                .launch(1, 32)
                .expect_err(&code);
            let access = fault.access.ok_or("no failed access")?;
            assert_eq!(fault.kind, ReportKind::MisalignedAddress, "{fault}");
            assert_eq!((access.size, access.write), (16, write), "{fault}");
            assert_eq!(access.address % 16, 8, "{fault}");
        }
    }
    Ok(())
}

#[test]
fn trap_reports_the_lowest_thread() {
    let fault = Bench::body("setp.gt.u32 %p1, %t, 9; @%p1 trap;", 4096)
        .launch(1, 32)
        .expect_err("a trap");
    assert_eq!((fault.kind, fault.thread), (ReportKind::Trap, [10, 0, 0]));
}

#[test]
fn oversized_launch_is_refused() {
    let bench = Bench::body("", 4096);
    let refuse = |grid, block, params: &[u8]| {
        let fault = bench.launch_with(grid, block, params).expect_err("refused");
        matches!(fault.kind, ReportKind::InvalidLaunch(_))
    };
    let params = BASE.to_le_bytes();
    assert!(refuse([0, 1, 1], [1, 1, 1], &params));
    assert!(refuse([1, 1, 1], [1025, 1, 1], &params));
    assert!(refuse([1, 1, 1], [1, 1, 1], &params[..7]));
}

#[test]
fn unsupported_form() -> TestResult {
    let text = ".version 8.8\n.target sm_100\n.address_size 64\n.entry k()\n{\n    \
                .reg .b32 %r<9>; .reg .b64 %d<2>;\n    \
                txq.channel_order.b32 %r1, [%d1];\n    ret;\n}";
    let module = syntax::parse(text)?;
    let error = lower(&module).expect_err("it is not supported");
    assert_eq!((error.line, error.column), (7, 5));
    assert_eq!(
        error.to_string(),
        "line 7, column 5: `txq.channel_order.b32` with these operands is not supported"
    );
    Ok(())
}

/// Unsupported instructions and forms, each with a part of the refusal.
const REFUSED: &[(&str, &str)] = &[
    (
        "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r1], 32;",
        "`tcgen05` with .cta_group::2 is not supported",
    ),
    (
        "tcgen05.mma.sp.cta_group::1.kind::f16 [%r1], %d1, %d2, [%r3], %r2, %p1;",
        "`tcgen05` with .sp is not supported",
    ),
    (
        "tcgen05.mma.ws.cta_group::1.kind::f16 [%r1], %d1, %d2, %r2, %p1;",
        "`tcgen05` with .ws is not supported",
    ),
    (
        "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [%r1], %d1, %d2, %r2, [%r3], [%r4], %p1;",
        "`tcgen05` with .block_scale is not supported",
    ),
    (
        "tcgen05.mma.cta_group::1.kind::f16.ashift [%r1], [%r3], %d2, %r2, %p1;",
        "`tcgen05` with .ashift is not supported",
    ),
    (
        "tcgen05.shift.cta_group::1.down [%r1];",
        "`tcgen05` with .shift is not supported",
    ),
    (
        "tcgen05.cp.cta_group::1.4x256b [%r1], %d1;",
        "`tcgen05` with .4x256b is not supported",
    ),
    (
        "tcgen05.cp.cta_group::1.128x256b.b8x16.b6x16_p32 [%r1], %d1;",
        "`tcgen05` with .b8x16 is not supported",
    ),
    (
        "tcgen05.ld.red.sync.aligned.32x32b.x2.min.f32 {%f1, %f2}, %f3, [%r1];",
        "`tcgen05` with .red is not supported",
    ),
    (
        "tcgen05.mma.cta_group::1.kind::i8 [%r1], %d1, %d2, %r2, %p1, 3;",
        "`tcgen05.mma.cta_group::1.kind::i8` with these operands is not supported",
    ),
    (
        "cp.async.bulk.tensor.3d.shared::cta.global.im2col::w.mbarrier::complete_tx::bytes [%r1], [%d1, {%r2, %r2, %r2}], [%r3], {1, 2};",
        "`cp.async.bulk.tensor.3d.shared::cta.global.im2col::w.mbarrier::complete_tx::bytes` with these operands is not supported",
    ),
    (
        "cp.async.bulk.prefetch.tensor.3d.L2.global.im2col::w::128 [%d1, {%r2, %r2, %r2}], {1, 2};",
        "`cp.async.bulk.prefetch.tensor.3d.L2.global.im2col::w::128` with these operands is not supported",
    ),
    (
        "tex.2d.f32.f32 %f4, [%d1, {%f1, %f2}], %f3;",
        "`tex.2d.f32.f32` with these operands is not supported",
    ),
    (
        "txq.channel_order.b32 %r1, [%d1];",
        "`txq.channel_order.b32` with these operands is not supported",
    ),
    (
        "suq.memory_layout.b32 %r1, [%d1];",
        "`suq.memory_layout.b32` with these operands is not supported",
    ),
];

#[test]
fn refusal_names_the_spelling() {
    for (instruction, reason) in REFUSED {
        let text = format!(
            ".version 8.8\n.target sm_100a\n.address_size 64\n.entry k()\n{{\n    .reg .b32 %r<9>; .reg .b64 %d<4>; \
             .reg .f32 %f<9>; .reg .pred %p<2>;\n    {instruction}\n    ret;\n}}"
        );
        let module = syntax::parse(&text).unwrap_or_else(|error| panic!("{instruction}: {error}"));
        let error = lower(&module).expect_err(instruction).to_string();
        assert_eq!(
            error,
            format!("line 7, column 5: {reason}"),
            "{instruction}"
        );
    }
}

#[test]
fn faulting_threads_end() -> TestResult {
    let mut bench = Bench::body(
        "
    setp.eq.u32 %p1, %t, 40;
    @%p1 bra WRONG;
    bar.sync 0;
    st.global.u32 [%at4], 1;
    ret;
WRONG:
    st.global.u32 [%p+4096], %t;
    st.global.u32 [%at4], 1;",
        4096,
    );
    bench.host.continued_after = Some(Mutex::default());
    let expected: Vec<u32> = (0..96).map(|thread| u32::from(thread != 40)).collect();
    assert_eq!(
        bench.results::<u32>(96),
        expected,
        "the barrier does not wait for the thread that is gone"
    );
    let faults = bench
        .host
        .continued_after
        .ok_or("faults end the launch")?
        .into_inner()?;
    let [fault] = &faults[..] else {
        panic!("one thread is at fault: {faults:?}")
    };
    assert_eq!(
        (fault.kind, fault.thread),
        (ReportKind::IllegalAddress, [40, 0, 0])
    );
    Ok(())
}

/// Continued launch loses threads in functions and counts each faulting warp.
#[test]
fn faulting_functions_end() -> TestResult {
    let mut bench = Bench::new(
        "
.func wrong(.param .u64 at)
{
    .reg .b64 %d1;
    ld.param.u64 %d1, [at];
    st.global.u32 [%d1+4096], 1;
    ret;
}
.visible .entry main(.param .u64 p)
{
    .reg .b64 %p;
    ld.param.u64 %p, [p];
    { .param .u64 a; st.param.u64 [a], %p; call wrong, (a); }
    st.global.u32 [%p], 1;
    ret;
}",
        4096,
    );
    bench.host.continued_after = Some(Mutex::default());
    bench.launch(2, 96)?;
    assert_eq!(bench.memory.read::<u32>(0, 1), [0], "no thread continued");
    let faults = bench
        .host
        .continued_after
        .ok_or("faults end the launch")?
        .into_inner()?;
    assert_eq!(faults.len(), 6);
    assert!(
        faults
            .iter()
            .all(|fault| &*fault.location.function == "wrong"),
        "{faults:?}"
    );
    Ok(())
}
