//! The device of the demo.

use anyhow::{Result, ensure};
use curium::driver::ComputeCapability;
use curium::prelude::*;

use crate::machine::{DeviceChoice, Machine, Reason};

/// The compute capability that the kernel is compiled for.
const NEEDED: ComputeCapability = ComputeCapability { major: 7, minor: 5 };

/// A device with a context, ready for work.
pub(super) struct Stage {
    machine: Machine,
    context: Context,
    name: String,
    compute_capability: ComputeCapability,
}

impl Stage {
    /// Opens the requested device.
    ///
    /// # Errors
    ///
    /// Returns an error if a GPU is requested and none is usable, or if the simulator fails to
    /// start.
    pub(super) fn open(choice: DeviceChoice) -> Result<Self> {
        let (machine, (context, name, compute_capability)) = Machine::open(choice, |driver| {
            let device = driver.device(0)?;
            let name = device.name()?;
            let capability = device.compute_capability()?;
            ensure!(
                capability >= NEEDED,
                "{name} has compute capability {capability}, and the kernel requires {NEEDED}"
            );
            Ok((device.primary_context()?, name, capability))
        })?;
        Ok(Self {
            machine,
            context,
            name,
            compute_capability,
        })
    }

    /// Returns the name of the device.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the driver.
    pub(super) fn driver(&self) -> &Driver {
        self.machine.driver()
    }

    /// Returns the context.
    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    /// Returns the compute capability of the device.
    pub(super) fn compute_capability(&self) -> ComputeCapability {
        self.compute_capability
    }

    /// Returns the reason for a simulated device, if it is simulated.
    pub(super) fn simulated(&self) -> Option<&Reason> {
        self.machine.simulated()
    }

    /// Reports the fallback to the simulator.
    pub(super) fn announce(&self, verbose: bool) {
        self.machine.announce(verbose);
    }

    /// Returns the largest number of pixels for one launch. The simulator gets smaller launches, so
    /// that the progress bar advances.
    pub(super) fn pixels_per_launch(&self) -> usize {
        if self.simulated().is_some() {
            1 << 16
        } else {
            1 << 26
        }
    }
}
