//! Physical memory: a memory file for each allocation, which can be mapped at several addresses and
//! in several processes.

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, IntoRawFd, OwnedFd};
use std::os::unix::fs::FileExt;

use crate::host_pointer::HostPtr;
use crate::memory::mapping::{Mapping, file_in_memory, page_size, process_file};
use crate::memory::{SharedAllocation, pattern};

/// The bytes of a physical allocation.
pub(crate) struct Backing {
    mapping: Mapping,
    /// Kept only for memory that may be shared or shown to the host, because file descriptors are
    /// scarce.
    file: Option<OwnedFd>,
}

/// A description of a file after its last byte, for processes that import the file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Label {
    pub(crate) size: u64,
    /// Numbers that the driver interprets.
    pub(crate) words: [u64; LABEL_WORDS],
}

/// The number of words of a label.
pub(crate) const LABEL_WORDS: usize = 8;

const MAGIC: u64 = u64::from_le_bytes(*b"curiumsm");
const LABEL_BYTES: u64 = 8 * (2 + LABEL_WORDS as u64);

impl Backing {
    /// Creates memory that is filled with [`POISON`](crate::host_pointer::POISON).
    pub(crate) fn new(label: Label, keep_file: bool) -> io::Result<Self> {
        if !keep_file
            && let Some(pages) =
                pattern::pages(0, label.size).filter(|pages| pages.end == label.size)
        {
            let mapping = Mapping::reserve(label.size, 0)?;
            if pattern::cover(&mapping, pages) {
                return Ok(Self {
                    mapping,
                    file: None,
                });
            }
        }
        let file = File::from(file_in_memory(label.size + LABEL_BYTES)?);
        file.write_all_at(&label.to_bytes(), label.size)?;
        let file = OwnedFd::from(file);
        let mapping = Mapping::from_file(&file, label.size)?;
        // SAFETY: the mapping has this size, and nothing else accesses it yet.
        unsafe { mapping.start().poison(label.size as usize) };
        Ok(Self {
            mapping,
            file: keep_file.then_some(file),
        })
    }

    /// Imports the memory of a descriptor, or returns `None` if the descriptor is no such file. The
    /// caller keeps the descriptor.
    pub(crate) fn import(descriptor: i32) -> Option<(Self, Label)> {
        if descriptor < 0 {
            return None;
        }
        // SAFETY: the caller of the C function guarantees that the descriptor is open during the
        // call.
        let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
        let file = File::from(borrowed.try_clone_to_owned().ok()?);
        let size = file.metadata().ok()?.len().checked_sub(LABEL_BYTES)?;
        let mut bytes = [0; LABEL_BYTES as usize];
        file.read_exact_at(&mut bytes, size).ok()?;
        let label = Label::from_bytes(&bytes).filter(|label| label.size == size)?;
        let file = OwnedFd::from(file);
        Some((
            Self {
                mapping: Mapping::from_file(&file, size).ok()?,
                file: Some(file),
            },
            label,
        ))
    }

    /// Returns a descriptor of the memory. The caller closes it.
    pub(crate) fn export(&self) -> io::Result<i32> {
        self.file()?.try_clone().map(IntoRawFd::into_raw_fd)
    }

    /// Returns the host memory of the bytes.
    pub(crate) fn host(&self) -> HostPtr {
        self.mapping.start()
    }

    fn file(&self) -> io::Result<&OwnedFd> {
        self.file
            .as_ref()
            .ok_or_else(|| io::ErrorKind::Unsupported.into())
    }
}

impl Label {
    fn to_bytes(self) -> Vec<u8> {
        [MAGIC, self.size]
            .into_iter()
            .chain(self.words)
            .flat_map(u64::to_le_bytes)
            .collect()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut words = bytes
            .as_chunks::<8>()
            .0
            .iter()
            .map(|word| u64::from_le_bytes(*word));
        if words.next() != Some(MAGIC) {
            return None;
        }
        let size = words.next()?;
        let mut label = Self {
            size,
            words: [0; LABEL_WORDS],
        };
        label
            .words
            .iter_mut()
            .zip(words)
            .for_each(|(to, from)| *to = from);
        Some(label)
    }
}

/// A reserved address range without memory.
pub(crate) struct Reservation(Mapping);

impl Reservation {
    /// Reserves `size` addresses at a multiple of `alignment`, a power of two. A nonzero `hint` is
    /// preferred.
    pub(crate) fn new(size: u64, alignment: u64, hint: u64) -> io::Result<Self> {
        if hint != 0 && hint.is_multiple_of(alignment) {
            let mapping = Mapping::reserve(size, hint)?;
            if mapping.address() == hint {
                return Ok(Self(mapping));
            }
        }
        let padded = size
            .checked_add(alignment)
            .ok_or(io::ErrorKind::OutOfMemory)?;
        let mapping = Mapping::reserve(padded, 0)?;
        let start = mapping.address().next_multiple_of(alignment);
        Ok(Self(mapping.cut(start, size)))
    }

    pub(crate) fn address(&self) -> u64 {
        self.0.address()
    }

    pub(crate) fn size(&self) -> u64 {
        self.0.size()
    }

    /// Maps the start of the backing at an address of the reservation, for host code.
    pub(crate) fn show(
        &self,
        address: u64,
        size: u64,
        backing: &Backing,
        is_writable: bool,
    ) -> io::Result<()> {
        self.0.show(address, size, backing.file()?, is_writable)
    }

    /// Unmaps addresses from host code.
    pub(crate) fn hide(&self, address: u64, size: u64) -> io::Result<()> {
        self.0.hide(address, size)
    }
}

/// Memory that belongs to another process.
pub(crate) struct ForeignMemory {
    bytes: Mapping,
    addresses: Mapping,
    /// The offset of the memory in its first page.
    skew: u64,
    shared: SharedAllocation,
    /// The number of times that the memory was opened.
    pub(crate) openings: u32,
}

impl ForeignMemory {
    /// Opens shared memory of another process.
    pub(crate) fn open(shared: SharedAllocation) -> io::Result<Self> {
        let file = process_file(shared.origin.process, shared.origin.descriptor)?;
        let skew = shared.offset % page_size();
        let size = (skew + shared.size).next_multiple_of(page_size());
        let bytes = Mapping::from_file_range(&file, shared.offset - skew, size)?;
        Ok(Self {
            bytes,
            addresses: Mapping::reserve(size, 0)?,
            skew,
            shared,
            openings: 1,
        })
    }

    pub(crate) fn shared(&self) -> SharedAllocation {
        self.shared
    }

    pub(crate) fn address(&self) -> u64 {
        self.addresses.address() + self.skew
    }

    pub(crate) fn host(&self) -> HostPtr {
        HostPtr(self.bytes.start().0.wrapping_add(self.skew as usize))
    }
}
