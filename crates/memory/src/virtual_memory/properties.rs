//! What physical memory is asked for with.

use bitflags::bitflags;
use curium_driver::sys::{
    self, CUmemAllocationCompType, CUmemAllocationGranularity_flags, CUmemAllocationHandleType, CUmemAllocationProp,
    CUmemAllocationType,
};
use curium_driver::{Driver, MemoryHandleTypes, Result, call};

use crate::MemoryLocation;

/// What physical memory is asked for with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct PhysicalOptions {
    /// Where the memory is: on a device, or on a NUMA node of the host.
    pub location: MemoryLocation,
    /// The kinds of handle that it may be shared by.
    pub handle_types: MemoryHandleTypes,
    /// Whether the device may compress it, which saves bandwidth and no space.
    pub is_compressible: bool,
    /// Whether other devices on the bus may access it directly.
    pub is_gpu_direct_rdma_capable: bool,
    /// What it is for.
    pub usage: PhysicalUsage,
}

bitflags! {
    /// What physical memory is for, beyond plain mappings.
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    pub struct PhysicalUsage: u16 {
        /// Tiles of sparse arrays.
        const TILE_POOL = sys::CU_MEM_CREATE_USAGE_TILE_POOL as u16;
        /// The decompression engine. Needs a driver for CUDA 12.8.
        const HARDWARE_DECOMPRESS = sys::CU_MEM_CREATE_USAGE_HW_DECOMPRESS as u16;
        /// Access by other devices over PCI Express. Needs a driver for CUDA 13.0.
        const GPU_DIRECT_RDMA_OVER_PCIE = sys::CU_MEM_CREATE_USAGE_GPU_DIRECT_RDMA_OVER_PCIE as u16;
        /// Uses of newer drivers.
        const _ = !0;
    }
}

/// Which granularity is asked for.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Granularity {
    /// The smallest that works.
    #[default]
    Minimum,
    /// The one that is fastest.
    Recommended,
}

impl PhysicalOptions {
    /// Plain memory at `location`, for this process.
    #[must_use]
    #[inline]
    pub fn new(location: impl Into<MemoryLocation>) -> Self {
        Self {
            location: location.into(),
            handle_types: MemoryHandleTypes::empty(),
            is_compressible: false,
            is_gpu_direct_rdma_capable: false,
            usage: PhysicalUsage::empty(),
        }
    }

    /// That may be shared by these kinds of handle.
    #[must_use]
    #[inline]
    pub const fn with_handle_types(mut self, types: MemoryHandleTypes) -> Self {
        self.handle_types = types;
        self
    }

    /// That the device may compress.
    #[must_use]
    #[inline]
    pub const fn with_compression(mut self, is_compressible: bool) -> Self {
        self.is_compressible = is_compressible;
        self
    }

    /// That other devices on the bus may access directly.
    #[must_use]
    #[inline]
    pub const fn with_gpu_direct_rdma(mut self, is_capable: bool) -> Self {
        self.is_gpu_direct_rdma_capable = is_capable;
        self
    }

    /// For this use.
    #[must_use]
    #[inline]
    pub const fn with_usage(mut self, usage: PhysicalUsage) -> Self {
        self.usage = usage;
        self
    }

    /// What sizes of such memory, and the offsets that it is mapped at, are multiples of, in bytes.
    ///
    /// CUDA: `cuMemGetAllocationGranularity`.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns for options that it cannot serve.
    #[doc(alias = "cuMemGetAllocationGranularity")]
    #[inline]
    pub fn granularity(&self, driver: &Driver, granularity: Granularity) -> Result<usize> {
        let option = match granularity {
            Granularity::Minimum => CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM,
            Granularity::Recommended => CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_RECOMMENDED,
        };
        let (raw, mut bytes) = (self.to_raw(), 0);
        // SAFETY: `bytes` and `raw` are valid places.
        let result = unsafe { call!(driver, cuMemGetAllocationGranularity(&raw mut bytes, &raw const raw, option)) };
        result.map_err(|error| error.about(format!("memory of {}", self.location)))?;
        Ok(bytes)
    }

    /// The options as C describes them.
    #[must_use]
    #[inline]
    pub fn to_raw(&self) -> CUmemAllocationProp {
        let compression = CUmemAllocationCompType::CU_MEM_ALLOCATION_COMP_GENERIC.0 as u8;
        let mut raw = CUmemAllocationProp {
            type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            requestedHandleTypes: CUmemAllocationHandleType(self.handle_types.bits()),
            location: self.location.to_raw(),
            ..CUmemAllocationProp::default()
        };
        raw.allocFlags.compressionType = if self.is_compressible { compression } else { 0 };
        raw.allocFlags.gpuDirectRDMACapable = self.is_gpu_direct_rdma_capable.into();
        raw.allocFlags.usage = self.usage.bits();
        raw
    }

    /// The options that C describes.
    #[must_use]
    #[inline]
    pub fn from_raw(raw: &CUmemAllocationProp) -> Self {
        Self {
            location: MemoryLocation::from_raw(&raw.location),
            handle_types: MemoryHandleTypes::from_bits_retain(raw.requestedHandleTypes.0),
            is_compressible: raw.allocFlags.compressionType != 0,
            is_gpu_direct_rdma_capable: raw.allocFlags.gpuDirectRDMACapable != 0,
            usage: PhysicalUsage::from_bits_retain(raw.allocFlags.usage),
        }
    }
}
