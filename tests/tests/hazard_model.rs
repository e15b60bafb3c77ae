//! Checks the rules of `driver/src/hazard.rs` against a model, for every program up to a size.
//!
//! The driver is a table of functions that only record events and waits. From these records follows which work is
//! ordered before which, on any device, and the rules are checked against that: every conflicting access is ordered,
//! and no unnecessary wait is inserted.
#![cfg(not(miri))]

mod hazard_model {
    mod capture;
    pub(super) mod driver;
    mod launches;
    pub(super) mod program;
    pub(super) mod tails;
}

use curium_tests::guard;

use self::hazard_model::driver::Notes;
use self::hazard_model::program::{Program, Use};
use self::hazard_model::tails;

/// The maximum number of accesses in a program.
const LONGEST: usize = if cfg!(debug_assertions) { 4 } else { 5 };

#[test]
fn every_short_program_orders_all_conflicting_uses_and_waits_no_more_than_it_must() {
    let notes = Notes::new();
    let (mut programs, mut uses) = (0_u64, 0_u64);
    for length in 1..=LONGEST {
        Program::each(length, |program| {
            program
                .run(&notes, None)
                .unwrap_or_else(|broken| panic!("{broken}\n{program}"));
            programs += 1;
            uses += length as u64;
        });
    }
    assert!(programs > 10_000, "{programs} programs of {uses} uses");
}

#[test]
fn every_short_program_in_which_a_call_fails_orders_all_conflicting_uses_that_take_place() {
    let notes = Notes::new();
    let mut failed = 0_u64;
    for length in 1..=3 {
        Program::each(length, |program| {
            for call in 1.. {
                let calls = program
                    .run(&notes, Some(call))
                    .unwrap_or_else(|broken| panic!("call {call}: {broken}\n{program}"));
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
fn uses_of_one_stream_make_no_call() {
    let notes = Notes::new();
    let (stream, _) = (notes.stream(), notes.stream());
    let accesses = curium_driver::hazard::Accesses::allocated(&stream);
    let before = notes.calls();
    let mut accesses = accesses;
    for _ in 0..3 {
        accesses
            .before_write(&mut guard(&stream))
            .expect("nothing fails");
        accesses.after_write(&mut guard(&stream));
        accesses
            .before_read(&mut guard(&stream))
            .expect("nothing fails");
        accesses.after_read(&mut guard(&stream));
    }
    assert_eq!(notes.calls(), before, "no function of the driver is called");
}

#[test]
fn model_finds_programs_that_forget_a_use() {
    // Negative control: the model must reject these programs.
    let notes = Notes::new();
    let mut found = 0;
    Program::each(3, |program| {
        found += u32::from(program.run_forgetting(&notes, Use::Read).is_err());
    });
    assert!(
        found > 10,
        "{found} programs are wrong without the waits for reads"
    );
    let mut found = 0;
    Program::each(3, |program| {
        found += u32::from(program.run_forgetting(&notes, Use::Write).is_err());
    });
    assert!(
        found > 10,
        "{found} programs are wrong without the waits for writes"
    );
}

#[test]
fn every_interleaving_of_two_threads_leaves_no_use_unordered() {
    let interleavings =
        tails::check(tails::Order::AsWritten).expect("no interleaving breaks the rule");
    assert!(interleavings > 1_000, "{interleavings} interleavings");
}

#[test]
fn tails_that_are_counted_in_another_order_leave_uses_unordered() {
    tails::check(tails::Order::NoteBeforeWork)
        .expect_err("an access that is recorded too early is taken for one that was waited for");
    tails::check(tails::Order::CountAfterRecord)
        .expect_err("a sync point that is counted too late is taken for a later one");
}
