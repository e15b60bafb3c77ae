//! The location of managed memory.

use curium_sys::{CUdeviceptr, CUmemLocation, CUmemLocationType, CUresult};

use crate::argument::Pointer;
use crate::call::Call;
use crate::memory::Advice;
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    /// Returns the location that memory was last prefetched to, if any.
    pub(crate) fn cuMemGetLocationInfo(
        &self,
        address: CUdeviceptr,
        size: usize,
        step: usize,
        sample: usize,
        places: Pointer<CUmemLocation>,
    ) -> Result {
        if !(1..=size).contains(&step) || sample > step {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        places.required()?;
        self.memory().managed(address, size as u64)?;
        let locations = (0..size).step_by(step).map(|offset| {
            let parts = self
                .memory()
                .advice(address + offset as u64, step.min(size - offset) as u64)?;
            Ok(location_info(&parts))
        });
        let locations = locations.collect::<Result<Vec<_>>>()?;
        // SAFETY: by the contract of the C function, there is room for the location of each step.
        unsafe { places.write_all(locations.into_iter()) }
    }
}

/// Returns the location that most parts were last prefetched to.
fn location_info(parts: &[Advice]) -> CUmemLocation {
    let most_common = parts
        .iter()
        .map(|part| part.last_prefetch)
        .max_by_key(|location| {
            parts
                .iter()
                .filter(|part| part.last_prefetch == *location)
                .count()
        })
        .flatten();
    let (type_, id) = most_common.unwrap_or((CUmemLocationType::CU_MEM_LOCATION_TYPE_NONE, 0));
    let mut location = CUmemLocation {
        type_,
        ..CUmemLocation::default()
    };
    location.__bindgen_anon_1.id = id;
    location
}
