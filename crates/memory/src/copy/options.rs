//! What the driver may know of a copy.

use curium_driver::sys::{CUmemLocation, CUmemcpyAttributes, CUmemcpyFlags, CUmemcpySrcAccessOrder};

use crate::MemoryLocation;

/// What the driver may know of a copy. It changes how fast the copy is, and nothing else.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct CopyOptions {
    /// Whether the copy is to leave the multiprocessors to kernels, if the device has engines for copies.
    pub prefer_overlap: bool,
    /// Where managed memory that is read is expected to be.
    pub source_location: Option<MemoryLocation>,
    /// Where managed memory that is written is expected to be.
    pub target_location: Option<MemoryLocation>,
}

impl CopyOptions {
    /// No wishes.
    #[must_use]
    #[inline]
    pub const fn new() -> Self {
        Self { prefer_overlap: false, source_location: None, target_location: None }
    }

    /// The same with or without the wish to leave the multiprocessors to kernels.
    #[must_use]
    #[inline]
    pub const fn with_prefer_overlap(mut self, prefer_overlap: bool) -> Self {
        self.prefer_overlap = prefer_overlap;
        self
    }

    /// The same with a place where managed memory that is read is expected to be.
    #[must_use]
    #[inline]
    pub const fn with_source_location(mut self, location: MemoryLocation) -> Self {
        self.source_location = Some(location);
        self
    }

    /// The same with a place where managed memory that is written is expected to be.
    #[must_use]
    #[inline]
    pub const fn with_target_location(mut self, location: MemoryLocation) -> Self {
        self.target_location = Some(location);
        self
    }

    /// The options as C describes them. The source is always read in the order of the stream: that is what the waits of buffers rely on.
    #[inline]
    pub(crate) fn to_raw(self) -> CUmemcpyAttributes {
        let location =
            |place: Option<MemoryLocation>| place.map_or_else(CUmemLocation::default, MemoryLocation::to_raw);
        CUmemcpyAttributes {
            srcAccessOrder: CUmemcpySrcAccessOrder::CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
            srcLocHint: location(self.source_location),
            dstLocHint: location(self.target_location),
            flags: self.flags(),
        }
    }

    #[inline]
    const fn flags(self) -> u32 {
        if self.prefer_overlap {
            CUmemcpyFlags::CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE.0
        } else {
            CUmemcpyFlags::CU_MEMCPY_FLAG_DEFAULT.0
        }
    }
}
