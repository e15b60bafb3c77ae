//! Settings from the environment, for programs that load the simulator as the driver.

use std::str::FromStr;
use std::time::Duration;
use std::{env, fmt};

use curium_sys::{CudaVersion, Function};
use thiserror::Error;

use crate::config::{Checks, Config, DeviceModel, Platform};
use crate::fault::{FaultPlan, FaultSyntaxError};

/// An environment variable has an invalid value.
#[derive(Clone, Eq, Error, PartialEq)]
#[error("{variable}: invalid value `{value}`; expected {expected}")]
#[non_exhaustive]
pub struct EnvironmentError {
    /// The name of the variable.
    pub variable: &'static str,
    /// Its value.
    pub value: String,
    /// The expected form of the value.
    pub expected: String,
}

impl fmt::Debug for EnvironmentError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl Config {
    /// Returns the default settings, changed by the variables of the environment.
    ///
    /// | variable | value |
    /// |---|---|
    /// | `CURIUM_SIM_DEVICES` | number of devices |
    /// | `CURIUM_SIM_DEVICE_MODEL` | model of the devices, such as `T4`, `A100` or `RTX 4090`: the name of a [`DeviceModel`] |
    /// | `CURIUM_SIM_PLATFORM` | operating system of the driver: `linux`, `windows` or `wsl` |
    /// | `CURIUM_SIM_MEMORY` | bytes of memory on each device; `K`, `M` and `G` stand for powers of 1024 |
    /// | `CURIUM_SIM_DRIVER_VERSION` | CUDA version of the driver, such as `12.4` |
    /// | `CURIUM_SIM_SEED` | seed of the order between streams |
    /// | `CURIUM_SIM_WORKERS` | number of worker threads |
    /// | `CURIUM_SIM_WITHOUT` | functions to leave out, separated by commas |
    /// | `CURIUM_SIM_FAULTS` | faults separated by commas, in the syntax of [`Fault`](crate::Fault), such as `cuMemAlloc_v2@2=OUT_OF_MEMORY` |
    /// | `CURIUM_SIM_CHECKS` | reaction to invalid accesses: `error`, `quiet`, `report` or `abort` |
    /// | `CURIUM_SIM_RACES` | race checks: `on` or `off` |
    /// | `CURIUM_SIM_UNINITIALIZED` | checks for reads of uninitialized memory: `on` or `off` |
    /// | `CURIUM_SIM_INSTRUCTION_LIMIT` | number of instructions that the warps of a launch may execute |
    /// | `CURIUM_SIM_TIME_LIMIT` | seconds that a launch may take |
    /// | `CURIUM_SIM_BACKTRACES` | stacks of the calls that created objects: `on` or `off` |
    ///
    /// The simulator's library also reads `CURIUM_SIM_TRACE`, the file to which calls are written
    /// for trace viewers.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] names the variable with the invalid value.
    pub fn from_environment() -> Result<Self, EnvironmentError> {
        Self::from_variables(|name| {
            env::var_os(name).map(|value| value.to_string_lossy().into_owned())
        })
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self, EnvironmentError> {
        let mut config = Self::new();
        let number = "a number";
        set(&variable, "CURIUM_SIM_DEVICES", number, parse, |value| {
            config.devices = value;
        })?;
        set(
            &variable,
            "CURIUM_SIM_DEVICE_MODEL",
            &models(),
            model,
            |value| {
                config = config.clone().with_device_model(value);
            },
        )?;
        set(
            &variable,
            "CURIUM_SIM_PLATFORM",
            "linux, windows or wsl",
            platform,
            |value| config.platform = value,
        )?;
        set(
            &variable,
            "CURIUM_SIM_MEMORY",
            "a number of bytes such as 4096 or 2G",
            bytes,
            |value| {
                config.memory_budget = value;
            },
        )?;
        set(
            &variable,
            "CURIUM_SIM_DRIVER_VERSION",
            "a CUDA version such as 12.4",
            version,
            |value| {
                config.driver_version = value;
            },
        )?;
        set(&variable, "CURIUM_SIM_SEED", number, parse, |value| {
            config.seed = value;
        })?;
        set(
            &variable,
            "CURIUM_SIM_WORKERS",
            "a number of threads",
            workers,
            |value| config.workers = value,
        )?;
        set(
            &variable,
            "CURIUM_SIM_WITHOUT",
            "a list of functions of the driver",
            functions,
            |value| {
                config.missing = value;
            },
        )?;
        set(
            &variable,
            "CURIUM_SIM_CHECKS",
            "error, quiet, report or abort",
            checks,
            |value| config.checks = value,
        )?;
        set(
            &variable,
            "CURIUM_SIM_RACES",
            "on or off",
            switch,
            |value| config.race_checks = value,
        )?;
        set(
            &variable,
            "CURIUM_SIM_UNINITIALIZED",
            "on or off",
            switch,
            |value| config.uninitialized_checks = value,
        )?;
        set(
            &variable,
            "CURIUM_SIM_INSTRUCTION_LIMIT",
            "a number of instructions",
            parse,
            |value| config.instruction_limit = Some(value),
        )?;
        set(
            &variable,
            "CURIUM_SIM_TIME_LIMIT",
            "a number of seconds such as 10 or 0.5",
            seconds,
            |value| config.time_limit = Some(value),
        )?;
        set(
            &variable,
            "CURIUM_SIM_BACKTRACES",
            "on or off",
            switch,
            |value| config.backtraces = value,
        )?;
        config.faults = faults(&variable)?;
        Ok(config)
    }
}

/// Applies one variable if it is set.
fn set<T>(
    variable: &impl Fn(&str) -> Option<String>,
    name: &'static str,
    expected: &str,
    parse: impl Fn(&str) -> Option<T>,
    assign: impl FnOnce(T),
) -> Result<(), EnvironmentError> {
    let Some(value) = variable(name) else {
        return Ok(());
    };
    match parse(value.trim()) {
        Some(parsed) => assign(parsed),
        None => {
            return Err(EnvironmentError {
                variable: name,
                value,
                expected: expected.to_owned(),
            });
        }
    }
    Ok(())
}

fn parse<T: FromStr<Err: fmt::Debug>>(value: &str) -> Option<T> {
    value.parse().ok()
}

fn seconds(value: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(value.parse().ok()?).ok()
}

/// Returns the faults of the environment; an error names the invalid one.
fn faults(variable: &impl Fn(&str) -> Option<String>) -> Result<FaultPlan, EnvironmentError> {
    let name = "CURIUM_SIM_FAULTS";
    let Some(value) = variable(name) else {
        return Ok(FaultPlan::new());
    };
    value.parse().map_err(|error: FaultSyntaxError| {
        let expected = format!("a list of faults such as cuMemAlloc_v2@2=OUT_OF_MEMORY ({error})");
        EnvironmentError {
            variable: name,
            value,
            expected,
        }
    })
}

fn platform(value: &str) -> Option<Platform> {
    Platform::ALL
        .into_iter()
        .find(|platform| platform.name().eq_ignore_ascii_case(value))
}

/// Returns the names of the models, for an error.
fn models() -> String {
    let names: Vec<_> = DeviceModel::all().map(DeviceModel::hardware).collect();
    names.join(", ")
}

/// Returns the model of a name, in which spaces, hyphens and case do not count: `rtx4090` and
/// `RTX 4090` are the same.
fn model(value: &str) -> Option<DeviceModel> {
    DeviceModel::all().find(|model| normalize(model.hardware()) == normalize(value))
}

/// Returns the letters and digits of a name in lower case.
fn normalize(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_lowercase())
        .collect()
}

