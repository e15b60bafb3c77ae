//! Where the kernel runs: a GPU, or a simulated one.

use anyhow::{Context as _, Error, Result, ensure};
use clap::ValueEnum;
use curium::driver::{self, ComputeCapability};
use curium::prelude::*;
use curium_sim::{Config, Simulator};

/// What the kernel is compiled for.
const NEEDED: ComputeCapability = ComputeCapability { major: 7, minor: 5 };

/// What the user asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(super) enum Choice {
    /// A GPU if there is one, else the simulator
    Auto,
    /// A GPU, or an error
    Gpu,
    /// The simulator: a CUDA driver on the CPU
    Sim,
}

/// A device with a context, ready for work.
pub(super) struct Place {
    context: Context,
    name: String,
    compute_capability: ComputeCapability,
    simulated: Option<Reason>,
}

/// Why the simulator is used.
pub(super) enum Reason {
    /// The user wants it.
    AskedFor,
    /// There is no GPU to use.
    NoGpu(Error),
}

impl Place {
    /// Opens the place that was asked for.
    ///
    /// # Errors
    ///
    /// If a GPU was asked for and there is none, or if the simulator cannot start.
    pub(super) fn open(choice: Choice) -> Result<Self> {
        match choice {
            Choice::Gpu => Self::gpu().context("no GPU can be used"),
            Choice::Sim => Self::simulator(Reason::AskedFor),
            Choice::Auto => Self::gpu().or_else(|error| Self::simulator(Reason::NoGpu(error))),
        }
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
        self.simulated.as_ref()
    }

    /// The most pixels that one launch computes. A GPU takes nearly any picture at once; the simulator takes a while for
    /// these, and the user wants to see that it gets on.
    pub(super) fn pixels_per_launch(&self) -> usize {
        if self.simulated.is_some() { 1 << 16 } else { 1 << 26 }
    }

    /// Says that the simulator steps in for a GPU, and why: in a line, or with all that is known.
    #[expect(clippy::print_stderr, reason = "the user must see this even if the report goes elsewhere")]
    pub(super) fn announce(&self, verbose: bool) {
        if let Some(reason @ Reason::NoGpu(error)) = &self.simulated {
            let why = if verbose { format!("{error:#}") } else { reason.in_brief() + " (--verbose says more)" };
            eprintln!("no GPU can be used, so the kernel runs on the simulator: {why}");
        }
    }

    fn gpu() -> Result<Self> {
        let place = Self::on(&Device::first()?, None)?;
        let (name, found) = (&place.name, place.compute_capability);
        ensure!(found >= NEEDED, "{name} has compute capability {found}, and the kernel needs {NEEDED}");
        Ok(place)
    }

    fn simulator(reason: Reason) -> Result<Self> {
        let simulator = Simulator::new(Config::new()).context("the simulator cannot start")?;
        let api = simulator.api();
        // SAFETY: the simulator implements the functions of the driver, and the driver keeps it for as long as they are used.
        let driver = unsafe { Driver::from_api_with_owner(api, simulator) }?;
        Self::on(&driver.device(0)?, Some(reason))
    }

    fn on(device: &Device, simulated: Option<Reason>) -> Result<Self> {
        let (name, compute_capability) = (device.name()?, device.compute_capability()?);
        Ok(Self { context: device.primary_context()?, name, compute_capability, simulated })
    }
}

impl Reason {
    /// The reason in a line.
    pub(super) fn in_brief(&self) -> String {
        match self {
            Self::AskedFor => "asked for with --device sim".to_owned(),
            Self::NoGpu(error) if matches!(error.downcast_ref(), Some(driver::Error::Load(_))) => {
                "no CUDA driver could be loaded".to_owned()
            }
            Self::NoGpu(error) => error.to_string().lines().next().unwrap_or_default().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_is_one_line_of_whatever_error() {
        let reason = Reason::NoGpu(Error::msg("cuInit failed with CUDA_ERROR_NO_DEVICE (100)\nand a log"));
        assert_eq!(reason.in_brief(), "cuInit failed with CUDA_ERROR_NO_DEVICE (100)");
    }
}
