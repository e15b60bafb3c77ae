//! Launches that would not end.

use std::time::Duration;

use super::{Bench, TestResult};
use crate::exec::{Budget, Limits, Report, ReportKind};

/// The budget of a test, which no correct kernel here exceeds.
const LIMITS: Limits = Limits {
    instructions: Some(100_000),
    time: None,
};

/// Runs a kernel that does not end by itself.
fn stopped(body: &str, limits: Limits, block: u32) -> TestResult<Box<Report>> {
    let mut bench = Bench::body(body, 4096);
    bench.limits = limits;
    let outcome = bench.launch(1, block);
    Ok(outcome.err().ok_or("the launch succeeded")?)
}

/// An endless loop is stopped after the instructions of the budget, and the report names the loop.
#[test]
fn endless_loop_is_stopped() -> TestResult {
    let report = stopped("AGAIN:\nadd.u32 %r2, %r2, 1;\nbra AGAIN;", LIMITS, 64)?;
    assert_eq!(
        report.kind,
        ReportKind::OverBudget(Budget::Instructions(100_000))
    );
    let text = report.to_string();
    assert!(
        text.starts_with(
            "kernel `main`: over budget: the launch executed 100000 instructions, block (0, 0, 0), thread ("
        ),
        "{text}"
    );
    assert!(
        text.ends_with("; 64 threads from thread (0, 0, 0) on are at PTX line 20"),
        "{text}"
    );
    Ok(())
}

#[test]
fn time_limit_is_kept() -> TestResult {
    let limits = Limits {
        instructions: None,
        time: Some(Duration::from_millis(20)),
    };
    let report = stopped("AGAIN: bra AGAIN;", limits, 1)?;
    let expected = ReportKind::OverBudget(Budget::Time(Duration::from_millis(20)));
    assert_eq!(report.kind, expected);
    Ok(())
}

/// A thread that waits for another that has ended.
#[test]
fn spinning_thread_is_reported() -> TestResult {
    let report = stopped(
        "setp.eq.u32 %p1, %t, 0;
@!%p1 bra END;
WAIT:
ld.volatile.global.u32 %r2, [%p];
setp.eq.u32 %p2, %r2, 0;
@%p2 bra WAIT;
END:",
        LIMITS,
        32,
    )?;
    let text = report.to_string();
    assert!(
        text.contains("; thread (0, 0, 0) is at PTX line 2"),
        "{text}"
    );
    Ok(())
}

/// Limits do not affect launches that end.
#[test]
fn short_launch_is_within_its_budget() -> TestResult {
    let mut bench = Bench::body("st.global.u32 [%at4], %t;", 4096);
    bench.limits = LIMITS;
    bench.launch(8, 64)?;
    Ok(())
}

/// The report of a deadlock has the positions of all threads.
#[test]
fn deadlock_names_all_positions() -> TestResult {
    let report = stopped(
        "setp.lt.u32 %p1, %t, 32;
@%p1 bra LOW;
barrier.sync 1, 64;
bra END;
LOW:
barrier.sync 2, 64;
END:",
        Limits::default(),
        64,
    )?;
    assert_eq!(report.kind, ReportKind::Deadlock);
    let text = format!("{report:#}");
    let barriers = "deadlock: no thread can continue: 32 of 64 threads are at barrier 1, 32 of 64 threads are at barrier 2,";
    assert!(text.contains(barriers), "{text}");
    let expected = "
  32 threads from thread (0, 0, 0) on wait at PTX line 24
    PTX 24 | barrier.sync 2, 64;
  32 threads from thread (32, 0, 0) on wait at PTX line 21
    PTX 21 | barrier.sync 1, 64;
  hint: as many threads as the barrier expects must execute it";
    assert!(text.ends_with(expected), "{text}");
    Ok(())
}

/// Operations that PTX does not define on mbarrier objects are errors, and defined ones are not.
#[test]
fn misused_mbarriers_are_reported() -> TestResult {
    const DECLARATION: &str = ".shared .align 8 .b64 bar;";
    const INIT: &str = "mbarrier.init.shared.b64 [bar], 2;";
    const ARRIVE: &str = "mbarrier.arrive.shared.b64 %d2, [bar];";
    const WAIT: &str = "mbarrier.test_wait.parity.shared.b64 %p1, [bar], 0;";
    let missing = "an mbarrier object that is not initialized";
    for (body, reason) in [
        (ARRIVE.to_owned(), missing),
        (WAIT.to_owned(), missing),
        (
            format!("{INIT} mbarrier.inval.shared.b64 [bar]; {ARRIVE}"),
            missing,
        ),
        (
            format!("{INIT} mbarrier.arrive.shared.b64 %d2, [bar], 3;"),
            "more arrivals at an mbarrier object than its phase expects",
        ),
    ] {
        let report = stopped(&format!("{DECLARATION} {body}"), LIMITS, 1)?;
        assert!(
            matches!(report.kind, ReportKind::InvalidBarrier(_)),
            "{report}"
        );
        assert!(report.to_string().contains(reason), "{report}");
    }
    let correct = format!("{DECLARATION} {INIT} {ARRIVE} {ARRIVE} {WAIT} {ARRIVE}");
    Bench::body(&correct, 4096).launch(1, 1)?;
    // The last arrivals leave no expected ones.
    let dropped = format!(
        "{DECLARATION} {INIT} mbarrier.arrive_drop.shared.b64 %d2, [bar], 2; {WAIT} @!%p1 trap;"
    );
    Bench::body(&dropped, 4096).launch(1, 1)?;
    Ok(())
}
