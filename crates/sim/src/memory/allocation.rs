//! One allocation.

use std::ptr;
use std::sync::Arc;

use crate::driver::Context;
use crate::exec::Written;
use crate::handle::Id;
use crate::memory::{POISON, POISONED_BYTES, Physical, Pool};
use crate::origin::Origin;
use crate::race::Marks;

/// Memory that was asked for, and where it is.
#[derive(Clone, Debug)]
pub(crate) struct Allocation {
    pub(crate) base: u64,
    /// The bytes that were asked for.
    pub(crate) size: u64,
    /// The place where the simulator reads and writes the bytes.
    pub(crate) host: HostPtr,
    pub(crate) owner: Owner,
    pub(crate) purpose: Purpose,
    /// Never repeats: `CU_POINTER_ATTRIBUTE_BUFFER_ID`.
    pub(crate) id: u64,
    /// `true` if it was freed, and only work that was queued before may still use it.
    pub(crate) is_condemned: bool,
    /// `true` if copies from and to it are waited for: `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`.
    pub(crate) is_synchronous: bool,
    /// Which of its bytes were written, where kernels are checked for reads of others and nobody writes unseen.
    pub(crate) written: Option<Arc<Written>>,
    pub(crate) origin: Origin,
    /// The handle of the stream in whose order it was allocated, if it was.
    pub(crate) stream: Option<u64>,
    /// Who accessed it, if races are looked for.
    pub(crate) marks: Option<Arc<Marks>>,
}

/// Whom an allocation belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    pub(crate) context: Id<Context>,
    pub(crate) device: usize,
}

/// What an allocation is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Purpose {
    Device,
    /// Device memory that was allocated in stream order.
    Pool(Id<Pool>),
    /// Memory of the host that was allocated in stream order.
    HostPool(Id<Pool>),
    /// Managed memory that was allocated in stream order.
    ManagedPool(Id<Pool>),
    /// Memory of another process.
    Foreign,
    /// The elements of an array, at an address that no program knows.
    Array,
    /// A variable of a module.
    Module,
    /// A variable of a module that the host shares.
    ManagedVariable,
    Pinned {
        flags: u32,
    },
    Managed,
    /// Reserved addresses with physical memory behind them.
    Mapped(Id<Physical>),
    /// Memory of the caller that the device knows.
    Registered {
        flags: u32,
    },
}

impl Purpose {
    /// Returns `true` if the memory was allocated in stream order.
    pub(crate) fn is_of_pool(self) -> bool {
        matches!(self, Self::Pool(_) | Self::HostPool(_) | Self::ManagedPool(_))
    }

    /// Returns `true` if host code can read the memory at its address.
    pub(crate) fn is_on_host(self) -> bool {
        !matches!(self, Self::Device | Self::Pool(_) | Self::Module | Self::Mapped(_) | Self::Foreign | Self::Array)
    }
}

impl Allocation {
    pub(crate) fn end(&self) -> u64 {
        self.base + self.size
    }

    /// Returns where the simulator finds the byte at `address`.
    pub(crate) fn host_at(&self, address: u64) -> HostPtr {
        HostPtr(self.host.0.wrapping_add((address - self.base) as usize))
    }
}

/// A place in host memory that work on other threads will use.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct HostPtr(pub(crate) *mut u8);

// SAFETY: whoever passes memory to an asynchronous function of the driver keeps it valid, and lets the driver use it on other
// threads, until the work has completed: that is the contract of those functions. Memory of our own is freed after its work.
unsafe impl Send for HostPtr {}

// SAFETY: as above; the pointer itself is never changed.
unsafe impl Sync for HostPtr {}

impl HostPtr {
    /// Returns the address, from which a pointer may be made again.
    pub(crate) fn expose(self) -> u64 {
        self.0.expose_provenance() as u64
    }

    /// Creates the place that an exposed address stands for.
    pub(crate) fn from_exposed(address: u64) -> Self {
        Self(ptr::with_exposed_provenance_mut(address as usize))
    }

    /// Fills fresh memory so that its use shows.
    ///
    /// # Safety
    ///
    /// `size` bytes from here on may be written, and nobody else uses them.
    pub(crate) unsafe fn poison(self, size: usize) {
        // SAFETY: the caller vouches for the bytes.
        unsafe { ptr::write_bytes(self.0, POISON, size.min(POISONED_BYTES)) };
    }
}
