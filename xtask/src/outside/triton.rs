//! Triton, which compiles without a GPU. Its package contains no tests: those of `outside/triton`
//! compare the kernels of its tutorials with NumPy, under the checks for races and uninitialized
//! memory.

use std::process::Command;

use anyhow::Result;

use super::expected::{Expected, Outcomes};
use super::pytest::{self, Suite};
use super::{CHECKS, Folder, python};

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
    suite(folder, device).run_selected(folder, "test_rows.py", "test_add")
}

/// Runs the tests of this repository.
pub(super) fn test(folder: &Folder, expected: &Expected, device: Device) -> Result<Outcomes> {
    pytest::test(folder, expected, &suite(folder, device))
}

fn suite(folder: &Folder, device: Device) -> Suite {
    let python: fn(&Folder) -> Result<Command> = match device {
        Device::H100 => |folder| Device::H100.interpreter(folder),
        Device::B200 => |folder| Device::B200.interpreter(folder),
    };
    Suite::from_repository(folder, "triton", python)
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
