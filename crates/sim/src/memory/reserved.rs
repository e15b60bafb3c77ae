//! Device memory at addresses that are inaccessible to host code.
//!
//! The addresses are reserved without access, so a host program that dereferences a device pointer
//! faults as it would on hardware. The bytes are in a memory file, which the simulator maps a
//! second time for itself.

use std::collections::HashSet;
use std::fs::File;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::{io, slice};

use crate::error::Error;
use crate::host_pointer::HostPtr;
use crate::lock::{Mutex, MutexGuard, Rank};
use crate::memory::alignment::{ALIGNMENT, LARGE_PAGE, alignment};
use crate::memory::mapping::{Mapping, file_in_memory, page_size};
use crate::memory::pattern;
use crate::memory::ranges::Ranges;

/// An inaccessible address range and its bytes.
pub(crate) struct Reserved {
    addresses: Mapping,
    bytes: Mapping,
    file: OwnedFd,
    ranges: Mutex<Ranges>,
    /// The start of each allocation that other processes may have opened. All of its bytes are in
    /// the file.
    shared: Mutex<HashSet<u64>>,
}

/// The minimum size of the address range, which leaves room between allocations.
const MIN_SIZE: u64 = 64 << 20;

impl Reserved {
    /// Reserves about `size` addresses.
    pub(crate) fn new(size: u64) -> Result<Self, Error> {
        let size = size.clamp(MIN_SIZE, 1 << 44).next_multiple_of(page_size());
        Self::reserve(size).map_err(|source| Error::NoAddressSpace {
            bytes: size,
            source,
        })
    }

    fn reserve(size: u64) -> io::Result<Self> {
        let file = file_in_memory(size)?;
        let addresses = Mapping::reserve(size + LARGE_PAGE, 0)?;
        let start = addresses.address().next_multiple_of(LARGE_PAGE);
        Ok(Self {
            bytes: Mapping::from_file(&file, size)?,
            addresses: addresses.cut(start, size),
            file,
            ranges: Mutex::new(Rank::MemoryRanges, Ranges::new(size)),
            shared: Mutex::new(Rank::SharedMemory, HashSet::new()),
        })
    }

    /// Allocates `size` bytes, filled with [`POISON`](crate::host_pointer::POISON). Returns the
    /// address and the simulator's mapping.
    pub(crate) fn allocate(&self, size: u64) -> Option<(u64, HostPtr)> {
        let offset = self.ranges().allocate(footprint(size)?, alignment(size))?;
        let host = self.host(offset);
        match pattern::pages(offset, size) {
            Some(pages) if pattern::cover(&self.bytes, pages.clone()) => {
                self.poison(offset..pages.start);
                self.poison(pages.end..offset + size);
            }
            _ => self.poison(offset..offset + size),
        }
        Some((self.addresses.address() + offset, host))
    }

    /// Returns `true` if bytes of an allocation are outside the file, so other processes cannot
    /// access them.
    pub(crate) fn is_private(&self, address: u64, size: u64) -> bool {
        let offset = address - self.addresses.address();
        pattern::pages(offset, size).is_some() && !self.shared().contains(&offset)
    }

    /// Moves all bytes of an allocation into the file, which other processes open. No work may use
    /// them.
    pub(crate) fn share(&self, address: u64, size: u64) -> io::Result<()> {
        let offset = address - self.addresses.address();
        let Some(pages) = pattern::pages(offset, size) else {
            return Ok(());
        };
        if !self.shared().insert(offset) {
            return Ok(());
        }
        let length = pages.end - pages.start;
        // SAFETY: the pages belong to an allocation, and no work is using them.
        let bytes = unsafe { slice::from_raw_parts(self.host(pages.start).0, length as usize) };
        let file = File::from(self.file.try_clone()?);
        file.write_all_at(bytes, pages.start)?;
        self.show_file(&pages)
    }

    /// Releases an allocation.
    pub(crate) fn release(&self, address: u64, size: u64, _host: HostPtr) {
        let offset = address - self.addresses.address();
        self.shared().remove(&offset);
        if let Some(pages) = pattern::pages(offset, size) {
            // If the system refuses, the old pages stay, and the next allocation fills them.
            self.show_file(&pages).unwrap_or_default();
        }
        self.discard(offset, size);
        if let Some(footprint) = footprint(size) {
            self.ranges().free(offset, footprint);
        }
    }

    /// Returns `true` if only device memory can have this address.
    pub(crate) fn owns(&self, address: u64) -> bool {
        self.addresses.contains(address)
    }

    /// Returns the descriptor of the file with the bytes.
    pub(crate) fn descriptor(&self) -> Option<i32> {
        Some(self.file.as_raw_fd())
    }

