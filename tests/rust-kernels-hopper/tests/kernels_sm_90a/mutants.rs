//! Barriers, fences, arrivals and waits are necessary: without one of them, the simulator reports
//! an error, or a test has another result.

use curium_test_mutants::{Equivalence, Suite, lane};

const SUITE: Suite = Suite {
    ptx: include_str!(concat!(env!("OUT_DIR"), "/kernels.sm_90a.ptx")),
    equivalences: EQUIVALENCES,
    folder: env!("CARGO_TARGET_TMPDIR"),
};

const EQUIVALENCES: &[Equivalence] = &[Equivalence {
    reason: "all lanes of a warp have the same value, of which the shuffle takes one",
    mutants: &[lane("*", ", 0, 31, -1", &[])],
}];

/// Each mutant is noticed, or is listed with a reason.
#[test]
#[expect(
    clippy::print_stdout,
    reason = "the figures are shown with --nocapture"
)]
fn mutants_are_noticed() -> Result<(), Box<dyn std::error::Error>> {
    println!("{}", SUITE.run()?);
    Ok(())
}
