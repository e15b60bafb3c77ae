//! NVIDIA Warp: the sources of its native library in its package, built for the CUDA runtime over
//! the driver API, and its own tests.

use std::fs;
use std::process::Command;

use anyhow::Result;

use super::expected::{Expected, Outcomes};
use super::pytest::{self, Suite};
use super::{Folder, python, run_all, with_driver};

/// The files whose tests run; the others test what does not depend on the device, or take hours.
const FILES: &[&str] = &[
    "cuda/test_array_fill_capture.py",
    "cuda/test_async.py",
    "cuda/test_capture_mode.py",
    "cuda/test_capture_release.py",
    "cuda/test_cluster_dim.py",
    "cuda/test_conditional_captures.py",
    "cuda/test_kernel_attributes.py",
    "cuda/test_mempool.py",
    "cuda/test_pinned.py",
    "cuda/test_streams.py",
    "cuda/test_texture.py",
    "matrix/test_mat_basics.py",
    "matrix/test_mat_elementwise_ops.py",
    "matrix/test_mat_linalg.py",
    "test_arithmetic.py",
    "test_array.py",
    "test_array_reduce.py",
    "test_atomic.py",
    "test_atomic_bitwise.py",
    "test_atomic_cas.py",
    "test_bf16.py",
    "test_copy.py",
    "test_fp16.py",
    "test_graph.py",
    "test_launch.py",
    "test_math.py",
    "test_print.py",
    "test_rounding.py",
    "test_special_values.py",
    "test_vec.py",
    "tile/test_tile.py",
    "tile/test_tile_atomic_bitwise.py",
    "tile/test_tile_load.py",
    "tile/test_tile_reduce.py",
    "tile/test_tile_shared_memory.py",
    "tile/test_tile_sort.py",
];

/// Builds the library, and runs the program of this repository.
pub(super) fn run(folder: &Folder) -> Result<()> {
    build(folder)?;
    run_all(&mut warp(
        folder,
        python::command(folder, "warp_arrays.py")?,
    )?)
}

/// Runs the package's tests.
pub(super) fn test(folder: &Folder, expected: &Expected) -> Result<Outcomes> {
    let suite = Suite {
        root: python::packages(folder)?.join("warp/tests"),
        files: FILES,
        plugin: Some("warp_tests"),
        // Warp captures the output of kernels itself. Its test functions are methods, although
        // their names are those of functions.
        options: &["-s", "-o", "python_functions=none"],
        python: |folder| warp(folder, python::simulated_interpreter(folder)?),
    };
    pytest::test(folder, expected, &suite)
}

/// Builds the native library into the package if it is not the one that was built before.
fn build(folder: &Folder) -> Result<()> {
    let built = folder.built.join("warp/warp.so");
    let installed = python::packages(folder)?.join("warp/bin/warp.so");
    if fs::metadata(&built).is_ok_and(|built| {
        fs::metadata(&installed).is_ok_and(|installed| installed.len() == built.len())
    }) {
        return Ok(());
    }
    println!("Warp's native library is built, which takes some minutes");
    let mut build = python::command(folder, "build_warp.py")?;
    run_all(build.arg(&folder.driver).arg(folder.built.join("warp")))
}

/// Sets where Warp finds its libraries, and where it keeps compiled kernels.
fn warp(folder: &Folder, mut python: Command) -> Result<Command> {
    with_driver(&mut python, folder, &[&python::nvrtc(folder)?])?;
    python.env("WARP_CACHE_PATH", folder.built.join("warp/kernels"));
    Ok(python)
}
