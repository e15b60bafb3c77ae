//! Where a command runs: on the GPUs of this machine, or on simulated ones.

use anyhow::{Context as _, Error, Result};
use clap::ValueEnum;
use curium::driver;
use curium::prelude::*;
use curium_sim::{Config, Simulator};

/// What the user asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum DeviceChoice {
    /// A GPU if there is one, else the simulator
    Auto,
    /// A GPU, or an error
    Gpu,
    /// The simulator: a CUDA driver on the CPU
    Sim,
}

/// A driver that serves.
pub(crate) struct Place {
    driver: Driver,
    simulated: Option<Reason>,
}

/// Why the simulator is used.
pub(crate) enum Reason {
    /// The user wants it.
    AskedFor,
    /// There is no GPU to use.
    NoGpu(Error),
}

impl Place {
    /// Opens the place that was asked for, and has `prepare` make what the command needs there. With [`DeviceChoice::Auto`] a GPU on
    /// which `prepare` fails is none.
    ///
    /// # Errors
    ///
    /// If a GPU was asked for and there is none, if the simulator cannot start, or those of `prepare`.
    pub(crate) fn open<T>(choice: DeviceChoice, prepare: impl Fn(&Driver) -> Result<T>) -> Result<(Self, T)> {
        let on_gpu = || Self::gpu(&prepare);
        let on_simulator = |reason| Self::simulator(reason, &prepare);
        match choice {
            DeviceChoice::Gpu => on_gpu().context("no GPU can be used"),
            DeviceChoice::Sim => on_simulator(Reason::AskedFor),
            DeviceChoice::Auto => on_gpu().or_else(|error| on_simulator(Reason::NoGpu(error))),
        }
    }

    /// The driver.
    pub(crate) fn driver(&self) -> &Driver {
        &self.driver
    }

    /// Why the devices are simulated, if they are.
    pub(crate) fn simulated(&self) -> Option<&Reason> {
        self.simulated.as_ref()
    }

    /// Says that the simulator steps in for a GPU, and why: in a line, or with all that is known.
    #[expect(clippy::print_stderr, reason = "the user must see this even if the report goes elsewhere")]
    pub(crate) fn announce(&self, verbose: bool) {
        if let Some(reason @ Reason::NoGpu(error)) = &self.simulated {
            let why = if verbose { format!("{error:#}") } else { reason.in_brief() + " (`curium doctor` says more)" };
            eprintln!("no GPU can be used, so the simulator takes its place: {why}");
        }
    }

    fn gpu<T>(prepare: impl Fn(&Driver) -> Result<T>) -> Result<(Self, T)> {
        let driver = Driver::load()?;
        let prepared = prepare(&driver)?;
        Ok((Self { driver, simulated: None }, prepared))
    }

    fn simulator<T>(reason: Reason, prepare: impl Fn(&Driver) -> Result<T>) -> Result<(Self, T)> {
        let driver = simulated_driver()?;
        let prepared = prepare(&driver)?;
        Ok((Self { driver, simulated: Some(reason) }, prepared))
    }
}

/// A simulated driver with the settings of the environment.
///
/// # Errors
///
/// If a variable makes no sense, or the simulator cannot start.
pub(crate) fn simulated_driver() -> Result<Driver> {
    let simulator = Simulator::new(Config::from_environment()?).context("the simulator cannot start")?;
    let api = simulator.api();
    // SAFETY: the simulator implements the functions of the driver, and the driver keeps it for as long as they are used.
    Ok(unsafe { Driver::from_api_with_owner(api, simulator) }?)
}

impl Reason {
    /// The reason in a line.
    pub(crate) fn in_brief(&self) -> String {
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
        let reason = Reason::NoGpu(Error::msg(
            "cuInit: no CUDA-capable device is detected (CUDA_ERROR_NO_DEVICE = 100)\nand a log",
        ));
        assert_eq!(reason.in_brief(), "cuInit: no CUDA-capable device is detected (CUDA_ERROR_NO_DEVICE = 100)");
    }

    #[test]
    fn what_cannot_be_prepared_on_the_simulator_is_an_error() {
        let opened = Place::open(DeviceChoice::Sim, |driver| Ok(driver.device(1_000).map(|_| ())?));
        assert!(opened.is_err());
    }
}
