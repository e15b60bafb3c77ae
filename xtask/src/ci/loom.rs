//! The loom models of the protocols between threads.

use anyhow::Result;

use super::{Outcome, run_all};
use crate::cargo::{cargo, target_folder};

/// Runs the models, which are defined next to the protocols and compiled with loom's locks.
pub(super) fn run() -> Result<Outcome> {
    let mut command = cargo();
    command
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", target_folder()?.join("loom"));
    run_all(
        command
            .args(["test", "--release", "-p", "curium-driver", "--lib"])
            .args(["--", "hazard::tests", "waits::tests", "progress::tests"]),
    )
}
