//! Reports of divergent barriers and of threads that never arrive.

use std::sync::Mutex;

use super::super::{Checking, Report, ReportKind};
use super::{Bench, kernel};

type Result = std::result::Result<(), Box<Report>>;

/// The number of lines before the body of a kernel, with the line of its first statement.
const FIRST_LINE: u32 = 19;

fn checked(program: &str) -> Bench {
    Bench::new(program, 4096).with_checks(Checking::nothing().with_races(true), 0..0)
}

/// Runs a body on one block of 64 threads.
fn run(body: &str) -> Result {
    checked(&kernel(body)).launch(1, 64).map(|_| ())
}

/// Returns the lanes that wait, those that are missing, and both lines relative to the first line
/// of the body.
fn divergence(report: &Report) -> Option<(u32, u32, u32, u32)> {
    match report.kind {
        ReportKind::DivergentBarrier(divergence) | ReportKind::MissingMembers(divergence) => {
            Some((
                divergence.waiting,
                divergence.missing,
                report.location.line - FIRST_LINE,
                report.other.as_ref()?.line - FIRST_LINE,
            ))
        }
        _ => None,
    }
}

const LOW: u32 = 0xffff;
const HIGH: u32 = 0xffff_0000;

const BARRIERS: [&str; 6] = [
    "bar.sync 0;",
    "barrier.sync.aligned 0;",
    "bar.red.popc.u32 %r5, 0, %p3;",
    "bar.arrive 1, 64;",
    "barrier.cluster.arrive.aligned;",
    "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
];

/// The two halves of each warp execute different instructions, and the upper ones come first.
fn halves(low: &str, high: &str) -> String {
    format!(
        "and.b32 %r4, %t, 16; setp.eq.u32 %p1, %r4, 0; @%p1 bra LOW;
        {high}
        bra JOIN;
        LOW:
        {low}
        JOIN:
        st.global.u32 [%at4], %t;"
    )
}

/// Two barriers at different places do not meet.
#[test]
fn barriers_in_two_arms() {
    for barrier in [
        "bar.sync 0;",
        "barrier.sync.aligned 0;",
        "bar.red.popc.u32 %r5, 0, %p3;",
    ] {
        let report = run(&halves(barrier, barrier)).expect_err(barrier);
        let text = report.to_string();
        assert_eq!(
            divergence(&report),
            Some((LOW, HIGH, 4, 1)),
            "{barrier}: {text}"
        );
    }
    let report = run(&halves("bar.sync 0;", "bar.sync 0;")).expect_err("two barriers");
    assert_eq!(
        report.to_string(),
        "kernel `main`: divergent barrier: warp 0 with lanes 0-15 waiting for lanes 16-31, \
         block (0, 0, 0), thread (0, 0, 0), PTX line 23; the missing lanes are at PTX line 20"
    );
}

/// Only a part of each warp executes the barrier, and the others execute what follows.
#[test]
fn conditional_barrier() {
    for barrier in BARRIERS {
        let report = run(&halves(barrier, "mov.u32 %r3, 5;")).expect_err(barrier);
        let text = report.to_string();
        assert_eq!(
            divergence(&report),
            Some((LOW, HIGH, 4, 6)),
            "{barrier}: {text}"
        );
    }
}

#[test]
fn guarded_barrier_is_reported() {
    let body = "setp.lt.u32 %p1, %t, 5;
        @%p1 bar.sync 0;
        st.global.u32 [%at4], %t;";
    let report = run(body).expect_err("five threads arrive");
    let text = report.to_string();
    assert_eq!(divergence(&report), Some((0x1f, !0x1f, 1, 2)), "{text}");
}

#[test]
fn different_barriers_of_lanes() {
    let report = run("and.b32 %r4, %t, 1; bar.sync %r4;").expect_err("two barriers");
    let text = report.to_string();
    assert_eq!(
        divergence(&report),
        Some((0x5555_5555, 0xaaaa_aaaa, 0, 0)),
        "{text}"
    );
}

