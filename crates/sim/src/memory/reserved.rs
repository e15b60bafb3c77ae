//! Device memory at addresses that host code cannot touch.
//!
//! The addresses are reserved without access, so that a host program that dereferences a device pointer faults as it would
//! on hardware. The bytes are those of a file in memory, mapped a second time where only the simulator looks.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Error;
use crate::memory::mapping::{Mapping, file_in_memory};
use crate::memory::ranges::Ranges;
use crate::memory::{ALIGNMENT, HostPtr};

/// A row of addresses without access, and the bytes behind them.
pub(crate) struct Reserved {
    addresses: Mapping,
    bytes: Mapping,
    file: OwnedFd,
    ranges: Mutex<Ranges>,
}

/// Memory is returned to the system in pages of this size.
const PAGE: u64 = 4096;
/// The smallest row of addresses, so that small budgets leave room between allocations.
const SMALLEST: u64 = 64 << 20;

impl Reserved {
    /// A row of about `size` addresses.
    pub(crate) fn new(size: u64) -> Result<Self, Error> {
        let size = size.clamp(SMALLEST, 1 << 44).next_multiple_of(PAGE);
        let refused = |source| Error::NoAddressSpace { bytes: size, source };
        let file = file_in_memory(size).map_err(refused)?;
        Ok(Self {
            bytes: Mapping::of_file(&file, size).map_err(refused)?,
            addresses: Mapping::of_nothing(size, 0).map_err(refused)?,
            file,
            ranges: Mutex::new(Ranges::new(size)),
        })
    }

    /// Fresh memory of `size` bytes: its address, and where the simulator finds it.
    pub(crate) fn allocate(&self, size: u64) -> Option<(u64, HostPtr)> {
        let offset = self.ranges().take(footprint(size)?)?;
        let host = HostPtr(self.bytes.start().0.wrapping_add(offset as usize));
        // SAFETY: the range lies within the mapping and was taken for this allocation alone.
        unsafe { host.poison(size as usize) };
        Some((self.addresses.address() + offset, host))
    }

    /// Takes memory back that came from here.
    pub(crate) fn release(&self, address: u64, size: u64, _host: HostPtr) {
        let offset = address - self.addresses.address();
        self.discard(offset, size);
        if let Some(footprint) = footprint(size) {
            self.ranges().give_back(offset, footprint);
        }
    }

    /// Whether only memory from here can have this address.
    pub(crate) fn owns(&self, address: u64) -> bool {
        self.addresses.contains(address)
    }

    /// The descriptor of the file that the bytes are in.
    pub(crate) fn descriptor(&self) -> Option<i32> {
        Some(self.file.as_raw_fd())
    }

    /// Where in the file the byte at an address is.
    pub(crate) fn offset(&self, address: u64) -> Option<u64> {
        self.owns(address).then(|| address - self.addresses.address())
    }

    /// Returns the whole pages of a range to the system.
    fn discard(&self, offset: u64, size: u64) {
        let (start, end) = (offset.next_multiple_of(PAGE), (offset + size) / PAGE * PAGE);
        if start < end {
            let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            // SAFETY: the file is open, and the range within it belongs to an allocation that has ended. If the system
            // cannot punch holes, the pages stay in use, which costs memory and nothing else.
            unsafe { libc::fallocate(self.file.as_raw_fd(), mode, start.cast_signed(), (end - start).cast_signed()) };
        }
    }

    fn ranges(&self) -> MutexGuard<'_, Ranges> {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The addresses that an allocation takes: its bytes, and a gap that belongs to nobody.
fn footprint(size: u64) -> Option<u64> {
    size.checked_next_multiple_of(ALIGNMENT)?.checked_add(ALIGNMENT)
}
