//! Checks the rules of `driver/src/hazard.rs` against a model, for every program up to a size.
//!
//! The driver is a table of functions that only record events and waits. From these records follows
//! which work is ordered before which, on any device, and the rules are checked against that: every
//! conflicting access is ordered, and no unnecessary wait is inserted.
#![cfg(not(miri))]

mod hazard_model {
    mod capture;
    pub(super) mod driver;
    mod launches;
    pub(super) mod program;
    pub(super) mod sync_points;
}

use curium_tests::{TestResult, begin};

use self::hazard_model::driver::RecordingDriver;
use self::hazard_model::program::{AccessKind, Program};
use self::hazard_model::sync_points;

/// The maximum number of accesses in a program.
const MAX_LENGTH: usize = if cfg!(debug_assertions) { 4 } else { 5 };

/// Every short program orders all conflicting accesses, and waits no more than necessary.
#[test]
fn short_programs_are_ordered() {
    let driver = RecordingDriver::new();
    let mut programs = 0_u64;
    let mut accesses_run = 0_u64;
    for length in 1..=MAX_LENGTH {
        Program::each(length, |program| {
            program
                .run(&driver, None)
                .unwrap_or_else(|violation| panic!("{violation}\n{program}"));
            programs += 1;
            accesses_run += length as u64;
        });
    }
    assert!(
        programs > 10_000,
        "{programs} programs of {accesses_run} accesses"
    );
}

/// Every short program orders all conflicting accesses that take output, whichever call fails.
#[test]
fn failing_programs_are_ordered() {
    let driver = RecordingDriver::new();
    let mut failed = 0_u64;
    for length in 1..=3 {
        Program::each(length, |program| {
            for call in 1.. {
                let calls = program
                    .run(&driver, Some(call))
                    .unwrap_or_else(|violation| panic!("call {call}: {violation}\n{program}"));
                if calls < call {
                    break;
                }
                failed += 1;
            }
        });
    }
    assert!(failed > 1_000, "{failed} calls failed");
}

#[test]
fn one_stream_makes_no_call() -> TestResult {
    let driver = RecordingDriver::new();
    let stream = driver.stream();
    let _ = driver.stream();
    let mut accesses = curium_driver::hazard::Accesses::allocated(&stream);
    let before = driver.calls();
    for _ in 0..3 {
        accesses.before_write(&mut begin(&stream))?;
        accesses.after_write(&mut begin(&stream));
        accesses.before_read(&mut begin(&stream))?;
        accesses.after_read(&mut begin(&stream));
    }
    assert_eq!(
        driver.calls(),
        before,
        "no function of the driver is called"
    );
    Ok(())
}

#[test]
fn forgotten_access_is_detected() {
    // Negative control: the model must reject these programs.
    let driver = RecordingDriver::new();
    let mut rejected = 0;
    Program::each(3, |program| {
        rejected += u32::from(program.run_forgetting(&driver, AccessKind::Read).is_err());
    });
    assert!(
        rejected > 10,
        "{rejected} programs are wrong without the waits for reads"
    );
    let mut rejected = 0;
    Program::each(3, |program| {
        rejected += u32::from(program.run_forgetting(&driver, AccessKind::Write).is_err());
    });
    assert!(
        rejected > 10,
        "{rejected} programs are wrong without the waits for writes"
    );
}

#[test]
fn two_threads_are_ordered() -> TestResult {
    let interleavings = sync_points::check(sync_points::Order::Correct)?;
    assert!(interleavings > 1_000, "{interleavings} interleavings");
    Ok(())
}

#[test]
fn late_sync_points_are_detected() {
    sync_points::check(sync_points::Order::RecordBeforeWork)
        .expect_err("an access that is recorded too early is taken for one that was waited for");
    sync_points::check(sync_points::Order::CountAfterRecord)
        .expect_err("a sync point that is counted too late is taken for a later one");
}
