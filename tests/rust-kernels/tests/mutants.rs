//! Barriers, fences, waits, masks, lanes and atomic operations are necessary: without one of them, the simulator reports an error, or a
//! test has another result.

use crate::mutation::{Equivalent, Suite};

const SUITE: Suite = Suite {
    ptx: include_str!(concat!(env!("OUT_DIR"), "/kernels.sm_80.ptx")),
    modules: &[
        ("algorithms", include_str!("algorithms.rs")),
        ("model", include_str!("model.rs")),
    ],
    equivalent: EQUIVALENT,
    folder: env!("CARGO_TARGET_TMPDIR"),
};

const EQUIVALENT: &[Equivalent] = &[];

/// Each mutant is noticed, or is listed with a reason.
#[test]
fn mutants_are_noticed() {
    let figures = SUITE.run();
    println!("{figures}");
}
