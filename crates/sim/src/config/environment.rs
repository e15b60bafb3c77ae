//! Settings from the environment, for programs that load the simulator as the driver.

use std::str::FromStr;
use std::{env, fmt};

use curium_sys::{CudaVersion, Function};
use thiserror::Error;

use crate::config::Config;

/// A variable of the environment has a value that makes no sense.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{variable} is `{value}`, which is not {expected}")]
#[non_exhaustive]
pub struct EnvironmentError {
    /// The name of the variable.
    pub variable: &'static str,
    /// Its value.
    pub value: String,
    /// What its value should be.
    pub expected: &'static str,
}

impl Config {
    /// The default settings, changed by the variables of the environment.
    ///
    /// | variable | value |
    /// |---|---|
    /// | `CURIUM_SIM_DEVICES` | how many devices there are |
    /// | `CURIUM_SIM_MEMORY` | bytes of memory on each device |
    /// | `CURIUM_SIM_DRIVER_VERSION` | CUDA version of the driver, such as `12.4` |
    /// | `CURIUM_SIM_SEED` | a number that decides the order between streams |
    /// | `CURIUM_SIM_WORKERS` | how many threads work |
    /// | `CURIUM_SIM_WITHOUT` | functions to leave out, with commas between them |
    ///
    /// The simulator's library also heeds `CURIUM_SIM_TRACE`, the file that calls are written to for trace viewers.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] names the variable whose value makes no sense.
    pub fn from_environment() -> Result<Self, EnvironmentError> {
        Self::from_variables(|name| env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self, EnvironmentError> {
        let mut config = Self::new();
        let number = "a number";
        set(&variable, "CURIUM_SIM_DEVICES", number, parse, |value| config.devices = value)?;
        set(&variable, "CURIUM_SIM_MEMORY", "a number of bytes", parse, |value| config.memory_budget = value)?;
        set(&variable, "CURIUM_SIM_DRIVER_VERSION", "a CUDA version such as 12.4", version, |value| {
            config.driver_version = value;
        })?;
        set(&variable, "CURIUM_SIM_SEED", number, parse, |value| config.seed = value)?;
        set(&variable, "CURIUM_SIM_WORKERS", "a number of threads", workers, |value| config.workers = value)?;
        set(&variable, "CURIUM_SIM_WITHOUT", "a list of functions of the driver", functions, |value| {
            config.missing = value;
        })?;
        Ok(config)
    }
}

/// Takes over one variable if it is set.
fn set<T>(
    variable: &impl Fn(&str) -> Option<String>,
    name: &'static str,
    expected: &'static str,
    parse: impl Fn(&str) -> Option<T>,
    assign: impl FnOnce(T),
) -> Result<(), EnvironmentError> {
    let Some(value) = variable(name) else { return Ok(()) };
    match parse(value.trim()) {
        Some(parsed) => assign(parsed),
        None => return Err(EnvironmentError { variable: name, value, expected }),
    }
    Ok(())
}

fn parse<T: FromStr<Err: fmt::Debug>>(value: &str) -> Option<T> {
    value.parse().ok()
}

fn workers(value: &str) -> Option<u32> {
    parse(value).filter(|workers| *workers > 0)
}

fn version(value: &str) -> Option<CudaVersion> {
    let (major, minor) = value.split_once('.')?;
    let version =
        CudaVersion::new(parse(major).filter(|major| *major < 100)?, parse(minor).filter(|minor| *minor < 10)?);
    (CudaVersion::OLDEST_SUPPORTED..=CudaVersion::NEWEST_KNOWN).contains(&version).then_some(version)
}

fn functions(value: &str) -> Option<Vec<Function>> {
    value.split(',').map(str::trim).filter(|name| !name.is_empty()).map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &'static str, value: &'static str) -> Result<Config, EnvironmentError> {
        Config::from_variables(|asked| (asked == name).then(|| value.to_owned()))
    }

    #[test]
    fn variables_change_the_settings() {
        assert_eq!(with("CURIUM_SIM_DEVICES", "3").map(|config| config.devices), Ok(3));
        assert_eq!(with("CURIUM_SIM_MEMORY", " 4096 ").map(|config| config.memory_budget), Ok(4096));
        let version = with("CURIUM_SIM_DRIVER_VERSION", "12.4").map(|config| config.driver_version);
        assert_eq!(version, Ok(CudaVersion::new(12, 4)));
        let missing = with("CURIUM_SIM_WITHOUT", "cuInit, cuMemAlloc_v2").map(|config| config.missing);
        assert_eq!(missing, Ok(vec![Function::cuInit, Function::cuMemAlloc_v2]));
    }

    #[test]
    fn value_that_makes_no_sense_is_named() {
        for (name, value) in [
            ("CURIUM_SIM_DEVICES", "many"),
            ("CURIUM_SIM_WORKERS", "0"),
            ("CURIUM_SIM_DRIVER_VERSION", "10.0"),
            ("CURIUM_SIM_WITHOUT", "cuNothing"),
        ] {
            let error = with(name, value).expect_err("the value makes no sense").to_string();
            assert!(error.contains(name) && error.contains(value), "{error}");
        }
    }
}
