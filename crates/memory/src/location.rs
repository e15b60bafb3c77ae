//! Where memory is, and who uses it.

use std::fmt;

use curium_driver::Device;
use curium_driver::sys::{CUmemLocation, CUmemLocationType};

/// A place that memory is at, or that memory is used from.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum MemoryLocation {
    /// The device with this number, which is [`Device::as_raw`] and not always its place in a list.
    Device(i32),
    /// The host.
    Host,
    /// A NUMA node of the host, by the number that the system gives it.
    HostNuma(i32),
    /// The NUMA node of the host that the calling thread runs on.
    HostNumaCurrent,
    /// A place that this version of the crate does not know: its type and its number.
    Unknown(u32, i32),
}

impl MemoryLocation {
    /// The location as C describes it.
    #[must_use]
    #[inline]
    pub fn to_raw(self) -> CUmemLocation {
        let (type_, id) = match self {
            Self::Device(id) => (CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id),
            Self::Host => (CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST, 0),
            Self::HostNuma(id) => (CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA, id),
            Self::HostNumaCurrent => (CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0),
            Self::Unknown(type_, id) => (CUmemLocationType(type_), id),
        };
        let mut raw = CUmemLocation { type_, ..CUmemLocation::default() };
        raw.__bindgen_anon_1.id = id;
        raw
    }

    /// The location that C describes.
    #[must_use]
    #[inline]
    pub fn from_raw(raw: &CUmemLocation) -> Self {
        // SAFETY: all bytes of the union are part of its first member, a number, and the driver or `Default` has written them.
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
    #[inline]
    fn from(device: &Device) -> Self {
        Self::Device(device.as_raw())
    }
}

impl fmt::Display for MemoryLocation {
    #[inline]
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
    fn location_survives_the_way_to_c_and_back() {
        use MemoryLocation::{Device, Host, HostNuma, HostNumaCurrent, Unknown};
        for location in [Device(3), Host, HostNuma(1), HostNumaCurrent, Unknown(99, 7)] {
            assert_eq!(MemoryLocation::from_raw(&location.to_raw()), location);
        }
    }
}
