//! Uninitialized reads that are reported, and reads that are not.

use std::sync::Mutex;

use super::super::{Area, Checking, Report, ReportKind};
use super::{BASE, Bench, TestResult};

/// Runs `body` on two blocks of 64 threads. Only the first 512 bytes of memory are initialized.
fn outcome(body: &str) -> Result<(), Box<Report>> {
    Bench::body(body, 4096)
        .with_uninitialized_checks(0..512)
        .launch(2, 64)
        .map(|_| ())
}

#[track_caller]
fn assert_found(body: &str) -> Box<Report> {
    let fault = outcome(body).expect_err(body);
    assert_eq!(fault.kind, ReportKind::Uninitialized, "{body}");
    fault
}

/// Uninitialized read of device memory names thread line and address.
#[test]
fn uninitialized_read_report() -> TestResult {
    let fault = assert_found(
        "add.u64 %at4, %at4, 384; ld.global.u32 %r2, [%at4];\nst.global.u32 [%p], %r2;",
    );
    assert_eq!(
        (fault.block, fault.thread, fault.location.line),
        ([0; 3], [32, 0, 0], 20)
    );
    assert_eq!(fault.loaded_at.as_ref().map(|load| load.line), Some(19));
    let access = fault.access.ok_or("no failed access")?;
    assert_eq!(
        (access.address, access.size, access.write),
        (BASE + 512, 4, false)
    );
    let text = format!("uninitialized read: 4-byte read at {:#x}", BASE + 512);
    assert!(fault.to_string().contains(&text), "{fault}");
    Ok(())
}

#[test]
fn every_load_is_checked() {
    for load in [
        "ld.global.u8 %r2, [%p+512]; st.global.u8 [%p], %r2;",
        "ld.u32 %r2, [%p+512]; st.global.u32 [%p], %r2;",
        "ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%p+512]; st.global.u32 [%p], %r5;",
        "ld.global.v2.u64 {%d2, %d3}, [%p+512]; st.global.u32 [%p], %d3;",
        "ld.global.nc.u64 %d1, [%p+1024]; st.global.u64 [%p], %d1;",
        "ld.volatile.global.u32 %r2, [%p+600]; st.global.u32 [%p], %r2;",
        "atom.global.add.u32 %r2, [%p+512], 1;",
        "red.global.add.u32 [%p+512], 1;",
        "atom.global.cas.b32 %r2, [%p+512], 0, 1;",
        // Only one byte of one lane is uninitialized.
        "setp.ne.u32 %p1, %t, 17; @%p1 bra OUT; ld.global.u32 %r2, [%p+2048]; OUT: st.global.u32 [%at4], %r2;",
        ".shared .b32 s[64]; ld.shared.u32 %r2, [s]; st.global.u32 [%p], %r2;",
        ".shared .b32 s[64]; mov.u32 %r2, s; mad.lo.u32 %r2, %t, 4, %r2; ld.shared.u32 %r3, [%r2]; st.global.u32 [%p], %r3;",
        ".shared .b32 s[64]; mov.u64 %d1, s; cvta.shared.u64 %d1, %d1; ld.u32 %r2, [%d1]; st.global.u32 [%p], %r2;",
        ".shared .b32 s[64]; atom.shared.add.u32 %r2, [s], 1;",
        ".local .b32 l[4]; ld.local.u32 %r2, [l+8]; st.global.u32 [%p], %r2;",
        ".local .b32 l[64]; mov.u64 %d1, l; mad.wide.u32 %d1, %t, 4, %d1; ld.local.u32 %r2, [%d1]; st.global.u32 [%p], %r2;",
        ".local .b32 l[4]; mov.u64 %d1, l; cvta.local.u64 %d1, %d1; ld.u32 %r2, [%d1]; st.global.u32 [%p], %r2;",
        ".shared .align 16 .b8 s[512]; mov.u32 %r1, s; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r1];",
        ".shared .align 16 .b8 s[16]; cp.async.ca.shared.global [s], [%p+512], 16; cp.async.wait_all;",
    ] {
        assert_found(load);
    }
}

