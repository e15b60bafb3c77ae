//! Memory locations.

use std::fmt;

use curium_driver::Device;
use curium_driver::sys::{CUmemLocation, CUmemLocationType};

/// A location of memory, or of a processor that accesses memory (`CUmemLocation`).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum MemoryLocation {
    /// A device, by its raw handle: [`Device::as_raw`].
    Device(i32),
    /// The host.
    Host,
    /// A host NUMA node, by the number that the operating system uses.
    HostNuma(i32),
    /// The host NUMA node closest to the calling thread's CPU.
    HostNumaCurrent,
    /// A location defined by a newer driver: its type and identifier.
    Unknown(u32, i32),
}

impl MemoryLocation {
    /// Returns the raw CUDA value.
    #[must_use]
    pub fn to_raw(self) -> CUmemLocation {
        let (type_, id) = match self {
            Self::Device(id) => (CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id),
            Self::Host => (CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST, 0),
            Self::HostNuma(id) => (CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA, id),
            Self::HostNumaCurrent => (CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0),
            Self::Unknown(type_, id) => (CUmemLocationType(type_), id),
        };
        let mut raw = CUmemLocation {
            type_,
            ..CUmemLocation::default()
        };
        raw.__bindgen_anon_1.id = id;
        raw
    }

    /// Converts a raw CUDA value.
    #[must_use]
    pub fn from_raw(raw: &CUmemLocation) -> Self {
        // SAFETY: the first member of the union is an integer that covers all of its bytes, which
        // the driver or `Default` has initialized.
        let id = unsafe { raw.__bindgen_anon_1.id };
        match raw.type_ {
            CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE => Self::Device(id),
            CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST => Self::Host,
            CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA => Self::HostNuma(id),
            CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT => Self::HostNumaCurrent,
            CUmemLocationType(other) => Self::Unknown(other, id),
        }
    }
}

impl From<&Device> for MemoryLocation {
    fn from(device: &Device) -> Self {
        Self::Device(device.as_raw())
    }
}

impl fmt::Display for MemoryLocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(id) => write!(formatter, "device {id}"),
            Self::Host => formatter.write_str("the host"),
            Self::HostNuma(id) => write!(formatter, "NUMA node {id} of the host"),
            Self::HostNumaCurrent => formatter.write_str("the current NUMA node of the host"),
            Self::Unknown(type_, id) => write!(formatter, "location {id} of type {type_}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn location_survives_the_conversion_to_c_and_back() {
        use MemoryLocation::{Device, Host, HostNuma, HostNumaCurrent, Unknown};
        for location in [
            Device(3),
            Host,
            HostNuma(1),
            HostNumaCurrent,
            Unknown(99, 7),
        ] {
            assert_eq!(MemoryLocation::from_raw(&location.to_raw()), location);
        }
    }
}
