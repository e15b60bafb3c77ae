//! Halide, which compiles to PTX by LLVM and calls the driver API. Its package contains no tests:
//! those of `outside/halide` compare pipelines with NumPy, under the checks for races and
//! uninitialized memory.

use std::process::Command;

use anyhow::Result;

use super::expected::{Expected, Outcomes};
use super::pytest::{self, Suite};
use super::{CHECKS, Folder, python};

/// Runs a few of the tests.
pub(super) fn run(folder: &Folder) -> Result<()> {
    suite(folder).run_selected(folder, "test_products.py", "test_product")
}

/// Runs the tests of this repository.
pub(super) fn test(folder: &Folder, expected: &Expected) -> Result<Outcomes> {
    pytest::test(folder, expected, &suite(folder))
}

fn suite(folder: &Folder) -> Suite {
    Suite::from_repository(folder, "halide", interpreter)
}

fn interpreter(folder: &Folder) -> Result<Command> {
    let mut python = python::simulated_interpreter(folder)?;
    python.envs(CHECKS);
    Ok(python)
}