#[test]
fn written_values_are_read_back() {
    for body in [
        "ld.global.u32 %r2, [%at4];",
        "add.u64 %d1, %at4, 1024; st.global.u32 [%d1], %t; ld.global.u32 %r2, [%d1];",
        "add.u64 %d1, %at4, 1024; st.global.u8 [%d1], %t; ld.global.u8 %r2, [%d1];",
        "setp.lt.u32 %p1, %t, 5; add.u64 %d1, %at, 2048; @%p1 st.global.u64 [%d1], %at; @%p1 ld.global.u64 %d2, [%d1];",
        "atom.global.exch.b32 %r2, [%p+2048], 1; atom.global.add.u32 %r2, [%p+2048], 1;",
        ".shared .b32 s[64]; st.shared.u32 [s], %t; ld.shared.u32 %r2, [s];",
        ".shared .align 16 .b32 s[64]; mov.u32 %r2, s; mad.lo.u32 %r2, %t, 4, %r2; st.shared.u32 [%r2], %t; bar.sync 0; \
         ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [s+32];",
        ".local .b32 l[4]; st.local.u32 [l+8], %t; ld.local.u32 %r2, [l+8];",
        ".local .b32 l[64]; mov.u64 %d1, l; mad.wide.u32 %d1, %t, 4, %d1; st.local.u32 [%d1], 1; ld.local.u32 %r2, [%d1];",
        ".shared .align 8 .b64 s; mbarrier.init.shared.b64 [s], 64; bar.sync 0; mbarrier.arrive.shared.b64 %d1, [s];",
        ".shared .align 16 .b8 s[16]; cp.async.ca.shared.global [s], [%p], 16; cp.async.wait_all; ld.shared.u64 %d1, [s+8];",
        ".shared .align 16 .b8 s[16]; cp.async.ca.shared.global [s], [%p+2048], 16, 0; cp.async.wait_all; \
         ld.shared.u64 %d1, [s+8];",
    ] {
        outcome(body).unwrap_or_else(|fault| panic!("{fault}\n{body}"));
    }
}

/// Shared memory is fresh in each block and local memory in each call.
#[test]
fn fresh_memory_is_uninitialized() {
    let fault = assert_found(
        ".shared .b32 s[64];
    mov.u32 %r2, %ctaid.x;
    setp.ne.u32 %p1, %r2, 0;
    @%p1 bra READ;
    st.shared.u32 [s], %t;
READ:
    ld.shared.u32 %r3, [s];
    st.global.u32 [%at4], %r3;",
    );
    assert_eq!(fault.block, [1, 0, 0]);
    let area = fault.nearby.map(|nearby| (nearby.area, nearby.size));
    assert_eq!(area, Some((Area::Shared, 256)));
    let function = ".func once(.param .b32 writes)
{
    .reg .pred %q;
    .reg .b32 %r<4>;
    .local .b32 l[2];
    ld.param.u32 %r1, [writes];
    setp.eq.u32 %q, %r1, 0;
    @%q bra READ;
    st.local.u32 [l], %r1;
READ:
    ld.local.u32 %r2, [l];
    setp.eq.u32 %q, %r2, 7;
    @%q trap;
    ret;
}";
    let kernel = super::kernel(
        "{ .param .b32 w; st.param.u32 [w], 1; call once, (w); st.param.u32 [w], 0; call once, (w); }",
    );
    let bench =
        Bench::new(&format!("{function}\n{kernel}"), 4096).with_uninitialized_checks(0..4096);
    let fault = bench
        .launch(1, 32)
        .expect_err("the second call reads what the first wrote");
    assert_eq!(
        (fault.kind, &*fault.location.function),
        (ReportKind::Uninitialized, "once")
    );
    let text = fault.to_string();
    assert!(
        text.contains("of local memory") && text.contains("in function `once`"),
        "{text}"
    );
}

