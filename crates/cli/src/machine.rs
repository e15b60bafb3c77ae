//! The device of a command: a GPU of this machine, or a simulated one.

use std::io::{self, Write as _};

use anyhow::{Context as _, Error, Result};
use clap::ValueEnum;
use curium::driver;
use curium::prelude::*;
use curium_sim::{Config, Simulator};

/// The value of `--device`.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum DeviceChoice {
    /// A GPU if one is usable, otherwise the simulator
    Auto,
    /// A GPU, or an error
    Gpu,
    /// The simulator: a CUDA driver on the CPU
    Sim,
}

/// A usable driver: that of this machine, or the simulator.
pub(crate) struct Machine {
    driver: Driver,
    simulated: Option<Reason>,
}

/// The reason why the simulator is used.
pub(crate) enum Reason {
    /// The user requested it.
    AskedFor,
    /// No GPU is usable.
    NoGpu(Error),
}

impl Machine {
    /// Opens the requested driver and prepares it for the command. With [`DeviceChoice::Auto`], a
    /// GPU on which `prepare` fails is not usable.
    ///
    /// # Errors
    ///
    /// Returns an error if a GPU is requested and none is usable, if the simulator fails to start,
    /// and the errors of `prepare`.
    pub(crate) fn open<T>(
        choice: DeviceChoice,
        prepare: impl Fn(&Driver) -> Result<T>,
    ) -> Result<(Self, T)> {
        match choice {
            DeviceChoice::Gpu => Self::gpu(&prepare).context("no usable GPU"),
            DeviceChoice::Sim => Self::simulator(Reason::AskedFor, &prepare),
            DeviceChoice::Auto => {
                Self::gpu(&prepare).or_else(|error| Self::simulator(Reason::NoGpu(error), &prepare))
            }
        }
    }

    /// Returns the driver.
    pub(crate) fn driver(&self) -> &Driver {
        &self.driver
    }

    /// Returns the reason for simulated devices, if they are simulated.
    pub(crate) fn simulated(&self) -> Option<&Reason> {
        self.simulated.as_ref()
    }

    /// Reports the fallback to the simulator with its reason: in one line, or in full.
    pub(crate) fn announce(&self, verbose: bool) {
        if let Some(reason @ Reason::NoGpu(error)) = &self.simulated {
            let why = if verbose {
                format!("{error:#}")
            } else {
                reason.in_brief() + " (the command `doctor` explains)"
            };
            // Goes to stderr, because the report may go elsewhere. No receiver may be left.
            let _ = writeln!(
                io::stderr(),
                "No usable GPU; falling back to the simulator: {why}"
            );
        }
    }

    fn gpu<T>(prepare: impl Fn(&Driver) -> Result<T>) -> Result<(Self, T)> {
        let driver = Driver::load()?;
        let prepared = prepare(&driver)?;
        Ok((
            Self {
                driver,
                simulated: None,
            },
            prepared,
        ))
    }

    fn simulator<T>(reason: Reason, prepare: impl Fn(&Driver) -> Result<T>) -> Result<(Self, T)> {
        let driver = simulated_driver()?;
        let prepared = prepare(&driver)?;
        Ok((
            Self {
                driver,
                simulated: Some(reason),
            },
            prepared,
        ))
    }
}

/// Returns a simulated driver with the settings of the environment.
///
/// # Errors
///
/// Returns an error if a variable is invalid, or the simulator fails to start.
pub(crate) fn simulated_driver() -> Result<Driver> {
    let simulator =
        Simulator::new(Config::from_environment()?).context("the simulator failed to start")?;
    let api = simulator.api();
    // SAFETY: the simulator implements the functions of the driver, and the driver keeps it for as
    // long as they are used.
    Ok(unsafe { Driver::from_api_with_owner(api, simulator) }?)
}

impl Reason {
    /// Returns the reason in one line.
    pub(crate) fn in_brief(&self) -> String {
        match self {
            Self::AskedFor => "requested with --device sim".to_owned(),
            Self::NoGpu(error) if matches!(error.downcast_ref(), Some(driver::Error::Load(_))) => {
                "no CUDA driver could be loaded".to_owned()
            }
            Self::NoGpu(error) => error
                .to_string()
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_is_one_line() {
        let reason = Reason::NoGpu(Error::msg(
            "cuInit: no CUDA-capable device is detected (CUDA_ERROR_NO_DEVICE = 100)\nand a log",
        ));
        assert_eq!(
            reason.in_brief(),
            "cuInit: no CUDA-capable device is detected (CUDA_ERROR_NO_DEVICE = 100)"
        );
    }

    #[test]
    fn unsupported_set_up_on_the_simulator_is_an_error() {
        let opened = Machine::open(DeviceChoice::Sim, |driver| {
            Ok(driver.device(1_000).map(|_| ())?)
        });
        assert!(opened.is_err());
    }
}
