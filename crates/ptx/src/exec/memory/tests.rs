//! Memory for tests.

use std::sync::Arc;

use parking_lot::Mutex;

use super::*;
use crate::exec::check::report::Conflict;
use crate::exec::check::watch::AccessKind;

/// Device memory for tests: one allocation at its own device address.
#[derive(Debug)]
pub(crate) struct Arena {
    pub(crate) base: u64,
    words: Vec<Line>,
    size: u64,
    /// `true` if the launches are watched.
    pub(crate) is_watched: bool,
    /// The watched accesses: the first byte, the number of bytes, and the kind. An exchange is an
    /// access to no bytes at zero.
    pub(crate) recorded: Mutex<Vec<(u64, u64, AccessKind)>>,
    /// A byte that another launch accesses.
    pub(crate) contested: Option<u64>,
    /// The record of written bytes, if the test needs one.
    pub(crate) written: Option<Arc<Written>>,
}

impl Watcher for &Arena {
    fn note(&mut self, address: u64, bytes: u64, how: AccessKind) -> Option<(u64, Conflict)> {
        self.recorded.lock().push((address, bytes, how));
        let byte = self
            .contested
            .filter(|byte| (address..address + bytes).contains(byte))?;
        Some((
            byte,
            Conflict {
                own: 2,
                other: 1,
                other_wrote: true,
            },
        ))
    }

    fn exchange(&mut self) {
        self.recorded.lock().push((0, 0, AccessKind::Atomic));
    }
}

impl Arena {
    /// Creates zeroed memory of `size` bytes at `base`, a multiple of 128.
    pub(crate) fn new(base: u64, size: u64) -> Self {
        let shared = SharedMemory::new(size);
        Self {
            base,
            words: shared.lines,
            size,
            is_watched: false,
            recorded: Mutex::default(),
            contested: None,
            written: None,
        }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Shortens the memory.
    pub(crate) fn cut(&mut self, size: u64) {
        self.size = size;
    }

    fn whole_segment(&self) -> Segment {
        Segment {
            base: self.base,
            size: self.size,
            host: self.words.as_ptr().cast_mut().cast(),
            writable: true,
        }
    }

    fn host_bytes(&self, offset: u64, bytes: u64) -> HostBytes {
        self.whole_segment()
            .host_bytes(self.base + offset, bytes)
            .expect("in bounds")
    }

    /// Writes values at a byte offset.
    pub(crate) fn write<T: Word>(&self, offset: u64, values: &[T]) {
        let memory = self.host_bytes(offset, values.len() as u64 * T::SIZE);
        for (index, &value) in values.iter().enumerate() {
            memory.store(index, value);
        }
    }

    /// Reads values at a byte offset.
    pub(crate) fn read<T: Word>(&self, offset: u64, count: usize) -> Vec<T> {
        let memory = self.host_bytes(offset, count as u64 * T::SIZE);
        (0..count).map(|index| memory.load(index)).collect()
    }
}

// SAFETY: the one segment is memory that the arena owns and frees when dropped; it is made of
// atomics; `base` and the lines are multiples of 16.
unsafe impl Memory for Arena {
    fn segment(&self, address: u64) -> Option<Segment> {
        let segment = self.whole_segment();
        segment.host_bytes(address, 1).map(|_| segment)
    }

    fn watcher(&self) -> Option<Box<dyn Watcher + '_>> {
        if self.is_watched {
            Some(Box::new(self))
        } else {
            None
        }
    }

    fn written(&self, _address: u64) -> Option<Arc<Written>> {
        self.written.clone()
    }
}

#[test]
fn host_bytes_are_within_the_segment() {
    let arena = Arena::new(0x1000, 16);
    assert!(arena.segment(0x100f).is_some());
    let segment = arena.whole_segment();
    assert!(segment.host_bytes(0x100c, 4).is_some());
    assert!(segment.host_bytes(0x100d, 4).is_none());
    assert!(segment.host_bytes(0xfff, 1).is_none());
    assert!(segment.host_bytes(u64::MAX, 2).is_none());
    assert!(arena.segment(0x1010).is_none());
}

#[test]
#[should_panic(expected = "not checked")]
fn an_index_past_the_checked_bytes_panics() {
    let shared = SharedMemory::new(64);
    if let Some(memory) = shared.host_bytes(0, 8) {
        let _: u32 = memory.load(2);
    }
}
