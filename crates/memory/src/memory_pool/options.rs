//! Options of a memory pool.

use std::fmt;

use bitflags::bitflags;
use curium_driver::sys::{
    self, CUmemAllocationHandleType, CUmemAllocationType, CUmemLocation, CUmemPoolProps,
};
use curium_driver::{Driver, MemoryHandleTypes, Result};

use crate::MemoryLocation;

/// Options of a memory pool.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct PoolOptions {
    /// The location; `None` for managed memory without a preferred location.
    pub location: Option<MemoryLocation>,
    /// The kind of memory.
    pub kind: PoolKind,
    /// The maximum size in bytes. `None` selects the size of the device's memory, or the system
    /// default for other locations.
    pub max_bytes: Option<usize>,
    /// The release threshold in bytes: the amount of memory that the pool keeps when a stream,
    /// event or context is synchronized.
    pub release_threshold: u64,
    /// The handle types for sharing with other processes.
    pub handle_types: MemoryHandleTypes,
    /// The usage flags.
    pub usage: PoolUsage,
}

/// The kind of memory of a pool.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum PoolKind {
    /// Memory that does not migrate.
    #[default]
    Pinned,
    /// Managed memory. Requires a driver for CUDA 13.0.
    Managed,
}

bitflags! {
    /// Usage flags of a pool.
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    pub struct PoolUsage: u16 {
        /// Hardware decompression. Requires a driver for CUDA 12.8.
        const HARDWARE_DECOMPRESS = sys::CU_MEM_POOL_CREATE_USAGE_HW_DECOMPRESS as u16;
        /// Flags defined by newer drivers.
        const _ = !0;
    }
}

impl PoolOptions {
    /// Creates options for a pool at `location` that never releases memory, with the device's
    /// memory as its maximum size.
    ///
    /// The driver's defaults differ: without a maximum size, a pool reserves more addresses than
    /// there is memory, and a release threshold of 0 makes the first allocation after each
    /// synchronization slow.
    #[must_use]
    pub fn new(location: impl Into<MemoryLocation>) -> Self {
        Self {
            location: Some(location.into()),
            kind: PoolKind::Pinned,
            max_bytes: None,
            release_threshold: u64::MAX,
            handle_types: MemoryHandleTypes::empty(),
            usage: PoolUsage::empty(),
        }
    }

    /// Creates options for a pool of managed memory with an optional preferred location. Requires a
    /// driver for CUDA 13.0.
    #[must_use]
    pub fn managed(location: Option<MemoryLocation>) -> Self {
        Self {
            location,
            kind: PoolKind::Managed,
            ..Self::new(MemoryLocation::Host)
        }
    }

    /// Sets the maximum size in bytes.
    #[must_use]
    pub const fn with_max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// Sets the release threshold in bytes.
    #[must_use]
    pub const fn with_release_threshold(mut self, bytes: u64) -> Self {
        self.release_threshold = bytes;
        self
    }

    /// Sets the handle types for sharing with other processes.
    #[must_use]
    pub const fn with_handle_types(mut self, types: MemoryHandleTypes) -> Self {
        self.handle_types = types;
        self
    }

    /// Sets the usage flags.
    #[must_use]
    pub const fn with_usage(mut self, usage: PoolUsage) -> Self {
        self.usage = usage;
        self
    }

    pub(super) fn to_raw(self, driver: &Driver) -> Result<CUmemPoolProps> {
        Ok(CUmemPoolProps {
            allocType: self.kind.to_raw(),
            handleTypes: CUmemAllocationHandleType(self.handle_types.bits()),
            location: raw_location(self.location),
            maxSize: self.most(driver)?,
            usage: self.usage.bits(),
            #[cfg(windows)]
            win32SecurityAttributes: if self.handle_types.contains(MemoryHandleTypes::WIN32) {
                crate::security::handle_attributes()
            } else {
                std::ptr::null_mut()
            },
            ..CUmemPoolProps::default()
        })
    }

    /// Returns the raw maximum size; 0 selects the system default.
    fn most(&self, driver: &Driver) -> Result<usize> {
        match (self.max_bytes, self.location, self.kind) {
            (Some(bytes), ..) => Ok(bytes),
            (None, Some(MemoryLocation::Device(id)), PoolKind::Pinned) => {
                curium_driver::Device::from_raw(driver, id).total_memory()
            }
            _ => Ok(0),
        }
    }
}

impl PoolKind {
    pub(super) const fn to_raw(self) -> CUmemAllocationType {
        match self {
            Self::Pinned => CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            Self::Managed => CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_MANAGED,
        }
    }
}

/// Returns the raw location, which may be none.
pub(super) fn raw_location(location: Option<MemoryLocation>) -> CUmemLocation {
    // Type 0 means no location.
    location.map_or_else(CUmemLocation::default, MemoryLocation::to_raw)
}

impl fmt::Display for PoolOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            PoolKind::Pinned => formatter.write_str("a pool")?,
            PoolKind::Managed => formatter.write_str("a managed pool")?,
        }
        if let Some(location) = self.location {
            write!(formatter, " of {location}")?;
        }
        match self.max_bytes {
            Some(bytes) => write!(formatter, ", at most {bytes} bytes"),
            None => Ok(()),
        }
    }
}
