//! The tests of cuda-bindings and cuda-core, which their packages leave out.

use std::process::Command;

use anyhow::Result;

use super::expected::{Expected, Outcomes};
use super::pytest::{self, Suite};
use super::repository::CUDA_PYTHON;
use super::{DEVICES, Folder, python};

/// The files of cuda-bindings whose tests run; the others test libraries that are no part of the
/// driver.
const BINDINGS: &[&str] = &["test_basics.py", "test_cuda.py", "test_kernelParams.py"];

/// The files of cuda-core whose tests run; the others test what does not depend on the device, or
/// NVIDIA's management library.
const CORE: &[&str] = &[
    "graph",
    "memory",
    "memory_ipc",
    "test_checkpoint.py",
    "test_context.py",
    "test_device.py",
    "test_event.py",
    "test_green_context.py",
    "test_host.py",
    "test_launcher.py",
    "test_linker.py",
    "test_memory.py",
    "test_memory_peer_access.py",
    "test_module.py",
    "test_object_protocols.py",
    "test_program.py",
    "test_stream.py",
    "test_tensor_map.py",
    "test_texture_surface.py",
    "test_utils.py",
    "test_utils_dlpack.py",
];

/// Runs the tests of cuda-bindings.
pub(super) fn test_bindings(folder: &Folder, expected: &Expected) -> Result<Outcomes> {
    let suite = Suite {
        root: CUDA_PYTHON.sources(folder).join("cuda_bindings/tests"),
        files: BINDINGS,
        plugin: None,
        // The settings require a plugin that measures times, which these files do not use.
        options: &["-o", "addopts=", "-o", "required_plugins="],
        python: interpreter,
    };
    pytest::test(folder, expected, &suite)
}

/// Runs the tests of cuda-core.
pub(super) fn test_core(folder: &Folder, expected: &Expected) -> Result<Outcomes> {
    let suite = Suite {
        root: CUDA_PYTHON.sources(folder).join("cuda_core/tests"),
        files: CORE,
        plugin: None,
        options: &["-o", "addopts="],
        python: |folder| {
            let mut python = interpreter(folder)?;
            python.envs([DEVICES]);
            Ok(python)
        },
    };
    pytest::test(folder, expected, &suite)
}

/// Returns the interpreter, which starts with a module that replaces what the simulator lacks.
fn interpreter(folder: &Folder) -> Result<Command> {
    let mut python = python::simulated_interpreter(folder)?;
    let modules = [
        folder.sources.join("cuda-python"),
        folder.sources.join("python"),
    ];
    python.env("PYTHONPATH", std::env::join_paths(modules)?);
    Ok(python)
}
