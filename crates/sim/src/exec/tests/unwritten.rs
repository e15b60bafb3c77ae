//! Reads of memory that nobody wrote: what is found, and what is not one.

use std::sync::Mutex;

use super::super::{Area, Fault, FaultKind};
use super::{BASE, Bench};

/// Runs `body` on two blocks of 64 threads, where of the memory only its first 512 bytes were written.
fn outcome(body: &str) -> Result<(), Fault> {
    Bench::body(body, 4096).with_unwritten_checks(0..512).launch(2, 64).map(|_| ())
}

#[track_caller]
fn assert_found(body: &str) -> Fault {
    let fault = outcome(body).expect_err(body);
    assert_eq!(fault.kind, FaultKind::Unwritten, "{body}");
    fault
}

#[test]
fn read_of_device_memory_that_nobody_wrote_names_thread_line_and_address() {
    let fault = assert_found("add.u64 %at4, %at4, 384; ld.global.u32 %r2, [%at4];");
    assert_eq!((fault.block, fault.thread, fault.line), ([0; 3], [32, 0, 0], 19));
    let access = fault.access.expect("an access failed");
    assert_eq!((access.address, access.size, access.write), (BASE + 512, 4, false));
    let text = format!("memory that nobody wrote: read of 4 bytes at {:#x}", BASE + 512);
    assert!(fault.to_string().contains(&text), "{fault}");
}

#[test]
fn every_form_of_load_is_looked_at() {
    for load in [
        "ld.global.u8 %r2, [%p+512];",
        "ld.u32 %r2, [%p+512];",
        "ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%p+512];",
        "ld.global.nc.u64 %d1, [%p+1024];",
        "ld.volatile.global.u32 %r2, [%p+600];",
        "atom.global.add.u32 %r2, [%p+512], 1;",
        "red.global.add.u32 [%p+512], 1;",
        "atom.global.cas.b32 %r2, [%p+512], 0, 1;",
        // Only one lane is wrong, and only one byte.
        "setp.ne.u32 %p1, %t, 17; @%p1 bra OUT; ld.global.u32 %r2, [%p+2048]; OUT:",
        ".shared .b32 s[64]; ld.shared.u32 %r2, [s];",
        ".shared .b32 s[64]; mov.u32 %r2, s; mad.lo.u32 %r2, %t, 4, %r2; ld.shared.u32 %r3, [%r2];",
        ".shared .b32 s[64]; mov.u64 %d1, s; cvta.shared.u64 %d1, %d1; ld.u32 %r2, [%d1];",
        ".shared .b32 s[64]; atom.shared.add.u32 %r2, [s], 1;",
        ".local .b32 l[4]; ld.local.u32 %r2, [l+8];",
        ".local .b32 l[64]; mov.u64 %d1, l; mad.wide.u32 %d1, %t, 4, %d1; ld.local.u32 %r2, [%d1];",
        ".local .b32 l[4]; mov.u64 %d1, l; cvta.local.u64 %d1, %d1; ld.u32 %r2, [%d1];",
        ".shared .align 16 .b8 s[512]; mov.u32 %r1, s; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r1];",
        ".shared .align 16 .b8 s[16]; cp.async.ca.shared.global [s], [%p+512], 16; cp.async.wait_all;",
    ] {
        assert_found(load);
    }
}

#[test]
fn what_was_written_is_read() {
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

#[test]
fn shared_memory_is_fresh_in_each_block_and_local_memory_in_each_call() {
    let fault = assert_found(
        ".shared .b32 s[64];
    mov.u32 %r2, %ctaid.x;
    setp.ne.u32 %p1, %r2, 0;
    @%p1 bra READ;
    st.shared.u32 [s], %t;
READ:
    ld.shared.u32 %r3, [s];",
    );
    assert_eq!(fault.block, [1, 0, 0]);
    let area = fault.neighbour.map(|neighbour| (neighbour.area, neighbour.size));
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
    ret;
}";
    let kernel =
        super::kernel("{ .param .b32 w; st.param.u32 [w], 1; call once, (w); st.param.u32 [w], 0; call once, (w); }");
    let bench = Bench::new(&format!("{function}\n{kernel}"), 4096).with_unwritten_checks(0..4096);
    let fault = bench.launch(1, 32).expect_err("the second call reads what the first wrote");
    assert_eq!((fault.kind, &*fault.function), (FaultKind::Unwritten, "once"));
    let text = fault.to_string();
    assert!(text.contains("of local memory") && text.contains("in function `once`"), "{text}");
}

#[test]
fn parameters_and_results_of_functions_count_as_written() {
    let function = ".func (.param .b64 out) half(.param .b64 in)
{
    .reg .b64 %d<4>;
    ld.param.u64 %d1, [in];
    st.param.b32 [out], 1;
    ret;
}";
    let kernel = super::kernel("{ .param .b64 a; .param .b64 b; call (b), half, (a); ld.param.u64 %d1, [b]; }");
    let bench = Bench::new(&format!("{function}\n{kernel}"), 4096).with_unwritten_checks(0..0);
    bench.launch(1, 32).expect("nothing is wrong");
}

#[test]
fn launch_that_goes_on_does_all_work_and_counts_each_warp_once() {
    let mut bench = Bench::body("ld.global.u32 %r2, [%at4]; add.u32 %r2, %r2, %i; st.global.u32 [%at4], %r2;", 4096)
        .with_unwritten_checks(0..128);
    bench.host.passed_over = Some(Mutex::default());
    bench.launch(1, 96).expect("the launch goes on");
    assert_eq!(bench.memory.read::<u32>(0, 96), (0..96).collect::<Vec<_>>());
    let faults = bench.host.passed_over.expect("faults are passed over").into_inner().expect("nobody panics");
    assert_eq!(faults.iter().map(|fault| fault.thread[0]).collect::<Vec<_>>(), [32, 64]);
}

#[test]
fn nobody_looks_unless_asked_to() {
    Bench::body("ld.global.u32 %r2, [%at4];", 4096).launch(1, 32).expect("nothing is looked for");
}
