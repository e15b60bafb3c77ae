//! Changes of host memory while a copy that uses it is queued.
//!
//! Loads and stores of the host are not observed. But if nothing ran between the submission of a
//! copy and its execution, only the host can have changed the memory, and it cannot have
//! synchronized with the copy.

use std::sync::Arc;

use super::Races;
use crate::host_pointer::HostPtr;

/// The maximum length of a checked range, which is copied for the comparison.
const MAX_BYTES: usize = 64 << 20;

/// Host memory at the time when a copy of it was queued.
#[derive(Debug)]
pub(crate) struct HostSnapshot {
    races: Arc<Races>,
    turn: u64,
    start: HostPtr,
    bytes: Box<[u8]>,
}

impl HostSnapshot {
    /// Saves the contents of memory.
    ///
    /// # Safety
    ///
    /// The bytes may be read, now and as long as the copy that uses them is queued.
    pub(crate) unsafe fn new(races: &Arc<Races>, start: HostPtr, size: usize) -> Option<Self> {
        if size > MAX_BYTES {
            return None;
        }
        // SAFETY: the caller guarantees the bytes.
        let bytes = unsafe { read(start, size) };
        Some(Self {
            races: Arc::clone(races),
            turn: races.turn(),
            start,
            bytes,
        })
    }

    /// Returns the address of the first byte.
    pub(crate) fn address(&self) -> u64 {
        self.start.0.addr() as u64
    }

    /// Returns the offset of the first byte that the host changed before the copy began.
    pub(crate) fn changed(&self) -> Option<usize> {
        if self.races.turn() != self.turn + 1 || self.races.running() != 1 {
            return None;
        }
        // SAFETY: the creator of this value guaranteed the bytes until the copy has run.
        let now = unsafe { read(self.start, self.bytes.len()) };
        self.bytes
            .iter()
            .zip(&now)
            .position(|(before, now)| before != now)
    }
}

/// Copies memory.
///
/// # Safety
///
/// The bytes may be read.
unsafe fn read(HostPtr(from): HostPtr, size: usize) -> Box<[u8]> {
    let mut bytes = vec![0; size].into_boxed_slice();
    // SAFETY: the caller guarantees the bytes; the target is new and equally long.
    unsafe { std::ptr::copy_nonoverlapping(from.cast_const(), bytes.as_mut_ptr(), size) };
    bytes
}
