//! Quadrants, a fork of Taichi, which compiles to PTX by LLVM, and its own tests, which its package
//! leaves out.

use std::process::Command;

use anyhow::Result;

use super::expected::{Expected, Outcomes};
use super::pytest::{self, Suite};
use super::repository::QUADRANTS;
use super::{Folder, python, run_all};

/// The files whose tests run, a selection that takes minutes. The tests of streams are not among
/// them: they race, as `docs/book/src/found-bugs.md` describes.
const FILES: &[&str] = &[
    "test_atomic.py",
    "test_f16.py",
    "test_graph.py",
    "test_graph_do_while.py",
    "test_graph_parallel.py",
    "test_random.py",
    "test_reduction.py",
    "test_scan.py",
    "test_shared_array.py",
];

/// Runs the program of this repository.
pub(super) fn run(folder: &Folder) -> Result<()> {
    run_all(&mut python::command(folder, "quadrants_arrays.py")?)
}

/// Runs the tests.
pub(super) fn test(folder: &Folder, expected: &Expected) -> Result<Outcomes> {
    let suite = Suite {
        root: QUADRANTS.sources(folder).join("tests/python"),
        files: FILES,
        plugin: None,
        options: &["-c", "/dev/null", "-m", "not slow"],
        python: interpreter,
    };
    pytest::test(folder, expected, &suite)
}

/// Returns the interpreter, which finds the helpers of the tests. For devices since Hopper, loops in
/// graphs use a kernel in machine code.
fn interpreter(folder: &Folder) -> Result<Command> {
    let modules = [folder.sources.join("python"), QUADRANTS.sources(folder)];
    let mut python = python::simulated_interpreter(folder)?;
    python
        .env("PYTHONPATH", std::env::join_paths(modules)?)
        .env("QD_WANTED_ARCHS", "cuda")
        .env("CURIUM_SIM_DEVICE_MODEL", "RTX 4090");
    Ok(python)
}