#[test]
fn parameters_are_initialized() -> TestResult {
    let function = ".func (.param .b64 out) half(.param .b64 in)
{
    .reg .b64 %d<4>;
    ld.param.u64 %d1, [in];
    st.param.b32 [out], 1;
    ret;
}";
    let kernel = super::kernel(
        "{ .param .b64 a; .param .b64 b; call (b), half, (a); ld.param.u64 %d1, [b]; }",
    );
    let bench = Bench::new(&format!("{function}\n{kernel}"), 4096).with_uninitialized_checks(0..0);
    bench.launch(1, 32)?;
    Ok(())
}

/// A local variable that only the lower half of each warp writes, and that every thread loads into
/// `%r2`.
const HALF: &str = ".local .align 8 .b32 l[2]; .shared .align 4 .b32 s[64]; and.b32 %r9, %t, 31;
    setp.lt.u32 %p1, %r9, 16;
    @%p1 st.local.u32 [l], %t; ld.local.u32 %r2, [l];\n";

#[test]
fn discarded_undefined_value() {
    for body in [
        "selp.u32 %r3, %r2, 7, %p1; st.global.u32 [%at4], %r3;",
        "add.u32 %r2, %r2, 1; mul.lo.u32 %r2, %r2, %r2; selp.u32 %r3, 7, %r2, !%p1; @%p1 st.global.u32 [%at4], %r2;",
        "setp.eq.u32 %p2, %r2, 3; and.pred %p2, %p2, %p1; selp.u32 %r3, 1, 2, %p2; st.global.u32 [%at4], %r3;",
        "setp.eq.and.u32 %p2, %r2, 3, %p1; selp.u32 %r3, 1, 2, %p2; st.global.u32 [%at4], %r3;",
        "not.pred %p3, %p1; setp.eq.u32 %p2, %r2, 3; or.pred %p2, %p3, %p2; @%p2 st.global.u32 [%at4], %t;",
        "mov.u32 %r2, 1; st.global.u32 [%at4], %r2;",
        "xor.b32 %r2, %r2, %r2; st.global.u32 [%at4], %r2;",
        "and.b32 %r2, %r2, 0; st.global.u32 [%at4], %r2;",
        "shfl.sync.idx.b32 %r3, %r2, 3, 31, -1; st.global.u32 [%at4], %r3;",
        "st.shared.u32 [s], %r2; st.shared.u32 [s], %t; ld.shared.u32 %r3, [s]; st.global.u32 [%at4], %r3;",
        // Only the written bytes of a word that was loaded completely.
        "st.local.u8 [l+4], 5; st.local.u8 [l+6], 6; ld.local.v2.u32 {%r3, %r4}, [l]; and.b32 %r5, %r4, 0xff00ff;
        st.global.u32 [%at4], %r5;",
        "st.local.u8 [l+5], 5; ld.local.u32 %r4, [l+4]; shr.u32 %r5, %r4, 8; cvt.u32.u8 %r5, %r5; st.global.u32 [%at4], %r5;",
        "st.local.u8 [l+5], 5; ld.local.u32 %r4, [l+4]; bfe.u32 %r5, %r4, 8, 8; st.global.u32 [%at4], %r5;",
        "st.local.u16 [l+6], 5; ld.local.u32 %r4, [l+4]; prmt.b32 %r5, %r4, 0, 0x7632; st.global.u32 [%at4], %r5;",
        "st.local.u16 [l+6], 5; ld.local.u32 %r4, [l+4]; mov.b32 {%h1, %h2}, %r4; st.global.u16 [%at4], %h2;",
        "st.local.u32 [l+4], 5; ld.local.u64 %d1, [l]; shr.u64 %d1, %d1, 32; st.global.u64 [%at], %d1;",
    ] {
        outcome(&format!("{HALF}{body}")).unwrap_or_else(|fault| panic!("{fault}\n{body}"));
    }
}

