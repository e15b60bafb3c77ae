//! Allocations.

use std::ptr;
use std::sync::Arc;

use crate::activity::ActivityMemory;
use crate::driver::Context;
use crate::handle::Id;
use crate::memory::{POISON, POISONED_BYTES, Physical, Pool};
use crate::origin::Origin;
use crate::race::Marks;
use curium_ptx::exec::Written;

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
    /// `true` if copies from and to the allocation are synchronous: `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`.
    pub(crate) is_synchronous: bool,
    /// The record of its written bytes, if uninitialized reads are checked and every write is observed.
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

/// A pointer to host memory that work on other threads uses.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct HostPtr(pub(crate) *mut u8);

// SAFETY: the contract of the asynchronous functions requires callers to keep memory valid until the work has completed, and permits the
// driver to use it on other threads. The driver's own memory is freed after its work.
unsafe impl Send for HostPtr {}

// SAFETY: the pointer itself is never changed.
unsafe impl Sync for HostPtr {}

impl HostPtr {
    /// Returns the exposed address of the pointer.
    pub(crate) fn expose(self) -> u64 {
        self.0.expose_provenance() as u64
    }

    /// Creates the pointer with an exposed address.
    pub(crate) fn from_exposed(address: u64) -> Self {
        Self(ptr::with_exposed_provenance_mut(address as usize))
    }

    /// Fills fresh memory with [`POISON`](super::POISON).
    ///
    /// # Safety
    ///
    /// `size` bytes may be written, and nothing else accesses them.
    pub(crate) unsafe fn poison(self, size: usize) {
        // SAFETY: the caller guarantees the bytes.
        unsafe { ptr::write_bytes(self.0, POISON, size.min(POISONED_BYTES)) };
    }
}
