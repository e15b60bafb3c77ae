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

/// The simulated device.
#[derive(Clone, Copy)]
pub(super) enum Device {
    /// Compute capability 9.0, with `wgmma`.
    H100,
    /// Compute capability 10.0, with `tcgen05`.
    B200,
}

/// Runs one of the tests.
pub(super) fn run(folder: &Folder, device: Device) -> Result<()> {
    let mut pytest = device.interpreter(folder)?;
    pytest.args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider"]);
    pytest.arg(folder.sources.join("triton/test_rows.py::test_add"));
    run_all(&mut pytest)
}

/// Runs the tests of this repository.
pub(super) fn test(folder: &Folder, expected: &Expected, device: Device) -> Result<Outcomes> {
    let suite = Suite {
        root: folder.sources.join("triton"),
        files: &[],
        plugin: None,
        options: &[],
        python: match device {
            Device::H100 => |folder| Device::H100.interpreter(folder),
            Device::B200 => |folder| Device::B200.interpreter(folder),
        },
    };
    pytest::test(folder, expected, &suite)
}

impl Device {
    fn interpreter(self, folder: &Folder) -> Result<Command> {
        let model = match self {
            Self::H100 => "H100",
            Self::B200 => "B200",
        };
        let mut python = python::simulated_interpreter(folder)?;
        python
            .envs(CHECKS)
            .env("CURIUM_SIM_DEVICE_MODEL", model)
            .env("TRITON_CACHE_DIR", folder.built.join("triton-kernels"));
        Ok(python)
    }
}
