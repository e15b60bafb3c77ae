//! Hints for copies.

use curium_driver::sys::{
    CUmemLocation, CUmemcpyAttributes, CUmemcpyFlags, CUmemcpySrcAccessOrder,
};

use crate::MemoryLocation;

/// Hints for a copy (`CUmemcpyAttributes`). They affect its performance only.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct CopyOptions {
    /// `true` to prefer copy engines over multiprocessors, so that the copy overlaps with kernels.
    pub prefer_overlap: bool,
    /// The expected location of managed source memory.
    pub source_location: Option<MemoryLocation>,
    /// The expected location of managed target memory.
    pub target_location: Option<MemoryLocation>,
}

impl CopyOptions {
    /// Creates options without hints.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            prefer_overlap: false,
            source_location: None,
            target_location: None,
        }
    }

    /// Sets the preference for copy engines over multiprocessors.
    #[must_use]
    pub const fn with_prefer_overlap(mut self, prefer_overlap: bool) -> Self {
        self.prefer_overlap = prefer_overlap;
        self
    }

    /// Sets the expected location of managed source memory.
    #[must_use]
    pub const fn with_source_location(mut self, location: MemoryLocation) -> Self {
        self.source_location = Some(location);
        self
    }

    /// Sets the expected location of managed target memory.
    #[must_use]
    pub const fn with_target_location(mut self, location: MemoryLocation) -> Self {
        self.target_location = Some(location);
        self
    }

    /// Returns the raw CUDA value. The source access order is always stream order, which access
    /// tracking requires.
    pub(crate) fn to_raw(self) -> CUmemcpyAttributes {
        CUmemcpyAttributes {
            srcAccessOrder: CUmemcpySrcAccessOrder::CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
            srcLocHint: raw_location(self.source_location),
            dstLocHint: raw_location(self.target_location),
            flags: self.flags(),
        }
    }

    const fn flags(self) -> u32 {
        if self.prefer_overlap {
            CUmemcpyFlags::CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE.0
        } else {
            CUmemcpyFlags::CU_MEMCPY_FLAG_DEFAULT.0
        }
    }
}
fn raw_location(location: Option<MemoryLocation>) -> CUmemLocation {
    location.map_or_else(CUmemLocation::default, MemoryLocation::to_raw)
}
