//! Options of physical memory.

use bitflags::bitflags;
use curium_driver::sys::{
    self, CUmemAllocationCompType, CUmemAllocationGranularity_flags, CUmemAllocationHandleType,
    CUmemAllocationProp, CUmemAllocationType,
};
use curium_driver::{Driver, MemoryHandleTypes, Result, call};

use crate::MemoryLocation;

/// Options of physical memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct PhysicalOptions {
    /// The location: a device or a host NUMA node.
    pub location: MemoryLocation,
    /// The handle types for sharing with other processes.
    pub handle_types: MemoryHandleTypes,
    /// `true` for compressible memory, which saves bandwidth but no space.
    pub is_compressible: bool,
    /// `true` if other PCIe devices can access the memory directly.
    pub is_gpu_direct_rdma_capable: bool,
    /// The usage flags.
    pub usage: PhysicalUsage,
}

bitflags! {
    /// Usage flags of physical memory (`CU_MEM_CREATE_USAGE_…`).
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    pub struct PhysicalUsage: u16 {
        /// Tiles of sparse arrays.
        const TILE_POOL = sys::CU_MEM_CREATE_USAGE_TILE_POOL as u16;
        /// Hardware decompression. Requires a driver for CUDA 12.8.
        const HARDWARE_DECOMPRESS = sys::CU_MEM_CREATE_USAGE_HW_DECOMPRESS as u16;
        /// GPUDirect RDMA over PCI Express. Requires a driver for CUDA 13.0.
        const GPU_DIRECT_RDMA_OVER_PCIE = sys::CU_MEM_CREATE_USAGE_GPU_DIRECT_RDMA_OVER_PCIE as u16;
        /// Flags defined by newer drivers.
        const _ = !0;
    }
}

/// A granularity option (`CUmemAllocationGranularity_flags`).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Granularity {
    /// The minimum granularity.
    #[default]
    Minimum,
    /// The recommended granularity, for best performance.
    Recommended,
}

impl PhysicalOptions {
    /// Creates the default options for `location`: not shareable.
    #[must_use]
    pub fn new(location: impl Into<MemoryLocation>) -> Self {
        Self {
            location: location.into(),
            handle_types: MemoryHandleTypes::empty(),
            is_compressible: false,
            is_gpu_direct_rdma_capable: false,
            usage: PhysicalUsage::empty(),
        }
    }

    /// Sets the handle types for sharing with other processes.
    #[must_use]
    pub const fn with_handle_types(mut self, types: MemoryHandleTypes) -> Self {
        self.handle_types = types;
        self
    }

    /// Enables or disables compressible memory.
    #[must_use]
    pub const fn with_compression(mut self, is_compressible: bool) -> Self {
        self.is_compressible = is_compressible;
        self
    }

    /// Enables or disables direct access by other PCIe devices (GPUDirect RDMA).
    #[must_use]
    pub const fn with_gpu_direct_rdma(mut self, is_capable: bool) -> Self {
        self.is_gpu_direct_rdma_capable = is_capable;
        self
    }

    /// Sets the usage flags.
    #[must_use]
    pub const fn with_usage(mut self, usage: PhysicalUsage) -> Self {
        self.usage = usage;
        self
    }

    /// Returns the granularity of sizes and mapping offsets in bytes.
    ///
    /// CUDA: `cuMemGetAllocationGranularity`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver for unsupported options.
    #[doc(alias = "cuMemGetAllocationGranularity")]
    pub fn granularity(&self, driver: &Driver, granularity: Granularity) -> Result<usize> {
        let option = match granularity {
            Granularity::Minimum => {
                CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM
            }
            Granularity::Recommended => {
                CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_RECOMMENDED
            }
        };
        let raw = self.to_raw();
        let mut bytes = 0;
        // SAFETY: `bytes` and `raw` are valid pointers.
        let result = unsafe {
            call!(
                driver,
                cuMemGetAllocationGranularity(&raw mut bytes, &raw const raw, option)
            )
        };
        result.map_err(|error| error.about(format!("memory of {}", self.location)))?;
        Ok(bytes)
    }

    /// Converts to the driver's type.
    #[must_use]
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
        #[cfg(windows)]
        if self.handle_types.contains(MemoryHandleTypes::WIN32) {
            raw.win32HandleMetaData = crate::security::object_attributes();
        }
        raw
    }

    /// Converts from the driver's type.
    #[must_use]
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
