//! What a pool is asked for with.

use std::fmt;

use bitflags::bitflags;
use curium_driver::sys::{self, CUmemAllocationHandleType, CUmemAllocationType, CUmemLocation, CUmemPoolProps};
use curium_driver::{Driver, MemoryHandleTypes, Result};

use crate::MemoryLocation;

/// What a pool is asked for with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct PoolOptions {
    /// Where the memory is. Managed memory can be at no place in particular.
    pub location: Option<MemoryLocation>,
    /// What kind of memory it is.
    pub kind: PoolKind,
    /// The most bytes that the pool may hold. `None` is all memory of the device, and what the system decides for other locations.
    pub max_bytes: Option<usize>,
    /// How many bytes the pool keeps, even if they are not in use, when a stream, an event or a context is synchronised.
    pub release_threshold: u64,
    /// The kinds of handle that the pool may be shared by.
    pub handle_types: MemoryHandleTypes,
    /// What the memory is for.
    pub usage: PoolUsage,
}

/// What kind of memory a pool has.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum PoolKind {
    /// Memory that stays where it is.
    #[default]
    Pinned,
    /// Memory that moves to whoever uses it, the host included. Needs a driver for CUDA 13.0.
    Managed,
}

bitflags! {
    /// What memory of a pool is for, beyond plain use.
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    pub struct PoolUsage: u16 {
        /// The decompression engine. Needs a driver for CUDA 12.8.
        const HARDWARE_DECOMPRESS = sys::CU_MEM_POOL_CREATE_USAGE_HW_DECOMPRESS as u16;
        /// Uses of newer drivers.
        const _ = !0;
    }
}

impl PoolOptions {
    /// A pool at `location` that keeps all memory that it has ever had, up to the memory of the device.
    ///
    /// That differs from the driver's defaults: a pool without a maximum takes more addresses than it has memory, and one that gives
    /// memory back at every synchronisation makes the next allocation slow.
    #[must_use]
    #[inline]
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

    /// A pool of managed memory, which prefers `location` if one is given. Needs a driver for CUDA 13.0.
    #[must_use]
    #[inline]
    pub fn managed(location: Option<MemoryLocation>) -> Self {
        Self { location, kind: PoolKind::Managed, ..Self::new(MemoryLocation::Host) }
    }

    /// With at most this many bytes.
    #[must_use]
    #[inline]
    pub const fn with_max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// That keeps this many bytes at a synchronisation, even if they are not in use.
    #[must_use]
    #[inline]
    pub const fn with_release_threshold(mut self, bytes: u64) -> Self {
        self.release_threshold = bytes;
        self
    }

    /// That may be shared by these kinds of handle.
    #[must_use]
    #[inline]
    pub const fn with_handle_types(mut self, types: MemoryHandleTypes) -> Self {
        self.handle_types = types;
        self
    }

    /// For this use.
    #[must_use]
    #[inline]
    pub const fn with_usage(mut self, usage: PoolUsage) -> Self {
        self.usage = usage;
        self
    }

    #[inline]
    pub(super) fn to_raw(self, driver: &Driver) -> Result<CUmemPoolProps> {
        Ok(CUmemPoolProps {
            allocType: self.kind.to_raw(),
            handleTypes: CUmemAllocationHandleType(self.handle_types.bits()),
            location: raw_location(self.location),
            maxSize: self.most(driver)?,
            usage: self.usage.bits(),
            ..CUmemPoolProps::default()
        })
    }

    /// The maximum as C wants it: 0 leaves it to the system.
    #[inline]
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
    #[inline]
    pub(super) const fn to_raw(self) -> CUmemAllocationType {
        match self {
            Self::Pinned => CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            Self::Managed => CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_MANAGED,
        }
    }
}

/// The location as C describes it, where there may be none.
#[inline]
pub(super) fn raw_location(location: Option<MemoryLocation>) -> CUmemLocation {
    // Of type 0, which stands for none.
    location.map_or_else(CUmemLocation::default, MemoryLocation::to_raw)
}

impl fmt::Display for PoolOptions {
    #[inline]
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
