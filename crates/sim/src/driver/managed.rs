//! Managed memory: preferred locations and accessing devices.
//!
//! No memory migrates here, since all of it is host memory; advice and prefetches are recorded and
//! reported.

use curium_sys::{CUdeviceptr, CUmem_advise, CUmemLocationType, CUresult, CUstream_st};

use crate::argument::Pointer;
use crate::driver::Driver;
use crate::driver::device::Devices;
use crate::driver::schedule::Work;
use crate::memory::{Advice, PageLocation};
use crate::result::Result;

/// `CU_DEVICE_CPU` and `CU_DEVICE_INVALID`.
pub(crate) const HOST: i32 = -1;

impl Devices<'_> {
    /// Checks that a location can hold memory.
    pub(crate) fn validate_location(&self, (kind, id): PageLocation) -> Result {
        match kind {
            CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE => self.device(id).map(|_| ()),
            CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST
            | CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT => Ok(()),
            CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA if id == 0 => Ok(()),
            _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        }
    }
}

impl Driver {
    pub(crate) fn advise(
        &self,
        address: CUdeviceptr,
        size: usize,
        advice: CUmem_advise,
        location: PageLocation,
    ) -> Result {
        let last = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN;
        if location.0.0 > last.0 || location.0 == CUmemLocationType::CU_MEM_LOCATION_TYPE_INVISIBLE
        {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        // Advice on read access has no location.
        let has_location = ![
            CUmem_advise::CU_MEM_ADVISE_SET_READ_MOSTLY,
            CUmem_advise::CU_MEM_ADVISE_UNSET_READ_MOSTLY,
        ]
        .contains(&advice)
            && advice != CUmem_advise::CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;
        if has_location {
            self.devices().validate_location(location)?;
        }
        let user = if location.0 == CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE {
            location.1
        } else {
            HOST
        };
        let change: &dyn Fn(&mut Advice) = match advice {
            CUmem_advise::CU_MEM_ADVISE_SET_READ_MOSTLY => &|advice| advice.is_read_mostly = true,
            CUmem_advise::CU_MEM_ADVISE_UNSET_READ_MOSTLY => {
                &|advice| advice.is_read_mostly = false
            }
            CUmem_advise::CU_MEM_ADVISE_SET_PREFERRED_LOCATION => {
                &|advice| advice.preferred = Some(location)
            }
            CUmem_advise::CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION => {
                &|advice| advice.preferred = None
            }
            CUmem_advise::CU_MEM_ADVISE_SET_ACCESSED_BY => &|advice| {
                if !advice.accessed_by.contains(&user) {
                    advice.accessed_by.push(user);
                }
            },
            CUmem_advise::CU_MEM_ADVISE_UNSET_ACCESSED_BY => {
                &|advice| advice.accessed_by.retain(|other| *other != user)
            }
            _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        };
        self.memory().advise(address, size as u64, change)
    }

    pub(crate) fn discard(
        &self,
        address: CUdeviceptr,
        size: usize,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        let mut state = self.lock();
        let stream = state.uncaptured_stream(stream)?;
        self.memory().managed(address, size as u64)?;
        let work = Work::Device(Box::new(move |driver| {
            driver.memory().discard(address, size as u64)
        }));
        state.queue(stream, work);
        Ok(())
    }
}
