//! Device memory from the heap of the process, at host addresses.

use std::alloc::{self, Layout};
use std::collections::VecDeque;

use crate::host_pointer::HostPtr;
use crate::lock::{Mutex, Rank};

/// Host memory. Freed memory is quarantined for a while, so that a use after free affects no other
/// allocation.
pub(crate) struct Heap {
    /// Returns the alignment of an allocation of a size.
    alignment: fn(u64) -> u64,
    quarantine: Mutex<Quarantine>,
}

#[derive(Default)]
struct Quarantine {
    blocks: VecDeque<(HostPtr, Layout)>,
    bytes: usize,
}

/// Pinned memory is allocated in pages.
const PAGE: u64 = 4096;

/// The number of freed bytes in quarantine.
const QUARANTINE_BYTES: usize = 16 << 20;

impl Heap {
    /// Creates a heap of pinned memory.
    pub(crate) fn pinned() -> Self {
        Self {
            alignment: |_| PAGE,
            quarantine: Mutex::new(Rank::Quarantine, Quarantine::default()),
        }
    }

    /// Creates a heap of device memory. The parameter applies only to implementations that reserve
    /// addresses in advance.
    #[cfg(not(all(target_os = "linux", not(miri))))]
    pub(crate) fn new(_addresses: u64) -> Result<Self, crate::error::Error> {
        Ok(Self {
            alignment: crate::memory::alignment::alignment,
            quarantine: Mutex::new(Rank::Quarantine, Quarantine::default()),
        })
    }

    /// Allocates `size` bytes, at least one. Returns the address and the host memory.
    pub(crate) fn allocate(&self, size: u64) -> Option<(u64, HostPtr)> {
        let layout = self.layout(size)?;
        // SAFETY: the layout's size is not zero.
        let host = HostPtr(unsafe { alloc::alloc(layout) });
        if host.0.is_null() {
            return None;
        }
        // SAFETY: the memory has this size and was just allocated.
        unsafe { host.poison(layout.size()) };
        Some((host.expose(), host))
    }

    /// Releases an allocation.
    pub(crate) fn release(&self, _address: u64, size: u64, host: HostPtr) {
        let Some(layout) = self.layout(size) else {
            return;
        };
        let mut quarantine = self.quarantine.lock();
        quarantine.blocks.push_back((host, layout));
        quarantine.bytes += layout.size();
        while quarantine.bytes > QUARANTINE_BYTES {
            quarantine.free_oldest();
        }
    }

    fn layout(&self, size: u64) -> Option<Layout> {
        let alignment = usize::try_from((self.alignment)(size)).ok()?;
        Layout::from_size_align(usize::try_from(size.max(1)).ok()?, alignment).ok()
    }

    /// Returns `true` if only device memory can have this address. Always `false` here: host memory
    /// may have any address.
    #[cfg_attr(
        all(target_os = "linux", not(miri)),
        expect(dead_code, reason = "device memory is not from the heap here")
    )]
    pub(crate) fn owns(&self, _address: u64) -> bool {
        false
    }

    /// Returns the descriptor of the file with the bytes. The heap has none.
    #[cfg(not(all(target_os = "linux", not(miri))))]
    pub(crate) fn descriptor(&self) -> Option<i32> {
        None
    }

    /// Returns `true` if an allocation must move before other processes can open it. The heap is
    /// never shared.
    #[cfg(not(all(target_os = "linux", not(miri))))]
    pub(crate) fn is_private(&self, _address: u64, _size: u64) -> bool {
        false
    }

    /// Shares memory with other processes, which the heap does not support.
    #[cfg(not(all(target_os = "linux", not(miri))))]
    pub(crate) fn share(&self, _address: u64, _size: u64) -> std::io::Result<()> {
        Ok(())
    }

    /// Returns the file offset of the byte at an address. The heap has no file.
    #[cfg(not(all(target_os = "linux", not(miri))))]
    pub(crate) fn offset(&self, _address: u64) -> Option<u64> {
        None
    }
}

impl Quarantine {
    fn free_oldest(&mut self) {
        let Some((host, layout)) = self.blocks.pop_front() else {
            return;
        };
        self.bytes -= layout.size();
        // SAFETY: the block was allocated with this layout, and the driver does not use it after
        // its release.
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
