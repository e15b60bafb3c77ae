//! Mappings of the process's address space, with or without memory.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::OnceLock;
use std::{io, ptr};

use crate::host_pointer::HostPtr;

/// Returns the page size in bytes: 4 KiB on x86-64, and up to 64 KiB on ARM.
pub(crate) fn page_size() -> u64 {
    static SIZE: OnceLock<u64> = OnceLock::new();
    #[cfg(test)]
    if let Some(size) = tests::PAGE_SIZE.get() {
        return size;
    }
    // SAFETY: the call reads a constant of the system.
    *SIZE.get_or_init(|| unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.unsigned_abs())
}

/// A mapping, which is unmapped when dropped.
pub(crate) struct Mapping {
    start: HostPtr,
    size: usize,
}

/// The part of a file that a mapping shows.
struct FileRange<'a> {
    file: &'a OwnedFd,
    offset: u64,
}

/// Returns the last two arguments of `mmap`: a mapping without a file has the descriptor -1.
fn descriptor_and_offset(source: Option<FileRange<'_>>) -> (i32, u64) {
    source.map_or((-1, 0), |range| (range.file.as_raw_fd(), range.offset))
}

impl Mapping {
    /// Maps the first `size` bytes of a file for reads and writes.
    pub(crate) fn from_file(file: &OwnedFd, size: u64) -> io::Result<Self> {
        Self::from_file_range(file, 0, size)
    }

    /// Maps `size` bytes of a file from `offset` on, a multiple of the page size, for reads and
    /// writes.
    pub(crate) fn from_file_range(file: &OwnedFd, offset: u64, size: u64) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        Self::new(
            0,
            size,
            protection,
            libc::MAP_SHARED,
            Some(FileRange { file, offset }),
        )
    }

    /// Reserves inaccessible addresses. A nonzero `hint` is preferred if it is free.
    pub(crate) fn reserve(size: u64, hint: u64) -> io::Result<Self> {
        Self::new(
            hint,
            size,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            None,
        )
    }

    pub(crate) fn start(&self) -> HostPtr {
        self.start
    }

    /// Returns the first address.
    pub(crate) fn address(&self) -> u64 {
        self.start.0.addr() as u64
    }

    pub(crate) fn size(&self) -> u64 {
        self.size as u64
    }

    pub(crate) fn contains(&self, address: u64) -> bool {
        address
            .checked_sub(self.address())
            .is_some_and(|offset| offset < self.size())
    }

    /// Unmaps everything but the `size` bytes from `address` on. Both are multiples of the page
    /// size.
    pub(crate) fn cut(mut self, address: u64, size: u64) -> Self {
        let before = address - self.address();
        let after = self.address() + self.size() - (address + size);
        unmap(self.start, before as usize);
        self.start = HostPtr(self.start.0.wrapping_add(before as usize));
        unmap(
            HostPtr(self.start.0.wrapping_add(size as usize)),
            after as usize,
        );
        self.size = size as usize;
        self
    }

    /// Maps the first `size` bytes of a file at an address in this mapping, for host code.
    pub(crate) fn show(
        &self,
        address: u64,
        size: u64,
        file: &OwnedFd,
        is_writable: bool,
    ) -> io::Result<()> {
        let protection = libc::PROT_READ | if is_writable { libc::PROT_WRITE } else { 0 };
        self.replace(
            address,
            size,
            protection,
            libc::MAP_SHARED,
            Some(FileRange { file, offset: 0 }),
        )
    }

    /// Replaces `size` bytes from `address` on by a private copy of a file.
    pub(crate) fn replace_by_copy(
        &self,
        address: u64,
        size: u64,
        file: &OwnedFd,
    ) -> io::Result<()> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        self.replace(
            address,
            size,
            protection,
            libc::MAP_PRIVATE,
            Some(FileRange { file, offset: 0 }),
        )
    }

    /// Replaces `size` bytes from `address` on by those of a file from `offset` on.
    pub(crate) fn replace_by_part(
        &self,
        address: u64,
        size: u64,
        file: &OwnedFd,
        offset: u64,
    ) -> io::Result<()> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        self.replace(
            address,
            size,
            protection,
            libc::MAP_SHARED,
            Some(FileRange { file, offset }),
        )
    }

    /// Makes `size` bytes from `address` on inaccessible again.
    pub(crate) fn hide(&self, address: u64, size: u64) -> io::Result<()> {
        self.replace(
            address,
            size,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            None,
        )
    }

    fn new(
        hint: u64,
        size: u64,
        protection: i32,
        flags: i32,
        source: Option<FileRange<'_>>,
    ) -> io::Result<Self> {
        let size = size as usize;
        let hint = ptr::without_provenance_mut(hint as usize);
        let flags = flags | libc::MAP_NORESERVE;
        let (file, offset) = descriptor_and_offset(source);
        #[cfg(test)]
        tests::refuse_unaligned(0, offset)?;
        // SAFETY: a new mapping at an address that the system selects replaces no other mapping.
        let start =
            unsafe { libc::mmap(hint, size, protection, flags, file, offset.cast_signed()) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            start: HostPtr(start.cast()),
            size,
        })
    }

    fn replace(
        &self,
        address: u64,
        size: u64,
        protection: i32,
        flags: i32,
        source: Option<FileRange<'_>>,
    ) -> io::Result<()> {
        let start = self
            .start
            .0
            .wrapping_add((address - self.address()) as usize);
        let flags = flags | libc::MAP_NORESERVE | libc::MAP_FIXED;
        let (file, offset) = descriptor_and_offset(source);
        #[cfg(test)]
        tests::refuse_unaligned(address - self.address(), offset)?;
        // SAFETY: the pages are within this mapping. The contract of the driver's functions that
        // replace them forbids programs to use their contents any more.
        let mapped = unsafe {
            libc::mmap(
                start.cast(),
                size as usize,
                protection,
                flags,
                file,
                offset.cast_signed(),
            )
        };
        if mapped == libc::MAP_FAILED {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        unmap(self.start, self.size);
    }
}