/// A barrier in a loop whose number of iterations differs, followed by a barrier or by a store.
#[test]
fn barrier_in_uneven_loop() {
    for last in ["bar.sync 1;", "st.global.u32 [%at4], %t;"] {
        let body = format!(
            "mov.u32 %r2, 0; and.b32 %r4, %t, 1;
            AGAIN:
            bar.sync 0;
            add.u32 %r2, %r2, 1; setp.le.u32 %p1, %r2, %r4; @%p1 bra AGAIN;
            {last}"
        );
        let report = run(&body).expect_err(last);
        assert!(
            matches!(report.kind, ReportKind::DivergentBarrier(_)),
            "{report}"
        );
    }
}

/// Two calls of a function with a barrier, directly or through a pointer.
#[test]
fn barrier_in_two_calls() {
    let function = ".func sync() { bar.sync 0; ret; }
        .func other() { bar.sync 0; ret; }\n";
    let direct = halves("call sync, ();", "call sync, ();");
    let indirect = "PROTOTYPE: .callprototype _ ();
        mov.u64 %d1, sync; mov.u64 %d2, other; setp.lt.u32 %p1, %t, 16;
        selp.b64 %d3, %d1, %d2, %p1;
        call %d3, (), PROTOTYPE;
        st.global.u32 [%at4], %t;";
    for body in [&direct, indirect] {
        let program = format!("{function}{}", kernel(body));
        let report = checked(&program).launch(1, 64).expect_err(body);
        assert!(
            matches!(report.kind, ReportKind::DivergentBarrier(_)),
            "{report}"
        );
    }
}

/// One call instruction that the halves of a warp reach one after the other is one barrier.
#[test]
fn barrier_in_one_call() -> Result {
    let body = "setp.lt.u32 %p1, %t, 16; @!%p1 bra SLOW;
        SYNC:
        call sync, ();
        st.global.u32 [%at4], %t;
        ret;
        SLOW:
        mov.u32 %r3, 5;
        bra SYNC;";
    let program = format!(".func sync() {{ bar.sync 0; ret; }}\n{}", kernel(body));
    checked(&program).launch(1, 64).map(|_| ())
}

#[test]
fn early_returns_are_accepted() -> Result {
    for barrier in BARRIERS {
        // The exit comes first, the barrier comes first, and both exit.
        run(&format!(
            "setp.gt.u32 %p1, %t, 20; @%p1 exit; {barrier} st.global.u32 [%at4], %t;"
        ))?;
        run(&format!(
            "setp.gt.u32 %p1, %t, 20; @%p1 bra DONE; {barrier} st.global.u32 [%at4], %t; DONE:"
        ))?;
        run(&format!(
            "setp.gt.u32 %p1, %t, 20; @%p1 bra EARLY;
            {barrier} st.global.u32 [%at4], %t; ret;
            EARLY: st.global.u32 [%at4], 5; setp.gt.u32 %p2, %t, 50; @%p2 bra NEXT; ret;
            NEXT: st.global.u32 [%at4], 6;"
        ))?;
        let function = format!(
            ".func part(.reg .b32 %t) {{ .reg .pred %p1; setp.gt.u32 %p1, %t, 20; @%p1 ret; {} ret; }}\n",
            barrier.replace(", %p3", ", 1")
        );
        if !barrier.contains("red") {
            checked(&format!("{function}{}", kernel("call part, (%t);"))).launch(1, 64)?;
        }
    }
    Ok(())
}

/// The part of a warp that the scheduler runs first waits for the others.
#[test]
fn arms_meet_at_a_barrier() -> Result {
    for barrier in BARRIERS {
        run(&format!(
            "mov.u32 %r9, 0;
            AGAIN:
            and.b32 %r4, %t, 16; setp.eq.u32 %p1, %r4, 0; @%p1 bra SLOW;
            SYNC:
            {barrier}
            st.global.u32 [%at4], %t;
            add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, 3; @%p2 bra AGAIN;
            ret;
            SLOW:
            mov.u32 %r3, %t;
            MORE:
            add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 90; @%p2 bra MORE;
            bra SYNC;"
        ))?;
    }
    Ok(())
}

