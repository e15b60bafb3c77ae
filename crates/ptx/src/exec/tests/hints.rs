//! Suffixes and instructions that are hints and affect no result.

use super::super::ReportKind;
use super::Bench;

#[test]
fn hints_change_nothing() {
    for hint in [
        "prefetch.global.L1 [%p];",
        "prefetch.global.L2 [%p];",
        "prefetch.global.L2::evict_last [%p];",
        "prefetchu.L1 [%p];",
        "applypriority.global.L2::evict_normal [%p], 128;",
        "nanosleep.u32 20;",
        "nanosleep.u32 %r1;",
        "pmevent 3;",
        "setmaxnreg.inc.sync.aligned.u32 240;",
        "griddepcontrol.launch_dependents;",
        "griddepcontrol.wait;",
    ] {
        let bench = Bench::body(
            &format!("mov.u32 %r1, 5; {hint} st.global.u32 [%at4], %t;"),
            4096,
        );
        assert_eq!(
            bench.results::<u32>(32),
            (0..32).collect::<Vec<_>>(),
            "{hint}"
        );
    }
    // Discarded memory may have any contents until it is written.
    let bench = Bench::body(
        "discard.global.L2 [%p], 128; bar.sync 0; st.global.u32 [%at4], %t;",
        4096,
    );
    assert_eq!(bench.results::<u32>(32), (0..32).collect::<Vec<_>>());
}

#[test]
fn breakpoint_is_a_trap() {
    for stop in ["brkpt;", "trap;"] {
        let fault = Bench::body(stop, 64).launch(1, 1).expect_err("it stops");
        assert_eq!(fault.kind, ReportKind::Trap, "{stop}");
    }
}
