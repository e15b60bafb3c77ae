//! PyCUDA, built from the archive of its sources, and its own tests.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::expected::{Expected, Outcomes};
use super::pytest::{self, Suite};
use super::{Folder, python, run_all, with_driver};

const VERSION: &str = "2026.1";

/// Builds PyCUDA, and runs the program of this repository.
pub(super) fn run(folder: &Folder) -> Result<()> {
    build(folder)?;
    run_all(&mut pycuda(
        folder,
        python::command(folder, "pycuda_arrays.py")?,
    )?)
}

/// Runs the tests.
pub(super) fn test(folder: &Folder, expected: &Expected) -> Result<Outcomes> {
    let suite = Suite {
        root: sources(folder)?.join("test"),
        files: &["test_cumath.py", "test_driver.py", "test_gpuarray.py"],
        plugin: Some("pycuda_tests"),
        options: &["-c", "/dev/null"],
        python: |folder| pycuda(folder, python::simulated_interpreter(folder)?),
    };
    pytest::test(folder, expected, &suite)
}

fn sources(folder: &Folder) -> Result<PathBuf> {
    python::sources(folder, "pycuda.txt", "pycuda", VERSION)
}

/// Builds PyCUDA into the environment, linked to the simulator as the driver, if it is not there.
fn build(folder: &Folder) -> Result<()> {
    let sources = sources(folder)?;
    let toolkit = toolkit(folder)?;
    if python::packages(folder)?.join("pycuda").is_dir() {
        return Ok(());
    }
    println!("PyCUDA is built, which takes some minutes");
    let libraries = folder.built.join("pycuda/lib");
    fs::create_dir_all(&libraries)?;
    fs::copy(
        folder.driver.join("libcuda.so.1"),
        libraries.join("libcuda.so"),
    )?;
    fs::copy(
        toolkit.join("lib/libcurand.so.10"),
        libraries.join("libcurand.so"),
    )?;
    // PyCUDA looks for the device runtime here.
    if !toolkit.join("lib64").exists() {
        symlink("lib", toolkit.join("lib64"))?;
    }
    // The driver stands in for the runtime, which PyCUDA is linked to but does not call.
    let settings = format!(
        "USE_SHIPPED_BOOST = True\nCUDA_ROOT = {toolkit:?}\nCUDADRV_LIB_DIR = [{libraries:?}]\n\
         CUDART_LIB_DIR = [{libraries:?}]\nCUDART_LIBNAME = ['cuda']\nCURAND_LIB_DIR = [{libraries:?}]\n"
    );
    fs::write(sources.join("siteconf.py"), settings)?;
    let mut pip = python::pip(folder);
    run_all(
        pip.args(["install", "--no-deps", "--no-build-isolation"])
            .arg(&sources),
    )
}

/// Sets where PyCUDA finds nvcc and libraries, and where it keeps compiled kernels.
fn pycuda(folder: &Folder, mut python: Command) -> Result<Command> {
    let toolkit = toolkit(folder)?;
    let cache = folder.built.join("pycuda/kernels");
    fs::create_dir_all(&cache)?;
    with_driver(&mut python, folder, &[&toolkit.join("lib")])?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(
        std::iter::once(toolkit.join("bin")).chain(std::env::split_paths(&path)),
    )?;
    python.env("PATH", path).env("PYCUDA_CACHE_DIR", cache);
    Ok(python)
}

fn toolkit(folder: &Folder) -> Result<PathBuf> {
    Ok(python::packages(folder)?.join("nvidia/cu13"))
}