/// The PTX ISA allows barriers without `.aligned` at different places.
#[test]
fn unaligned_barriers_may_differ() -> Result {
    let barrier = "barrier.sync 0;";
    run(&halves(barrier, barrier))?;
    let barrier = "barrier.cluster.arrive; barrier.cluster.wait;";
    run(&halves(barrier, barrier))
}

#[test]
fn different_barriers_of_warps() -> Result {
    run("setp.lt.u32 %p1, %t, 32; @%p1 bra LOW; bar.sync 0; bra JOIN; LOW: bar.sync 0; JOIN:")?;
    run("setp.lt.u32 %p1, %t, 32; @%p1 bar.arrive 1, 64; @!%p1 bar.sync 1, 64;")
}

/// Threads in the mask that end elsewhere are no longer waited for, and those that wait elsewhere
/// are missing.
#[test]
fn missing_member_is_reported() {
    for code in [
        "shfl.sync.bfly.b32 %r2, %t, 1, 31, -1;",
        "vote.sync.ballot.b32 %r2, %p1, -1;",
        "redux.sync.add.s32 %r2, %t, -1;",
        "match.any.sync.b32 %r2, %t, -1;",
        "bar.warp.sync -1;",
        "elect.sync %r2|%p2, -1;",
    ] {
        let body = halves(code, "barrier.sync 0;");
        let report = run(&body).expect_err(code);
        let text = report.to_string();
        assert!(
            matches!(report.kind, ReportKind::MissingMembers(_)),
            "{text}"
        );
        assert_eq!(
            divergence(&report),
            Some((LOW, HIGH, 4, 1)),
            "{code}: {text}"
        );
        let body = halves(code, "bar.sync 0;");
        let report = run(&body).expect_err(code);
        assert!(
            matches!(report.kind, ReportKind::DivergentBarrier(_)),
            "{report}"
        );
    }
}

#[test]
fn exited_members_are_not_awaited() -> Result {
    for code in [
        "shfl.sync.bfly.b32 %r2, %t, 1, 31, -1;",
        "vote.sync.ballot.b32 %r2, %p1, -1;",
        "redux.sync.add.s32 %r2, %t, -1;",
        "bar.warp.sync -1;",
    ] {
        run(&format!("setp.gt.u32 %p1, %t, 20; @%p1 exit; {code}"))?;
        run(&format!(
            "setp.gt.u32 %p1, %t, 20; @%p1 bra DONE; {code} DONE:"
        ))?;
    }
    Ok(())
}

/// If the launch continues, each warp is reported, and the threads arrive as they do without the
/// check.
#[test]
fn divergent_barrier_continues() -> Result {
    let mut bench = checked(&kernel(&halves("bar.sync 0;", "bar.sync 0;")));
    bench.host.continued_after = Some(Mutex::default());
    bench.launch(1, 64)?;
    let reports = bench.host.continued_after.take().map(Mutex::into_inner);
    let reports = reports
        .and_then(std::result::Result::ok)
        .unwrap_or_default();
    let warps = reports.iter().map(|report| report.thread[0] / 32);
    assert_eq!(warps.collect::<Vec<_>>(), [0, 1], "{reports:?}");
    assert_eq!(bench.memory.read::<u32>(0, 64), (0..64).collect::<Vec<_>>());
    Ok(())
}

/// Without the check, a barrier counts the threads that arrive.
#[test]
fn unchecked_divergent_barriers() {
    let body = halves("bar.sync 0;", "bar.sync 0;");
    assert!(Bench::body(&body, 4096).launch(1, 64).is_ok());
}