/// Undefined value is an error if it affects control or leaves the block.
#[test]
fn used_undefined_value() {
    for body in [
        "st.global.u32 [%at4], %r2;",
        "st.u32 [%at4], %r2;",
        "cvt.rn.f32.u32 %f1, %r2; add.f32 %f1, %f1, 0f3F800000; st.global.f32 [%at4], %f1;",
        "cvt.u64.u32 %d1, %r2; mov.b64 {%r3, %r4}, %d1; st.global.u32 [%at4], %r3;",
        "xor.b32 %r3, %r2, 5; st.global.u32 [%at4], %r3;",
        "not.b32 %r3, %r2; st.global.u32 [%at4], %r3;",
        // Undefined selectors of defined values.
        "shl.b32 %r3, %t, %r2; st.global.u32 [%at4], %r3;",
        "bfe.u32 %r3, %t, %r2, 4; st.global.u32 [%at4], %r3;",
        "prmt.b32 %r3, %t, 7, %r2; st.global.u32 [%at4], %r3;",
        // Copies of an undefined sign.
        "cvt.s32.s8 %r3, %r2; shr.u32 %r3, %r3, 8; st.global.u32 [%at4], %r3;",
        "setp.eq.u32 %p2, %r2, 3; @%p2 bra OUT; OUT:",
        "setp.eq.u32 %p2, %r2, 3; @!%p2 mov.u32 %r3, 1;",
        "setp.eq.u32 %p2, %r2, 3; selp.u32 %r3, 1, 2, %p2; st.global.u32 [%at4], %r3;",
        "and.b32 %r2, %r2, 15; mad.wide.u32 %d1, %r2, 4, %p; ld.global.u32 %r3, [%d1];",
        "and.b32 %r2, %r2, 15; mad.wide.u32 %d1, %r2, 4, %p; st.global.u32 [%d1], 1;",
        "atom.global.add.u32 %r3, [%p], %r2;",
        "red.global.add.u32 [%p], %r2;",
        "shfl.sync.idx.b32 %r3, %r2, 20, 31, -1; st.global.u32 [%at4], %r3;",
        "setp.eq.u32 %p2, %r2, 3; vote.sync.ballot.b32 %r3, %p2, -1; st.global.u32 [%at4], %r3;",
        "redux.sync.add.u32 %r3, %r2, -1; st.global.u32 [%at4], %r3;",
        "mov.u32 %r4, s; mad.lo.u32 %r4, %t, 4, %r4; st.shared.u32 [%r4], %r2; ld.shared.u32 %r3, [%r4];
        st.global.u32 [%at4], %r3;",
        "st.local.u32 [l+4], %r2; ld.local.u32 %r3, [l+4]; st.global.u32 [%at4], %r3;",
        "bar.red.popc.u32 %r3, 0, %p1; setp.eq.u32 %p2, %r2, 3; bar.red.popc.u32 %r3, 0, %p2;",
    ] {
        let fault = assert_found(&format!("{HALF}{body}"));
        let is_whole_warp = ["shfl", "vote", "redux"].iter().any(|word| body.contains(word));
        assert_eq!(fault.thread[0] % 32, if is_whole_warp { 0 } else { 16 }, "{body}");
        assert!(fault.to_string().contains("4-byte read at"), "{fault}");
    }
}

/// A shuffle from a lane that does not execute it has an undefined result, which is an error where
/// it is used. Lanes without a thread, and those that have returned, do not execute it.
#[test]
fn shuffle_from_an_inactive_lane() {
    let sum =
        "shfl.sync.down.b32 %r2, %t, 8, 31, -1; add.u32 %r2, %r2, %t; setp.lt.u32 %p1, %t, 16;";
    let used = "st.global.u32 [%at4], %r2;";
    for (body, threads, source) in [
        (format!("{sum} {used}"), 32, None),
        (format!("{sum} {used}"), 24, Some(24)),
        (format!("{sum} @%p1 {used}"), 24, None),
        (
            format!("setp.ge.u32 %p2, %t, 20; @%p2 ret; {sum} @%p1 {used}"),
            32,
            Some(20),
        ),
        // The clamp selects the lane itself.
        (
            format!("shfl.sync.down.b32 %r2, %t, 8, 0x1808, -1; {used}"),
            24,
            None,
        ),
    ] {
        let outcome = Bench::body(&body, 4096)
            .with_uninitialized_checks(0..0)
            .launch(1, threads);
        let kind = outcome.err().map(|fault| fault.kind);
        assert_eq!(kind, source.map(ReportKind::InactiveLane), "{body}");
    }
}

