//! Where the kernel of the demo runs.

use anyhow::{Result, ensure};
use curium::driver::ComputeCapability;
use curium::prelude::*;

use crate::place::{DeviceChoice, Place, Reason};

/// What the kernel is compiled for.
const NEEDED: ComputeCapability = ComputeCapability { major: 7, minor: 5 };

/// A device with a context, ready for work.
pub(super) struct Stage {
    place: Place,
    context: Context,
    name: String,
    compute_capability: ComputeCapability,
}

impl Stage {
    /// Opens the device that was asked for.
    ///
    /// # Errors
    ///
    /// If a GPU was asked for and there is none that serves, or if the simulator cannot start.
    pub(super) fn open(choice: DeviceChoice) -> Result<Self> {
        let (place, (context, name, compute_capability)) = Place::open(choice, |driver| {
            let device = driver.device(0)?;
            let (name, found) = (device.name()?, device.compute_capability()?);
            ensure!(found >= NEEDED, "{name} has compute capability {found}, and the kernel needs {NEEDED}");
            Ok((device.primary_context()?, name, found))
        })?;
        Ok(Self { place, context, name, compute_capability })
    }

    /// The name of the device.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The context that work is done in.
    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    /// The version of the device's architecture.
    pub(super) fn compute_capability(&self) -> ComputeCapability {
        self.compute_capability
    }

    /// Why the device is simulated, if it is.
    pub(super) fn simulated(&self) -> Option<&Reason> {
        self.place.simulated()
    }

    /// Says that the simulator steps in for a GPU.
    pub(super) fn announce(&self, verbose: bool) {
        self.place.announce(verbose);
    }

    /// The most pixels that one launch computes. A GPU takes nearly any picture at once; the simulator takes a while for
    /// these, and the user wants to see that it gets on.
    pub(super) fn pixels_per_launch(&self) -> usize {
        if self.simulated().is_some() { 1 << 16 } else { 1 << 26 }
    }
}