/// The name of the files in lists of open files.
const NAME: &CStr = c"curium-sim device memory";

/// Returns the file that process `process` has open as `descriptor`, if it belongs to a simulator.
pub(crate) fn process_file(process: u32, descriptor: i32) -> io::Result<OwnedFd> {
    let path = format!("/proc/{process}/fd/{descriptor}");
    let target = std::fs::read_link(&path)?;
    let name = NAME.to_str().unwrap_or_default();
    if !target
        .to_str()
        .is_some_and(|target| target.contains("memfd:") && target.contains(name))
    {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(std::fs::File::options()
        .read(true)
        .write(true)
        .open(path)?
        .into())
}

/// Creates an unnamed, sparse memory file of `size` bytes.
pub(crate) fn file_in_memory(size: u64) -> io::Result<OwnedFd> {
    // SAFETY: the name is NUL-terminated text.
    let raw = unsafe { libc::memfd_create(NAME.as_ptr(), libc::MFD_CLOEXEC) };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened and has no other owner.
    let file = unsafe { OwnedFd::from_raw_fd(raw) };
    // SAFETY: the descriptor is open.
    match unsafe { libc::ftruncate(file.as_raw_fd(), size.cast_signed()) } {
        0 => Ok(file),
        _ => Err(io::Error::last_os_error()),
    }
}

fn unmap(start: HostPtr, size: usize) {
    if size != 0 {
        // SAFETY: the pages are part of a mapping of this driver, and nothing in the driver uses
        // them any more.
        unsafe { libc::munmap(start.0.cast(), size) };
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        /// The page size that this thread assumes in place of the system's.
        pub(super) static PAGE_SIZE: Cell<Option<u64>> = const { Cell::new(None) };
    }

    /// Runs `action` as on a system with this page size.
    pub(crate) fn with_page_size<R>(size: u64, action: impl FnOnce() -> R) -> R {
        PAGE_SIZE.set(Some(size));
        let result = action();
        PAGE_SIZE.set(None);
        result
    }

    /// Returns the error of `mmap` on a system with this page size if a position or an offset is
    /// within a page. The position counts from the start of a mapping, which the system aligns to
    /// its own pages only.
    pub(super) fn refuse_unaligned(position: u64, offset: u64) -> io::Result<()> {
        let is_aligned = [position, offset]
            .iter()
            .all(|bytes| bytes.is_multiple_of(page_size()));
        if is_aligned {
            Ok(())
        } else {
            Err(io::Error::from_raw_os_error(libc::EINVAL))
        }
    }

    #[test]
    fn page_size_is_a_power_of_two() {
        assert!(
            page_size().is_power_of_two() && page_size() >= 4096,
            "{}",
            page_size()
        );
    }
}
