//! nccl4py, NVIDIA's Python binding of NCCL. Its package contains no tests: those of
//! `outside/nccl4py` compare it with NumPy.

use std::process::Command;

use anyhow::Result;

use super::expected::{Expected, Outcomes};
use super::pytest::{self, Suite};
use super::{DEVICES, Folder, python, run_all};

/// Runs one of the tests.
pub(super) fn run(folder: &Folder) -> Result<()> {
    let mut pytest = interpreter(folder)?;
    pytest.args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider"]);
    pytest.arg(
        folder
            .sources
            .join("nccl4py/test_collectives.py::test_ring_of_transfers"),
    );
    run_all(&mut pytest)
}

/// Runs the tests of this repository.
pub(super) fn test(folder: &Folder, expected: &Expected) -> Result<Outcomes> {
    let root = folder.sources.join("nccl4py");
    pytest::test(
        folder,
        expected,
        &Suite {
            root,
            files: &[],
            plugin: None,
            options: &[],
            python: interpreter,
        },
    )
}

fn interpreter(folder: &Folder) -> Result<Command> {
    let mut python = python::simulated_interpreter(folder)?;
    python.envs([DEVICES]);
    Ok(python)
}
