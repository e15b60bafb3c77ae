//! Allocations.

use std::sync::Arc;

use curium_ptx::exec::Written;

use crate::activity::ActivityMemory;
use crate::context::Context;
use crate::handle::Id;
use crate::host_pointer::HostPtr;
use crate::memory::{Physical, Pool};
use crate::origin::Origin;
use crate::race::Marks;

/// Allocated memory and its location.
#[derive(Clone, Debug)]
pub(crate) struct Allocation {
    pub(crate) base: u64,
    /// The requested size in bytes.
    pub(crate) size: u64,
    /// The host memory that holds the bytes.
    pub(crate) host: HostPtr,
    pub(crate) owner: Owner,
    pub(crate) purpose: Purpose,
    /// A unique id: `CU_POINTER_ATTRIBUTE_BUFFER_ID`.
    pub(crate) id: u64,
    /// `true` after the allocation was freed, while work that was queued earlier may still use it.
    pub(crate) is_retired: bool,
    /// `true` if copies from and to the allocation are synchronous:
    /// `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`.
    pub(crate) is_synchronous: bool,
    /// The record of its written bytes, if uninitialized reads are checked and every write is
    /// observed.
    pub(crate) written: Option<Arc<Written>>,
    pub(crate) origin: Origin,
    /// The handle of the stream of a stream-ordered allocation.
    pub(crate) stream: Option<u64>,
    /// The recorded accesses, if races are checked.
    pub(crate) marks: Option<Arc<Marks>>,
}

/// The owner of an allocation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    pub(crate) context: Id<Context>,
    pub(crate) device: usize,
}

/// The purpose of an allocation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Purpose {
    Device,
    /// Stream-ordered device memory.
    Pool(Id<Pool>),
    /// Stream-ordered host memory.
    HostPool(Id<Pool>),
    /// Stream-ordered managed memory.
    ManagedPool(Id<Pool>),
    /// Memory of another process.
    Foreign,
    /// The elements of an array, at an address that programs never receive.
    Array,
    /// A variable of a module.
    Module,
    /// A managed variable of a module.
    ManagedVariable,
    Pinned {
        flags: u32,
    },
    Managed,
    /// Reserved addresses that are mapped to physical memory.
    Mapped(Id<Physical>),
    /// Host memory of the caller that is registered with the device.
    Registered {
        flags: u32,
    },
}

impl Purpose {
    /// Returns `true` for stream-ordered memory.
    pub(crate) fn is_pooled(self) -> bool {
        matches!(
            self,
            Self::Pool(_) | Self::HostPool(_) | Self::ManagedPool(_)
        )
    }

    /// Returns `true` for memory that migrates between the host and the devices.
    pub(crate) fn is_managed(self) -> bool {
        matches!(
            self,
            Self::Managed | Self::ManagedVariable | Self::ManagedPool(_)
        )
    }

    /// Returns the kind of memory in activities.
    pub(crate) fn activity_memory(self) -> ActivityMemory {
        match self {
            Self::Pinned { .. } | Self::Registered { .. } | Self::HostPool(_) => {
                ActivityMemory::Pinned
            }
            _ if self.is_managed() => ActivityMemory::Managed,
            _ => ActivityMemory::Device,
        }
    }

    /// Returns `true` if host code can read the memory at its address.
    pub(crate) fn is_on_host(self) -> bool {
        !matches!(
            self,
            Self::Device
                | Self::Pool(_)
                | Self::Module
                | Self::Mapped(_)
                | Self::Foreign
                | Self::Array
        )
    }
}

impl Allocation {
    pub(crate) fn end(&self) -> u64 {
        self.base + self.size
    }

    /// Returns the host memory of the byte at `address`.
    pub(crate) fn host_at(&self, address: u64) -> HostPtr {
        HostPtr(self.host.0.wrapping_add((address - self.base) as usize))
    }
}