#[test]
fn undefined_value_through_calls() {
    let twice = ".func (.param .b32 out) twice(.param .b32 in)
{
    .reg .b32 %r<4>;
    ld.param.u32 %r1, [in];
    add.u32 %r1, %r1, %r1;
    st.param.u32 [out], %r1;
    ret;
}";
    let call = "{ .param .b32 a; .param .b32 b; st.param.u32 [a], %r2; call (b), twice, (a); ld.param.u32 %r3, [b]; }";
    for (used, is_error) in [
        ("@%p1 st.global.u32 [%at4], %r3;", false),
        ("st.global.u32 [%at4], %r3;", true),
    ] {
        let kernel = super::kernel(&format!("{HALF}{call}\n{used}"));
        let bench = Bench::new(&format!("{twice}\n{kernel}"), 4096).with_uninitialized_checks(0..0);
        assert_eq!(bench.launch(1, 32).is_err(), is_error, "{used}");
    }
}

#[test]
fn each_warp_is_counted_once() -> TestResult {
    let mut bench = Bench::body(
        "ld.global.u32 %r2, [%at4]; add.u32 %r2, %r2, %i; st.global.u32 [%at4], %r2;",
        4096,
    )
    .with_uninitialized_checks(0..128);
    bench.host.continued_after = Some(Mutex::default());
    bench.launch(1, 96)?;
    assert_eq!(bench.memory.read::<u32>(0, 96), (0..96).collect::<Vec<_>>());
    let faults = bench
        .host
        .continued_after
        .ok_or("faults end the launch")?
        .into_inner()?;
    assert_eq!(
        faults
            .iter()
            .map(|fault| fault.thread[0])
            .collect::<Vec<_>>(),
        [32, 64]
    );
    Ok(())
}

#[test]
fn checks_are_off_by_default() -> TestResult {
    Bench::body("ld.global.u32 %r2, [%at4];", 4096).launch(1, 32)?;
    Ok(())
}

/// Runs `body` on two warps with the checks of races and of uninitialized reads.
fn checked(body: &str) -> Box<Report> {
    let checking = Checking::nothing()
        .with_uninitialized(true)
        .with_races(true);
    Bench::body(body, 4096)
        .with_checks(checking, 0..512)
        .launch(1, 64)
        .expect_err(body)
}

/// A read before the write of another warp is a race, although the memory is uninitialized then.
#[test]
fn missing_barrier_is_reported_as_a_race() {
    let exchange = ".shared .b32 s[64]; mov.u32 %r2, s; mad.lo.u32 %r3, %t, 4, %r2; st.shared.u32 [%r3], %t; BARRIER
        xor.b32 %r4, %t, 32; mad.lo.u32 %r4, %r4, 4, %r2; ld.shared.u32 %r5, [%r4]; st.global.u32 [%at4], %r5;";
    let fault = checked(&exchange.replace("BARRIER", ""));
    let is_race = matches!(fault.kind, ReportKind::Race { .. });
    assert!(is_race, "{fault}");
    assert_eq!(fault.thread, [32, 0, 0], "{fault}");
    // Nobody writes the memory before the barrier.
    let fault = checked(
        ".shared .b32 s[64]; ld.shared.u32 %r5, [s]; st.global.u32 [%at4], %r5; bar.sync 0; st.shared.u32 [s], 1;",
    );
    assert_eq!(fault.kind, ReportKind::Uninitialized, "{fault}");
}
