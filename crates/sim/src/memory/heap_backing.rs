//! Physical memory from the heap of the process, for systems without memory files. It can be mapped
//! at several addresses, but not for the host or for other processes.

use std::alloc::{self, Layout};
use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::host_pointer::HostPtr;
use crate::memory::SharedAllocation;

/// The bytes of a physical allocation.
pub(crate) struct Backing {
    bytes: HostPtr,
    layout: Layout,
}

/// An address range far above those of the host.
pub(crate) struct Reservation {
    address: u64,
    size: u64,
}

/// The description of physical memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Label {
    pub(crate) size: u64,
    pub(crate) words: [u64; LABEL_WORDS],
}

/// The number of words of a label.
pub(crate) const LABEL_WORDS: usize = 8;

/// The start of reserved addresses, after the windows of kernels.
const FIRST_ADDRESS: u64 = 1 << 52;

/// The maximum size of a reservation: the address space of a host process.
const MAX_RESERVATION: u64 = 1 << 47;

impl Backing {
    /// Creates memory that is filled with [`POISON`](crate::host_pointer::POISON). It cannot be
    /// shared.
    pub(crate) fn new(label: Label, is_shared: bool) -> io::Result<Self> {
        if is_shared || label.size == 0 {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let size = usize::try_from(label.size).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let layout = Layout::from_size_align(size, PAGE).map_err(|_| io::ErrorKind::OutOfMemory)?;
        // SAFETY: the layout's size is not zero.
        let bytes = HostPtr(unsafe { alloc::alloc(layout) });
        if bytes.0.is_null() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        // SAFETY: the memory has this size and was just allocated.
        unsafe { bytes.poison(size) };
        Ok(Self { bytes, layout })
    }

    pub(crate) fn import(_: i32) -> Option<(Self, Label)> {
        None
    }

    pub(crate) fn export(&self) -> io::Result<i32> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn host(&self) -> HostPtr {
        self.bytes
    }
}

impl Drop for Backing {
    fn drop(&mut self) {
        // SAFETY: the memory was allocated with this layout, and nothing uses it any more.
        unsafe { alloc::dealloc(self.bytes.0, self.layout) };
    }
}

impl Reservation {
    /// Reserves `size` addresses at a multiple of `alignment`, a power of two.
    pub(crate) fn new(size: u64, alignment: u64, _hint: u64) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(FIRST_ADDRESS);
        if size > MAX_RESERVATION {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let previous = NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
            next.checked_next_multiple_of(alignment)?.checked_add(size)
        });
        match previous {
            Ok(next) => Ok(Self {
                address: next.next_multiple_of(alignment),
                size,
            }),
            Err(_) => Err(io::ErrorKind::OutOfMemory.into()),
        }
    }

    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Does nothing: host code cannot access these addresses.
    pub(crate) fn show(&self, _: u64, _: u64, _: &Backing, _: bool) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn hide(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }
}

/// Memory of other processes, which is not supported.
pub(crate) struct ForeignMemory {
    pub(crate) openings: u32,
    never: Infallible,
}

impl ForeignMemory {
    pub(crate) fn open(_: SharedAllocation) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn shared(&self) -> SharedAllocation {
        match self.never {}
    }

    pub(crate) fn address(&self) -> u64 {
        match self.never {}
    }

    pub(crate) fn host(&self) -> HostPtr {
        match self.never {}
    }
}

/// Shared event records, which are not supported.
pub(crate) enum SharedRecords {}

impl SharedRecords {
    pub(crate) fn new() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn open(_: u32, _: i32) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn descriptor(&self) -> i32 {
        match *self {}
    }

    pub(crate) fn begin(&self) -> u64 {
        match *self {}
    }

    pub(crate) fn finish(&self, _: u64) {
        match *self {}
    }

    pub(crate) fn last(&self) -> u64 {
        match *self {}
    }

    pub(crate) fn is_done(&self, _: u64) -> bool {
        match *self {}
    }
}

const PAGE: usize = 4096;