fn bytes(value: &str) -> Option<u64> {
    let unit = ["K", "M", "G"]
        .iter()
        .position(|unit| value.ends_with(unit));
    let digits = unit.map_or(value, |_| &value[..value.len() - 1]);
    let shift = unit.map_or(0, |unit| 10 * (unit as u32 + 1));
    parse::<u64>(digits.trim())?.checked_mul(1 << shift)
}

fn checks(value: &str) -> Option<Checks> {
    match value {
        "error" => Some(Checks::Error),
        "quiet" => Some(Checks::Quiet),
        "report" => Some(Checks::Report),
        "abort" => Some(Checks::Abort),
        _ => None,
    }
}

fn switch(value: &str) -> Option<bool> {
    match value {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

fn workers(value: &str) -> Option<u32> {
    parse(value).filter(|workers| *workers > 0)
}

fn version(value: &str) -> Option<CudaVersion> {
    let (major, minor) = value.split_once('.')?;
    let version = CudaVersion::new(
        parse(major).filter(|major| *major < 100)?,
        parse(minor).filter(|minor| *minor < 10)?,
    );
    (CudaVersion::OLDEST_SUPPORTED..=CudaVersion::NEWEST_KNOWN)
        .contains(&version)
        .then_some(version)
}

fn functions(value: &str) -> Option<Vec<Function>> {
    value
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(parse)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &'static str, value: &'static str) -> Result<Config, EnvironmentError> {
        Config::from_variables(|asked| (asked == name).then(|| value.to_owned()))
    }

    #[test]
    fn variables_change_the_settings() {
        assert_eq!(
            with("CURIUM_SIM_DEVICES", "3").map(|config| config.devices),
            Ok(3)
        );
        assert_eq!(
            with("CURIUM_SIM_MEMORY", " 4096 ").map(|config| config.memory_budget),
            Ok(4096)
        );
        let version = with("CURIUM_SIM_DRIVER_VERSION", "12.4").map(|config| config.driver_version);
        assert_eq!(version, Ok(CudaVersion::new(12, 4)));
        assert_eq!(
            with("CURIUM_SIM_MEMORY", "3G").map(|config| config.memory_budget),
            Ok(3 << 30)
        );
        assert_eq!(
            with("CURIUM_SIM_RACES", "on").map(|config| config.race_checks),
            Ok(true)
        );
        assert_eq!(
            with("CURIUM_SIM_UNINITIALIZED", "on").map(|config| config.uninitialized_checks),
            Ok(true)
        );
        assert_eq!(
            with("CURIUM_SIM_BACKTRACES", "on").map(|config| config.backtraces),
            Ok(true)
        );
        assert_eq!(
            with("CURIUM_SIM_INSTRUCTION_LIMIT", "1000").map(|config| config.instruction_limit),
            Ok(Some(1000))
        );
        assert_eq!(
            with("CURIUM_SIM_TIME_LIMIT", "0.5").map(|config| config.time_limit),
            Ok(Some(Duration::from_millis(500)))
        );
        for (text, checks) in [
            ("error", Checks::Error),
            ("report", Checks::Report),
            ("abort", Checks::Abort),
        ] {
            assert_eq!(
                with("CURIUM_SIM_CHECKS", text).map(|config| config.checks),
                Ok(checks)
            );
        }
        let model = with("CURIUM_SIM_DEVICE_MODEL", "a100").expect("invalid model");
        assert_eq!(
            (model.device_model, model.memory_budget),
            (DeviceModel::A100, DeviceModel::A100.memory())
        );
        assert_eq!(
            with("CURIUM_SIM_PLATFORM", "WSL").map(|config| config.platform),
            Ok(Platform::Wsl)
        );
        let missing =
            with("CURIUM_SIM_WITHOUT", "cuInit, cuMemAlloc_v2").map(|config| config.missing);
        assert_eq!(missing, Ok(vec![Function::cuInit, Function::cuMemAlloc_v2]));
    }

    #[test]
    fn value_that_makes_no_sense_is_named() {
        for (name, value) in [
            ("CURIUM_SIM_DEVICES", "many"),
            ("CURIUM_SIM_WORKERS", "0"),
            ("CURIUM_SIM_DRIVER_VERSION", "10.0"),
            ("CURIUM_SIM_WITHOUT", "cuNothing"),
            ("CURIUM_SIM_MEMORY", "99999999999G"),
            ("CURIUM_SIM_DEVICE_MODEL", "K80"),
            ("CURIUM_SIM_PLATFORM", "macos"),
            ("CURIUM_SIM_CHECKS", "maybe"),
            ("CURIUM_SIM_RACES", "maybe"),
            ("CURIUM_SIM_UNINITIALIZED", "1"),
            ("CURIUM_SIM_INSTRUCTION_LIMIT", "many"),
            ("CURIUM_SIM_TIME_LIMIT", "-1"),
            ("CURIUM_SIM_BACKTRACES", "full"),
            ("CURIUM_SIM_FAULTS", "cuInit@2=1,cuNothing=1"),
        ] {
            let error = with(name, value)
                .expect_err("the value makes no sense")
                .to_string();
            assert!(error.contains(name) && error.contains(value), "{error}");
        }
    }

    #[test]
    fn memory_budget_overrides_the_model() {
        let config = Config::from_variables(|name| match name {
            "CURIUM_SIM_MEMORY" => Some("1M".to_owned()),
            "CURIUM_SIM_DEVICE_MODEL" => Some("T4".to_owned()),
            _ => None,
        });
        let config = config.expect("both variables are valid");
        assert_eq!(
            (config.device_model, config.memory_budget),
            (DeviceModel::T4, 1 << 20)
        );
    }
}
