//! Apache TVM, which is linked to the shared CUDA runtime. Its kernels are CUDA C++, which NVRTC
//! compiles. Its package contains no tests: those of `outside/tvm` compare operators with NumPy,
//! under the checks for races and uninitialized memory.

use std::process::Command;

use anyhow::Result;

use super::expected::{Expected, Outcomes};
use super::pytest::{self, Suite};
use super::{CHECKS, Folder, python};

/// Runs one of the tests.
pub(super) fn run(folder: &Folder) -> Result<()> {
    suite(folder).run_selected(folder, "test_operators.py", "test_functions and sm_80")
}

/// Runs the tests of this repository.
pub(super) fn test(folder: &Folder, expected: &Expected) -> Result<Outcomes> {
    pytest::test(folder, expected, &suite(folder))
}

fn suite(folder: &Folder) -> Suite {
    Suite::from_repository(folder, "tvm", interpreter)
}

fn interpreter(folder: &Folder) -> Result<Command> {
    let toolkit = python::packages(folder)?.join("nvidia/cu13");
    // TVM does not search for libcu++ where NVIDIA's packages have it.
    let libcu = toolkit.join("include/cccl");
    let mut python = python::simulated_interpreter(folder)?;
    python.envs(CHECKS).env("CUDA_PATH", toolkit).env(
        "TVM_CUDA_NVRTC_EXTRA_OPTS",
        format!("-I{}", libcu.display()),
    );
    Ok(python)
}
