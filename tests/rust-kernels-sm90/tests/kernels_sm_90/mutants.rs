//! Barriers, fences, arrivals and waits are necessary: without one of them, the simulator reports
//! an error, or a test has another result.

use curium_test_mutants::{Equivalence, Suite};

const SUITE: Suite = Suite {
    ptx: include_str!(concat!(env!("OUT_DIR"), "/kernels.sm_90.ptx")),
    equivalences: EQUIVALENCES,
    folder: env!("CARGO_TARGET_TMPDIR"),
};

const EQUIVALENCES: &[Equivalence] = &[];

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
