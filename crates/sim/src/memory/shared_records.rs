//! Records of an interprocess event: a page of shared memory.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::memory::mapping::{Mapping, file_in_memory, process_file};

/// The number of records of an event by all processes, and the last completed ones.
pub(crate) struct SharedRecords {
    page: Mapping,
    file: OwnedFd,
}

/// The first word of the page. The number of records follows, and then the last completed record of
/// each slot.
const MAGIC: u64 = u64::from_le_bytes(*b"curiumev");
/// The number of slots. Record `n` uses slot `n % SLOTS`, where it replaces an earlier record.
const SLOTS: u64 = 256;
const PAGE: u64 = 4096;

impl SharedRecords {
    /// Creates the records of a new event.
    pub(crate) fn new() -> io::Result<Self> {
        let file = file_in_memory(PAGE)?;
        let records = Self {
            page: Mapping::from_file(&file, PAGE)?,
            file,
        };
        records.word(0).store(MAGIC, Ordering::Release);
        Ok(records)
    }

    /// Opens the records that another process has open as `descriptor`.
    pub(crate) fn open(process: u32, descriptor: i32) -> io::Result<Self> {
        let file = process_file(process, descriptor)?;
        if std::fs::File::from(file.try_clone()?).metadata()?.len() != PAGE {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let records = Self {
            page: Mapping::from_file(&file, PAGE)?,
            file,
        };
        if records.word(0).load(Ordering::Acquire) == MAGIC {
            Ok(records)
        } else {
            Err(io::ErrorKind::InvalidData.into())
        }
    }

    /// Returns the descriptor by which other processes open the page.
    pub(crate) fn descriptor(&self) -> i32 {
        self.file.as_raw_fd()
    }

    /// Begins a record, and returns its number.
    pub(crate) fn begin(&self) -> u64 {
        self.word(1).fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Completes a record.
    pub(crate) fn finish(&self, number: u64) {
        self.slot(number).fetch_max(number, Ordering::AcqRel);
    }

    /// Returns the number of the last record; 0 without records.
    pub(crate) fn last(&self) -> u64 {
        self.word(1).load(Ordering::Acquire)
    }

    /// Returns `true` if a record has completed.
    pub(crate) fn is_done(&self, number: u64) -> bool {
        self.slot(number).load(Ordering::Acquire) >= number
    }

    fn slot(&self, number: u64) -> &AtomicU64 {
        self.word(2 + (number % SLOTS) as usize)
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        let word = self.page.start().0.cast::<u64>().wrapping_add(index);
        // SAFETY: the page holds 512 aligned words, of which 258 are used, as atomics only and by
        // every process, and it is mapped for as long as `self` lives.
        unsafe { AtomicU64::from_ptr(word) }
    }
}
