//! tinygrad's CUDA backend, and its own tests, which the archive of its sources carries.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::expected::{Expected, Outcomes};
use super::pytest::{self, Suite};
use super::{Folder, python, run_all};

const VERSION: &str = "0.12.0";

/// The files whose tests run. The others test what does not depend on the device, or need files
/// that the archive lacks.
const FILES: &[&str] = &[
    "test/test_arange.py",
    "test/test_assign.py",
    "test/test_custom_kernel.py",
    "test/test_dtype_alu.py",
    "test/test_edgecases.py",
    "test/test_graph.py",
    "test/test_jit.py",
    "test/test_linearizer.py",
    "test/test_ops.py",
    "test/test_optim.py",
    "test/test_randomness.py",
    "test/test_setitem.py",
    "test/test_softmax_fusion.py",
    "test/test_subbuffer.py",
    "test/test_symbolic_jit.py",
    "test/test_tiny.py",
    "test/test_transcendental.py",
    "test/test_uops.py",
];

/// The way in which tinygrad generates PTX.
#[derive(Clone, Copy)]
pub(super) enum Renderer {
    /// It generates CUDA C++, which NVRTC compiles.
    Cuda,
    /// It generates PTX itself.
    Ptx,
}

/// Runs the program of this repository.
pub(super) fn run(folder: &Folder, renderer: Renderer) -> Result<()> {
    run_all(&mut tinygrad(
        folder,
        renderer,
        python::command(folder, "tinygrad_arrays.py")?,
    )?)
}

/// Runs the tests.
pub(super) fn test(folder: &Folder, expected: &Expected, renderer: Renderer) -> Result<Outcomes> {
    let python = match renderer {
        Renderer::Cuda => |folder: &Folder| {
            tinygrad(
                folder,
                Renderer::Cuda,
                python::simulated_interpreter(folder)?,
            )
        },
        Renderer::Ptx => |folder: &Folder| {
            tinygrad(
                folder,
                Renderer::Ptx,
                python::simulated_interpreter(folder)?,
            )
        },
    };
    // Some tests draw their inputs at random.
    let options = &["-c", "/dev/null", "--hypothesis-seed=0"];
    let suite = Suite {
        root: sources(folder)?,
        files: FILES,
        plugin: None,
        options,
        python,
    };
    pytest::test(folder, expected, &suite)
}

/// Returns the folder of tinygrad, with stand-ins for modules of its tests that the archive lacks.
fn sources(folder: &Folder) -> Result<PathBuf> {
    let sources = python::sources(folder, "tinygrad.txt", "tinygrad", VERSION)?;
    fs::copy(
        folder.sources.join("tinygrad/helpers.py"),
        sources.join("test/helpers.py"),
    )?;
    // Python has a package of this name.
    fs::write(sources.join("test/__init__.py"), "")?;
    fs::create_dir_all(sources.join("extra/models"))?;
    fs::write(sources.join("extra/models/unet.py"), "ResBlock = None\n")?;
    Ok(sources)
}

/// Sets the renderer, and where tinygrad finds libraries and headers.
fn tinygrad(folder: &Folder, renderer: Renderer, mut python: Command) -> Result<Command> {
    let toolkit = toolkit(folder)?;
    let nvrtc = python::packages(folder)?.join("nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
    let path = std::env::join_paths([sources(folder)?, folder.sources.join("python")])?;
    python
        .env("PYTHONPATH", path)
        .env("CUDA_PATH", toolkit)
        .env("NVRTC_PATH", nvrtc);
    python
        .env("CC", folder.sources.join("tinygrad/cc.sh"))
        .env("CACHEDB", folder.built.join("tinygrad.db"));
    python.env("CUDA", "1").env(
        "CUDA_PTX",
        if matches!(renderer, Renderer::Ptx) {
            "1"
        } else {
            "0"
        },
    );
    Ok(python)
}

/// Makes the folder in which tinygrad looks for the driver and for headers.
fn toolkit(folder: &Folder) -> Result<PathBuf> {
    let toolkit = folder.built.join("tinygrad-cuda");
    fs::create_dir_all(&toolkit)?;
    let headers = python::packages(folder)?.join("nvidia/cuda_runtime/include");
    for (target, name) in [
        (folder.driver.join("libcuda.so.1"), "libcuda.so.1"),
        (headers, "include"),
    ] {
        let link = toolkit.join(name);
        if !link.exists() {
            std::os::unix::fs::symlink(target, link)?;
        }
    }
    Ok(toolkit)
}
