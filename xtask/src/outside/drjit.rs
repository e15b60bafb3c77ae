//! Dr.Jit, which generates PTX itself, and its own tests, which its package leaves out.

use std::process::Command;

use anyhow::Result;

use super::expected::{Expected, Outcomes};
use super::pytest::{self, Suite};
use super::repository::DRJIT;
use super::{Folder, python, run_all};

/// The files whose tests run. The others test what does not depend on the device, or call modules
/// in C++ that are built with the tests.
const FILES: &[&str] = &[
    "test_arithmetic.py",
    "test_batched_gemm.py",
    "test_complex.py",
    "test_dda.py",
    "test_event.py",
    "test_hashgrid.py",
    "test_if_stmt.py",
    "test_matrix.py",
    "test_memop.py",
    "test_rand.py",
    "test_reduction.py",
    "test_resample.py",
    "test_tensor.py",
    "test_while_loop.py",
];

/// Runs the program of this repository.
pub(super) fn run(folder: &Folder) -> Result<()> {
    run_all(&mut drjit(
        folder,
        python::command(folder, "drjit_arrays.py")?,
    ))
}

/// Runs the tests.
pub(super) fn test(folder: &Folder, expected: &Expected) -> Result<Outcomes> {
    let suite = Suite {
        root: DRJIT.sources(folder).join("tests"),
        files: FILES,
        plugin: Some("drjit_tests"),
        options: &["-c", "/dev/null"],
        python: |folder| Ok(drjit(folder, python::simulated_interpreter(folder)?)),
    };
    pytest::test(folder, expected, &suite)
}

/// Sets the device, and the folder in which Dr.Jit keeps compiled kernels.
fn drjit(folder: &Folder, mut python: Command) -> Command {
    python
        // The tests expect instructions that Dr.Jit generates for devices before Hopper only.
        .env("CURIUM_SIM_DEVICE_MODEL", "RTX 4090")
        .env("DRJIT_CACHE_DIR", folder.built.join("drjit-kernels"));
    python
}
