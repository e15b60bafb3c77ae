//! Memory from the heap of the process, whose addresses are those of the host.

use std::alloc::{self, Layout};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::Error;
use crate::memory::HostPtr;

/// Memory of the host. What is freed stays unused for a while, so that a use of it is not a use of something else.
pub(crate) struct Heap {
    quarantine: Mutex<Quarantine>,
}

#[derive(Default)]
struct Quarantine {
    blocks: VecDeque<(HostPtr, Layout)>,
    bytes: usize,
}

/// Pinned memory comes in pages.
const PAGE: usize = 4096;

/// How much freed memory is kept unused.
const QUARANTINE_BYTES: usize = 16 << 20;

impl Heap {
    /// Creates a heap. The parameter is for sources of memory that reserve addresses in advance.
    pub(crate) fn new(_addresses: u64) -> Result<Self, Error> {
        Ok(Self { quarantine: Mutex::default() })
    }

    /// Fresh memory of `size` bytes, at least one: its address, and where it is.
    pub(crate) fn allocate(&self, size: u64) -> Option<(u64, HostPtr)> {
        let layout = layout(size)?;
        // SAFETY: the layout's size is not zero.
        let host = HostPtr(unsafe { alloc::alloc(layout) });
        if host.0.is_null() {
            return None;
        }
        // SAFETY: the memory has this size and was just allocated.
        unsafe { host.poison(layout.size()) };
        Some((host.expose(), host))
    }

    /// Takes memory back that came from here.
    pub(crate) fn release(&self, _address: u64, size: u64, host: HostPtr) {
        let Some(layout) = layout(size) else { return };
        let mut quarantine = self.quarantine.lock().unwrap_or_else(PoisonError::into_inner);
        quarantine.blocks.push_back((host, layout));
        quarantine.bytes += layout.size();
        while quarantine.bytes > QUARANTINE_BYTES {
            quarantine.free_oldest();
        }
    }

    /// `true` if only memory from here can have this address: the host's memory is everywhere.
    #[cfg_attr(
        all(target_os = "linux", not(miri)),
        expect(dead_code, reason = "device memory is not from the heap here")
    )]
    pub(crate) fn owns(&self, _address: u64) -> bool {
        false
    }

    /// Returns the descriptor of a file that the bytes are in: there is none.
    #[cfg(not(all(target_os = "linux", not(miri))))]
    pub(crate) fn descriptor(&self) -> Option<i32> {
        None
    }

    /// Returns `true` if bytes have to be moved before other processes can open them: they cannot anyway.
    #[cfg(not(all(target_os = "linux", not(miri))))]
    pub(crate) fn is_private(&self, _address: u64, _size: u64) -> bool {
        false
    }

    /// Lets other processes open memory: they cannot.
    #[cfg(not(all(target_os = "linux", not(miri))))]
    pub(crate) fn share(&self, _address: u64, _size: u64) -> std::io::Result<()> {
        Ok(())
    }

    /// Returns where in a file the byte at an address is: nowhere.
    #[cfg(not(all(target_os = "linux", not(miri))))]
    pub(crate) fn offset(&self, _address: u64) -> Option<u64> {
        None
    }
}

impl Quarantine {
    fn free_oldest(&mut self) {
        let Some((host, layout)) = self.blocks.pop_front() else { return };
        self.bytes -= layout.size();
        // SAFETY: the block was allocated with this layout, and left the driver's hands when it was released.
        unsafe { alloc::dealloc(host.0, layout) };
    }
}

impl Drop for Quarantine {
    fn drop(&mut self) {
        while !self.blocks.is_empty() {
            self.free_oldest();
        }
    }
}

fn layout(size: u64) -> Option<Layout> {
    let size = usize::try_from(size.max(1)).ok()?;
    Layout::from_size_align(size, PAGE).ok()
}
