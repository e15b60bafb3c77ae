//! Memory pools and stream-ordered allocation.

use curium_sys::{
    CUmemAllocationType, CUmemLocation, CUmemLocationType, CUmemPoolHandle_st, CUresult,
};

use crate::argument::Pointer;
use crate::driver::Driver;
use crate::driver::device::Devices;
use crate::handle::Id;
use crate::memory::{Location, Pool};
use crate::result::Result;

/// The memory of a pool.
pub(crate) struct PoolLocation {
    /// `None` only for managed memory.
    pub(crate) location: Option<Location>,
    pub(crate) is_managed: bool,
}

impl Devices<'_> {
    pub(crate) fn pool_location(
        &self,
        location: &CUmemLocation,
        kind: CUmemAllocationType,
    ) -> Result<PoolLocation> {
        let is_managed = match kind {
            CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED => false,
            CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_MANAGED => true,
            _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        };
        if is_managed && location.type_ == CUmemLocationType::CU_MEM_LOCATION_TYPE_NONE {
            return Ok(PoolLocation {
                location: None,
                is_managed,
            });
        }
        Ok(PoolLocation {
            location: Some(self.location(location)?),
            is_managed,
        })
    }
}

impl Driver {
    pub(crate) fn pool(&self, raw: Pointer<CUmemPoolHandle_st>) -> Result<Id<Pool>> {
        let id = Id::from(raw);
        let is_live = self
            .memory()
            .read()
            .pools
            .get(id)
            .is_some_and(|pool| !pool.is_retired);
        if is_live {
            Ok(id)
        } else {
            Err(CUresult::CUDA_ERROR_INVALID_VALUE)
        }
    }
}
