//! Residency of managed memory.

use std::num::NonZero;
use std::ops::RangeBounds;

use curium_driver::sys::CUmemLocation;
use curium_driver::{Error, Result, call};

use super::UnifiedBuffer;
use crate::MemoryLocation;

impl<T> UnifiedBuffer<T> {
    /// Returns the location of most pages in each chunk of `step` elements in `range`; the last
    /// chunk may be shorter. `None` means that the pages are not populated. The driver samples
    /// pages, and concurrent work may migrate them.
    ///
    /// CUDA: `cuMemGetLocationInfo`. Requires a driver for CUDA 13.4.
    ///
    /// # Errors
    ///
    /// An argument error if the range is empty, reversed or out of bounds;
    /// `CUDA_ERROR_NOT_SUPPORTED` if a device of the system has no concurrent managed access.
    #[doc(alias = "cuMemGetLocationInfo")]
    pub fn locations(
        &self,
        range: impl RangeBounds<usize>,
        step: NonZero<usize>,
    ) -> Result<Vec<Option<MemoryLocation>>> {
        const OPERATION: &str = "UnifiedBuffer::locations";
        let (address, bytes) = self.byte_range(OPERATION, range)?;
        if bytes == 0 {
            return Err(Error::argument(OPERATION, "empty range"));
        }
        let step = step.get().saturating_mul(size_of::<T>()).min(bytes);
        let mut locations = vec![CUmemLocation::default(); bytes.div_ceil(step)];
        self.stream().context().entered(|driver| {
            let output = locations.as_mut_ptr();
            // SAFETY: `locations` has one entry per step of the range, which is in live managed
            // memory.
            unsafe {
                call!(
                    driver,
                    cuMemGetLocationInfo(address, bytes, step, 0, output)
                )
            }
        })?;
        Ok(locations
            .iter()
            .map(MemoryLocation::from_raw)
            .map(MemoryLocation::somewhere)
            .collect())
    }
}

impl MemoryLocation {
    /// Returns the location, or `None` if it means no location.
    fn somewhere(self) -> Option<Self> {
        // `CU_MEM_LOCATION_TYPE_NONE`.
        (!matches!(self, Self::Unknown(0, _))).then_some(self)
    }
}
