//! CuPy, which compiles its kernels to PTX. Its package contains no tests: those of `outside/cupy`
//! compare it with NumPy.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::expected::{Expected, Outcomes};
use super::pytest::{self, Suite};
use super::{DEVICES, Folder, python, run_all, with_driver};

/// The packages whose libraries CuPy is linked to, besides those that the simulator has.
const LIBRARIES: [&str; 4] = ["cusolver", "cusparse", "cuda_nvrtc", "nvjitlink"];

/// Runs the program of this repository.
pub(super) fn run(folder: &Folder) -> Result<()> {
    run_all(&mut cupy(
        folder,
        python::command(folder, "cupy_arrays.py")?,
    )?)
}

/// Runs the tests of this repository.
pub(super) fn test(folder: &Folder, expected: &Expected) -> Result<Outcomes> {
    let suite = Suite {
        root: folder.sources.join("cupy"),
        files: &[],
        plugin: None,
        options: &[],
        python: |folder| cupy(folder, python::simulated_interpreter(folder)?),
    };
    pytest::test(folder, expected, &suite)
}

/// Sets the paths of CuPy's libraries and headers, and of its cache of compiled kernels.
fn cupy(folder: &Folder, mut python: Command) -> Result<Command> {
    let nvidia = python::packages(folder)?.join("nvidia");
    let libraries: Vec<PathBuf> = LIBRARIES
        .iter()
        .map(|name| nvidia.join(name).join("lib"))
        .collect();
    with_driver(
        &mut python,
        folder,
        &libraries.iter().map(PathBuf::as_path).collect::<Vec<_>>(),
    )?;
    python
        .env("CUPY_COMPILE_WITH_PTX", "1")
        .env("CUDA_PATH", nvidia.join("cuda_runtime"));
    python
        .env("CUPY_CACHE_DIR", folder.built.join("cupy-kernels"))
        .envs([DEVICES]);
    Ok(python)
}
