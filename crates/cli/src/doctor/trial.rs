//! Tries the driver: loads it, initializes it and runs a test kernel on each device.

use std::time::Instant;

use curium::driver::{Error, Result};
use curium::prelude::*;
use curium::sys::{Api, CUresult, CudaVersion};

use crate::doctor::environment::{
    Attempt, DeviceTrial, Environment, Failure, Library, Rejection, Start,
};
use crate::{loaded, machine};

/// Writes the square of the thread index, in PTX that every device accepts.
const SQUARES: &str = "
.version 7.0
.target sm_52
.address_size 64
.visible .entry squares(.param .u64 out)
{
    .reg .b32 %i, %square; .reg .b64 %out, %at;
    mov.u32 %i, %tid.x;
    mul.lo.u32 %square, %i, %i;
    ld.param.u64 %out, [out];
    cvta.to.global.u64 %out, %out;
    mul.wide.u32 %at, %i, 4;
    add.s64 %out, %out, %at;
    st.global.u32 [%out], %square;
    ret;
}";

const THREADS: u32 = 64;

/// Tries the driver of this machine, or the simulator, and records the results.
pub(super) fn try_out(environment: &mut Environment, simulated: bool) {
    let driver = if simulated {
        simulator(environment)
    } else {
        real_driver(environment)
    };
    let Some(driver) = driver else { return };
    let devices = driver.devices();
    environment.start = Some(match &devices {
        Ok(devices) => Start::Devices(devices.len()),
        Err(error) => Start::Failed(failure(error)),
    });
    let devices = devices.unwrap_or_default();
    environment.devices = devices.iter().map(try_device).collect();
    environment.peers_denied = peers_denied(&devices);
}

/// Loads and initializes the driver of this machine.
fn real_driver(environment: &mut Environment) -> Option<Driver> {
    let api = match Api::load() {
        Ok(api) => api,
        Err(error) => {
            environment.library = Library::Failed(error.attempts.iter().map(attempt).collect());
            return None;
        }
    };
    environment.library = Library::Loaded {
        version: version(&api).to_string(),
        path: loaded::library("libcuda.so"),
    };
    started(environment, Driver::load())
}

fn simulator(environment: &mut Environment) -> Option<Driver> {
    let driver = machine::simulated_driver();
    let version = driver
        .as_ref()
        .map_or(CudaVersion::NEWEST_KNOWN, Driver::version);
    environment.library = Library::Loaded {
        version: version.to_string(),
        path: Some("the simulator".to_owned()),
    };
    match driver {
        Ok(driver) => Some(driver),
        Err(error) => {
            environment.start = Some(Start::Failed(Failure {
                code: 0,
                text: format!("{error:#}"),
            }));
            None
        }
    }
}

/// Returns the driver if it is initialized, and records the failure otherwise.
fn started(environment: &mut Environment, driver: Result<Driver>) -> Option<Driver> {
    driver
        .map_err(|error| environment.start = Some(Start::Failed(failure(&error))))
        .ok()
}

fn attempt(attempt: &curium::sys::load::Attempt) -> Attempt {
    use curium::sys::load::Rejection as Reason;
    Attempt {
        path: attempt.path.display().to_string(),
        rejection: match attempt.rejection {
            Reason::OtherLibrary { .. } => Rejection::NotADriver,
            Reason::Stub => Rejection::Stub,
            Reason::NoVersion { .. } => Rejection::NoVersion,
            Reason::TooOld { .. } => Rejection::TooOld,
            _ => Rejection::Unloadable,
        },
        reason: attempt.rejection.to_string(),
    }
}

/// Returns the version of a driver that may not be initialized.
fn version(api: &Api) -> CudaVersion {
    let mut version = 0;
    if let Some(get_version) = api.cuDriverGetVersion {
        // SAFETY: `version` is valid for writes, and this function may be called before `cuInit`.
        let code = unsafe { get_version(&raw mut version) };
        version = if code == CUresult::CUDA_SUCCESS {
            version
        } else {
            0
        };
    }
    CudaVersion::from_raw(version.try_into().unwrap_or_default())
}

fn failure(error: &Error) -> Failure {
    Failure {
        code: error.code().map_or(0, |code| code.0),
        text: error.to_string(),
    }
}

/// Runs the test kernel on a device.
fn try_device(device: &Device) -> DeviceTrial {
    let begin = Instant::now();
    let outcome = squares(device);
    let milliseconds = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
    DeviceTrial {
        name: device.name().unwrap_or_default(),
        compute_capability: device
            .compute_capability()
            .map(|version| version.to_string())
            .unwrap_or_default(),
        outcome: match outcome {
            Ok(squares) if is_right(&squares) => Ok(milliseconds),
            Ok(squares) => Err(Failure {
                code: 0,
                text: format!("the kernel computed {squares:?}, which is wrong"),
            }),
            Err(error) => Err(failure(&error)),
        },
    }
}

/// Returns the pairs of devices without peer access.
fn peers_denied(devices: &[Device]) -> Vec<(usize, usize)> {
    let pairs = devices
        .iter()
        .enumerate()
        .flat_map(|from| devices.iter().enumerate().map(move |to| (from, to)));
    let denied = pairs.filter(|((from, device), (to, peer))| {
        from != to && matches!(device.can_access_peer(peer), Ok(false))
    });
    denied.map(|((from, _), (to, _))| (from, to)).collect()
}

fn squares(device: &Device) -> Result<Vec<u32>> {
    let stream = device.primary_context()?.stream()?;
    let kernel = Module::from_ptx(stream.context(), SQUARES)?.kernel::<(&mut [u32],)>("squares")?;
    let mut out = DeviceBuffer::zeroed(&stream, THREADS as usize)?;
    // SAFETY: each of the threads writes one element, and `out` has as many.
    unsafe { kernel.launch(&stream, LaunchConfig::new(1, THREADS), (&mut out,)) }?;
    out.to_vec()
}

fn is_right(squares: &[u32]) -> bool {
    squares.len() == THREADS as usize
        && (0_u32..)
            .zip(squares)
            .all(|(index, square)| index * index == *square)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_devices_compute_correct_results() {
        let mut environment = Environment::default();
        try_out(&mut environment, true);
        assert_eq!(environment.devices.len(), 1);
        assert!(
            environment.devices[0].outcome.is_ok(),
            "{:?}",
            environment.devices[0]
        );
    }

    #[test]
    fn wrong_or_short_squares_are_not_right() {
        let squares: Vec<u32> = (0..THREADS).map(|index| index * index).collect();
        assert!(is_right(&squares));
        assert!(!is_right(&squares[1..]) && !is_right(&[0; THREADS as usize]));
    }
}
