//! Device memory at addresses that host code cannot touch.
//!
//! The addresses are reserved without access, so that a host program that dereferences a device pointer faults as it would
//! on hardware. The bytes are those of a file in memory, mapped a second time where only the simulator looks.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Error;
use crate::memory::ranges::Ranges;
use crate::memory::{ALIGNMENT, HostPtr};

/// A row of addresses without access, and the bytes behind them.
pub(crate) struct Reserved {
    addresses: Mapping,
    bytes: Mapping,
    file: OwnedFd,
    ranges: Mutex<Ranges>,
}

/// A mapping of our own, unmapped when dropped.
struct Mapping {
    start: HostPtr,
    size: usize,
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
        let bytes = Mapping::new(size, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, file.as_raw_fd());
        let addresses = Mapping::new(size, libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1);
        Ok(Self {
            bytes: bytes.map_err(refused)?,
            addresses: addresses.map_err(refused)?,
            file,
            ranges: Mutex::new(Ranges::new(size)),
        })
    }

    /// Fresh memory of `size` bytes: its address, and where the simulator finds it.
    pub(crate) fn allocate(&self, size: u64) -> Option<(u64, HostPtr)> {
        let offset = self.ranges().take(footprint(size)?)?;
        let host = HostPtr(self.bytes.start.0.wrapping_add(offset as usize));
        // SAFETY: the range lies within the mapping and was taken for this allocation alone.
        unsafe { host.poison(size as usize) };
        Some((self.addresses.start.0.addr() as u64 + offset, host))
    }

    /// Takes memory back that came from here.
    pub(crate) fn release(&self, address: u64, size: u64, _host: HostPtr) {
        let offset = address - self.addresses.start.0.addr() as u64;
        self.discard(offset, size);
        if let Some(footprint) = footprint(size) {
            self.ranges().give_back(offset, footprint);
        }
    }

    /// Whether only memory from here can have this address.
    pub(crate) fn owns(&self, address: u64) -> bool {
        let start = self.addresses.start.0.addr() as u64;
        (start..start + self.addresses.size as u64).contains(&address)
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

impl Mapping {
    fn new(size: u64, protection: i32, flags: i32, file: i32) -> io::Result<Self> {
        let size = size as usize;
        let flags = flags | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at a place of the system's choice touches nothing that exists.
        let start = unsafe { libc::mmap(ptr::null_mut(), size, protection, flags, file, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { start: HostPtr(start.cast()), size })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and what was allocated in it has ended with the driver that owns it.
        unsafe { libc::munmap(self.start.0.cast(), self.size) };
    }
}

/// A file of `size` bytes that has no name and takes memory only where it was written.
fn file_in_memory(size: u64) -> io::Result<OwnedFd> {
    // SAFETY: the name is NUL-terminated text.
    let raw = unsafe { libc::memfd_create(c"curium-sim device memory".as_ptr(), libc::MFD_CLOEXEC) };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened and belongs to nobody else.
    let file = unsafe { OwnedFd::from_raw_fd(raw) };
    // SAFETY: the descriptor is open.
    match unsafe { libc::ftruncate(file.as_raw_fd(), size.cast_signed()) } {
        0 => Ok(file),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The addresses that an allocation takes: its bytes, and a gap that belongs to nobody.
fn footprint(size: u64) -> Option<u64> {
    size.checked_next_multiple_of(ALIGNMENT)?.checked_add(ALIGNMENT)
}
