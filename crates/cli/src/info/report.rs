//! The report, as `--json` prints it.

use std::collections::BTreeMap;

use anyhow::Result;
use curium::blas::CuBlas;
use curium::driver::{Device, DeviceAttribute, Driver, Error, Function, PeerLink};
use curium::fft::CuFft;
use curium::nccl::Nccl;
use curium::nvrtc::{NvJitLink, Nvrtc};
use curium::rand::CuRand;
use curium::sys::CUresult;
use serde::Serialize;

use crate::loaded;
use crate::machine::{Machine, Reason};

/// The version of the JSON schema. It increases with incompatible changes.
const SCHEMA: u32 = 1;

/// The report of `curium info`.
#[derive(Serialize)]
pub(super) struct Report {
    schema: u32,
    curium: &'static str,
    /// The reason for simulated devices; absent for real ones.
    pub(super) simulated: Option<String>,
    pub(super) driver: DriverReport,
    pub(super) devices: Vec<DeviceReport>,
    pub(super) links: Vec<LinkReport>,
    pub(super) compilers: [LibraryReport; 2],
    pub(super) libraries: Vec<LibraryReport>,
}

#[derive(Serialize)]
pub(super) struct DriverReport {
    pub(super) version: String,
    /// The file of the library, if the system reports it.
    pub(super) library: Option<String>,
    /// The number of functions that Curium binds.
    pub(super) functions: usize,
    pub(super) missing: Vec<MissingReport>,
}

/// A function that the driver lacks.
#[derive(Serialize)]
pub(super) struct MissingReport {
    pub(super) function: &'static str,
    /// The CUDA version that introduced it.
    pub(super) needs: String,
}

#[derive(Serialize)]
pub(super) struct DeviceReport {
    pub(super) ordinal: usize,
    pub(super) name: String,
    pub(super) uuid: String,
    pub(super) pci_bus_id: String,
    pub(super) compute_capability: String,
    pub(super) memory_bytes: u64,
    /// CUDA's names without their prefix; null if the driver does not support the attribute.
    pub(super) attributes: BTreeMap<&'static str, Option<i32>>,
}

/// The connection between two devices.
#[derive(Serialize)]
pub(super) struct LinkReport {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) access: bool,
    pub(super) performance_rank: u32,
    pub(super) atomics: &'static str,
    pub(super) arrays: bool,
}

/// A library that is loaded at run time.
#[derive(Serialize)]
pub(super) struct LibraryReport {
    pub(super) name: &'static str,
    pub(super) version: Option<String>,
    /// The reason why it is missing.
    pub(super) reason: Option<String>,
}

impl Report {
    /// Queries the driver.
    pub(super) fn new(machine: &Machine) -> Result<Self> {
        let driver = machine.driver();
        let devices = driver.devices()?;
        Ok(Self {
            schema: SCHEMA,
            curium: env!("CARGO_PKG_VERSION"),
            simulated: machine.simulated().map(Reason::in_brief),
            driver: DriverReport::new(driver, machine.simulated().is_some()),
            links: links(&devices)?,
            devices: devices
                .iter()
                .enumerate()
                .map(|(ordinal, device)| DeviceReport::new(ordinal, device))
                .collect::<Result<_>>()?,
            compilers: compilers(),
            libraries: libraries(),
        })
    }
}

impl DriverReport {
    fn new(driver: &Driver, is_simulated: bool) -> Self {
        let missing = driver
            .api()
            .absent()
            .map(|function: Function| MissingReport {
                function: function.name(),
                needs: function.since().to_string(),
            });
        Self {
            version: driver.version().to_string(),
            library: if is_simulated {
                None
            } else {
                loaded::library("libcuda.so")
            },
            functions: Function::COUNT,
            missing: missing.collect(),
        }
    }
}

impl DeviceReport {
    fn new(ordinal: usize, device: &Device) -> Result<Self> {
        Ok(Self {
            ordinal,
            name: device.name()?,
            uuid: uuid_text(device.uuid()?),
            pci_bus_id: device.pci_bus_id()?,
            compute_capability: device.compute_capability()?.to_string(),
            memory_bytes: device.total_memory()? as u64,
            attributes: attributes(device)?,
        })
    }

    /// Returns an attribute, or 0 if the driver does not support it.
    pub(super) fn attribute(&self, name: &str) -> i32 {
        self.attributes
            .get(name)
            .copied()
            .flatten()
            .unwrap_or_default()
    }
}

fn attributes(device: &Device) -> Result<BTreeMap<&'static str, Option<i32>>> {
    let mut values = BTreeMap::new();
    for attribute in DeviceAttribute::ALL {
        let value = match device.attribute(*attribute) {
            Ok(value) => Some(value),
            Err(error) if is_unknown(&error) => None,
            Err(error) => return Err(error.into()),
        };
        values.insert(attribute.name(), value);
    }
    Ok(values)
}

/// Returns `true` if the driver does not support the query.
fn is_unknown(error: &Error) -> bool {
    matches!(
        error.code(),
        Some(CUresult::CUDA_ERROR_INVALID_VALUE | CUresult::CUDA_ERROR_NOT_SUPPORTED)
    )
}

/// Returns the connections between all devices.
fn links(devices: &[Device]) -> Result<Vec<LinkReport>> {
    let mut links = Vec::new();
    for (from, device) in devices.iter().enumerate() {
        for (to, peer) in devices.iter().enumerate().filter(|(to, _)| *to != from) {
            let link @ PeerLink {
                access,
                performance_rank,
                arrays,
                ..
            } = device.peer_link(peer)?;
            links.push(LinkReport {
                from,
                to,
                access,
                performance_rank,
                atomics: atomics(&link),
                arrays,
            });
        }
    }
    Ok(links)
}

fn atomics(link: &PeerLink) -> &'static str {
    match (link.all_atomics, link.some_atomics) {
        (true, _) => "all",
        (false, true) => "some",
        (false, false) => "none",
    }
}

fn compilers() -> [LibraryReport; 2] {
    [
        library("NVRTC", Nvrtc::load().map(|nvrtc| nvrtc.version())),
        library(
            "nvJitLink",
            NvJitLink::load().map(|linker| linker.version()),
        ),
    ]
}

fn libraries() -> Vec<LibraryReport> {
    vec![
        library("cuBLAS", CuBlas::load().map(|library| library.version())),
        library("cuRAND", CuRand::load().map(|library| library.version())),
        library("cuFFT", CuFft::load().map(|library| library.version())),
        library("NCCL", Nccl::load().map(|library| library.version())),
    ]
}

fn library(name: &'static str, found: Result<impl ToString, impl ToString>) -> LibraryReport {
    match found {
        Ok(version) => LibraryReport {
            name,
            version: Some(version.to_string()),
            reason: None,
        },
        Err(error) => LibraryReport {
            name,
            version: None,
            reason: Some(error.to_string()),
        },
    }
}

/// Formats a UUID as NVIDIA's programs do, such as `GPU-3d1b…`.
fn uuid_text(uuid: [u8; 16]) -> String {
    let hex: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "GPU-{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuid_is_written_in_five_groups() {
        let uuid = [0x3d, 0x1b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0xff];
        assert_eq!(uuid_text(uuid), "GPU-3d1b0001-0203-0405-0607-08090a0b0cff");
    }
}
