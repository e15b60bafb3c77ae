//! Where the pages of managed memory are.

use std::num::NonZero;
use std::ops::RangeBounds;

use curium_driver::sys::CUmemLocation;
use curium_driver::{Error, Result, call};

use super::UnifiedBuffer;
use crate::MemoryLocation;

impl<T> UnifiedBuffer<T> {
    /// Where most pages are of each `step` elements in `range`, the last of which may be fewer; none where pages are nowhere yet. The
    /// driver looks at some pages of each, and work that is under way may move them meanwhile.
    ///
    /// CUDA: `cuMemGetLocationInfo`. Needs a driver for CUDA 13.4.
    ///
    /// # Errors
    ///
    /// An argument error if the range is empty, ends before it begins, or beyond the buffer; `CUDA_ERROR_NOT_SUPPORTED` if a device of the
    /// system cannot use managed memory at the same time as the host.
    #[doc(alias = "cuMemGetLocationInfo")]
    #[inline]
    pub fn locations(
        &self,
        range: impl RangeBounds<usize>,
        step: NonZero<usize>,
    ) -> Result<Vec<Option<MemoryLocation>>> {
        const OPERATION: &str = "UnifiedBuffer::locations";
        let (address, bytes) = self.bytes_of(OPERATION, range)?;
        if bytes == 0 {
            return Err(Error::argument(OPERATION, "empty range"));
        }
        let step = step.get().saturating_mul(size_of::<T>()).min(bytes);
        let mut found = vec![CUmemLocation::default(); bytes.div_ceil(step)];
        self.stream().context().entered(|driver| {
            let places = found.as_mut_ptr();
            // SAFETY: there is a place for each step of the range, which lies in managed memory that is live.
            unsafe { call!(driver, cuMemGetLocationInfo(address, bytes, step, 0, places)) }
        })?;
        Ok(found.iter().map(MemoryLocation::from_raw).map(MemoryLocation::somewhere).collect())
    }
}

impl MemoryLocation {
    /// The location, unless it stands for none.
    #[inline]
    fn somewhere(self) -> Option<Self> {
        // `CU_MEM_LOCATION_TYPE_NONE`.
        (!matches!(self, Self::Unknown(0, _))).then_some(self)
    }
}