    /// Returns the file offset of the byte at an address.
    pub(crate) fn offset(&self, address: u64) -> Option<u64> {
        self.owns(address)
            .then(|| address - self.addresses.address())
    }

    /// Returns the whole pages of a range to the system.
    fn discard(&self, offset: u64, size: u64) {
        let page = page_size();
        let start = offset.next_multiple_of(page);
        let end = (offset + size) / page * page;
        if start < end {
            let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            // SAFETY: the file is open, and the range within it belongs to an allocation that has
            // ended. If the system cannot punch holes, the pages stay in use, which costs memory
            // and nothing else.
            unsafe {
                libc::fallocate(
                    self.file.as_raw_fd(),
                    mode,
                    start.cast_signed(),
                    (end - start).cast_signed(),
                )
            };
        }
    }

    /// Maps pages of the file at their addresses.
    fn show_file(&self, pages: &Range<u64>) -> io::Result<()> {
        let size = pages.end - pages.start;
        self.bytes.replace_by_part(
            self.bytes.address() + pages.start,
            size,
            &self.file,
            pages.start,
        )
    }

    fn host(&self, offset: u64) -> HostPtr {
        HostPtr(self.bytes.start().0.wrapping_add(offset as usize))
    }

    /// Fills the bytes of a new allocation with [`POISON`](crate::host_pointer::POISON).
    fn poison(&self, range: Range<u64>) {
        // SAFETY: the range is within the mapping and belongs to a single allocation.
        unsafe {
            self.host(range.start)
                .poison((range.end - range.start) as usize);
        };
    }

    fn shared(&self) -> MutexGuard<'_, HashSet<u64>> {
        self.shared.lock()
    }

    fn ranges(&self) -> MutexGuard<'_, Ranges> {
        self.ranges.lock()
    }
}

/// Returns the size of an allocation including the gap after it.
fn footprint(size: u64) -> Option<u64> {
    size.checked_next_multiple_of(ALIGNMENT)?
        .checked_add(ALIGNMENT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_pointer::POISON;
    use crate::memory::mapping::tests::with_page_size;
    use crate::memory::{ForeignMemory, Origin, SharedAllocation};

    /// Returns the bytes at `host`.
    fn bytes(host: HostPtr, size: u64) -> Vec<u8> {
        // SAFETY: the allocation has these bytes, and no other thread uses them.
        unsafe { slice::from_raw_parts(host.0, size as usize) }.to_vec()
    }

    #[test]
    fn large_allocations_begin_at_large_pages() {
        let space = Reserved::new(64 << 20).expect("there are addresses");
        for size in [LARGE_PAGE, LARGE_PAGE + 1, 5 << 20] {
            space.allocate(300).expect("no free range");
            let (large, _) = space.allocate(size).expect("no free range");
            assert!(
                large.is_multiple_of(LARGE_PAGE),
                "{size} bytes at {large:#x}"
            );
        }
    }

    /// Allocates memory of several sizes, of which only the last begins at a page, and finds each
    /// of them as another process does.
    fn share_and_open() {
        let space = Reserved::new(64 << 20).expect("there are addresses");
        for size in [700, 100_000, (1 << 20) + 1000, 3 << 20] {
            let (_, gap) = space.allocate(300).expect("no free range");
            let (address, host) = space.allocate(size).expect("no free range");
            assert_eq!(
                bytes(host, size),
                vec![POISON; size as usize],
                "{size} bytes"
            );
            let offset = space.offset(address).expect("the memory is from here");
            assert_eq!(offset.is_multiple_of(4096), size >= LARGE_PAGE);
            // SAFETY: the allocation has these bytes, and no other thread uses them.
            unsafe { host.0.write_bytes(7, size as usize) };
            space
                .share(address, size)
                .expect("the system maps the file");
            let descriptor = space.descriptor().expect("no file");
            let origin = Origin {
                process: std::process::id(),
                descriptor,
                serial: 1,
            };
            let shared = SharedAllocation {
                origin,
                offset,
                size,
                device: 0,
                pool: 0,
            };
            let opened = ForeignMemory::open(shared).expect("the system maps a part of the file");
            assert_eq!(
                bytes(opened.host(), size),
                vec![7; size as usize],
                "{size} bytes"
            );
            assert_eq!(bytes(gap, 300), [POISON; 300]);
            space.release(address, size, host);
        }
    }

    #[test]
    fn memory_is_opened_with_any_page_size() {
        for page in [4 << 10, 16 << 10, 64 << 10] {
            with_page_size(page, share_and_open);
        }
    }
}
