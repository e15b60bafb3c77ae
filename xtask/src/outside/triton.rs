//! Triton, which compiles without a GPU. Its package contains no tests: those of `outside/triton` compare the kernels of its tutorials with
//! NumPy, under the checks for races and uninitialized memory.

use std::process::Command;

use anyhow::Result;

use super::expected::{Expected, Outcomes};
use super::pytest::{self, Suite};
use super::{Folder, python, run_all};

/// The checks of the simulator.
const CHECKS: [(&str, &str); 2] = [
    ("CURIUM_SIM_RACES", "on"),
    ("CURIUM_SIM_UNINITIALIZED", "on"),
];

/// Runs one of the tests.
pub(super) fn run(folder: &Folder) -> Result<()> {
    let mut pytest = interpreter(folder)?;
    pytest.args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider"]);
    pytest.arg(folder.sources.join("triton/test_rows.py::test_add"));
    run_all(&mut pytest)
}

/// Runs the tests of this repository.
pub(super) fn test(folder: &Folder, expected: &Expected) -> Result<Outcomes> {
    let suite = Suite {
        root: folder.sources.join("triton"),
        files: &[],
        plugin: None,
        options: &[],
        python: interpreter,
    };
    pytest::test(folder, expected, &suite)
}

fn interpreter(folder: &Folder) -> Result<Command> {
    let mut python = python::simulated_interpreter(folder)?;
    python
        .envs(CHECKS)
        .env("TRITON_CACHE_DIR", folder.built.join("triton-kernels"));
    Ok(python)
}
