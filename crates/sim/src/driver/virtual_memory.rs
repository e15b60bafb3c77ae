//! Virtual memory: reserved addresses, physical allocations and mappings.

use curium_sys::{CUmemLocation, CUmemLocationType, CUresult};

use crate::driver::device::Devices;
use crate::memory::Location;
use crate::result::Result;

impl Devices<'_> {
    /// Returns a valid location. The host has one NUMA node.
    pub(crate) fn location(&self, raw: &CUmemLocation) -> Result<Location> {
        // SAFETY: the union's first member is a number, for which any bytes are valid.
        let id = unsafe { raw.__bindgen_anon_1.id };
        match raw.type_ {
            CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE => self.device(id).map(Location::Device),
            CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST => Ok(Location::Host),
            CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA if id == 0 => {
                Ok(Location::HostNuma(id))
            }
            _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        }
    }
}

/// Returns a location as C describes it.
pub(crate) fn raw_location(location: Location) -> CUmemLocation {
    let (type_, id) = match location {
        Location::Device(device) => (
            CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
            device as i32,
        ),
        Location::Host => (CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST, 0),
        Location::HostNuma(node) => (CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA, node),
    };
    let mut raw = CUmemLocation {
        type_,
        ..CUmemLocation::default()
    };
    raw.__bindgen_anon_1.id = id;
    raw
}
