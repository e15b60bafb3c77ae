//! Races of a block's warps for its shared memory.
//!
//! Two warps race if both access a byte, at least one of them writes it, and no barrier of the block lies between. A race is reported
//! whatever the order in which the warps happened to run. What the threads of one warp do among themselves is left out, because it
//! may be ordered by votes and shuffles. Fences, atomics, barrier objects, asynchronous copies, and accesses that are volatile or
//! ordered may order anything: each of them counts as a barrier, so that no program which is right is reported, while a race
//! beside one may stay unseen. What matrix instructions load and store is not looked at.

use super::access::addresses;
use super::fault::{Access, FaultKind, Trap};
use super::lane::{HALF, Lanes};
use super::op::{Control, Op, Space};
use super::unit::Unit;
use super::window::{BLOCK_STRIDE, SHARED_WINDOW};

/// Bytes that one mark is about.
const WORD: u64 = 4;

/// Who accessed a block's shared memory since its last barrier.
#[derive(Debug)]
pub(crate) struct Shadow {
    marks: Vec<Mark>,
    /// Counts barriers; marks of earlier ones are void.
    epoch: u32,
}

/// The accesses to a word.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    epoch: u32,
    /// The thread that wrote last.
    writer: u16,
    /// A thread that read, and one of another warp, or the same if there is none.
    readers: [u16; 2],
    /// Bytes that were written and read, by bits.
    written: u8,
    read: u8,
}

impl Shadow {
    /// The shadow of so many bytes, which nobody accessed.
    pub(crate) fn new(bytes: u64) -> Self {
        Self { marks: vec![Mark::default(); bytes.div_ceil(WORD) as usize], epoch: 1 }
    }

    /// Forgets what was accessed: a barrier, or whatever may be one, lies between.
    pub(crate) fn advance(&mut self) {
        self.epoch += 1;
    }

    /// Notes a thread's access, and returns the thread that it races with, if there is one.
    #[inline(always)]
    fn note(&mut self, offset: u64, bytes: u64, thread: u16, write: bool) -> Option<u16> {
        let (word, begin) = (offset / WORD, offset % WORD);
        if begin + bytes <= WORD {
            return self.note_word(word, mask(begin, begin + bytes), thread, write);
        }
        let end = offset + bytes;
        (word..end.div_ceil(WORD)).find_map(|word| {
            let first = word * WORD;
            let mask = mask(offset.max(first) - first, end.min(first + WORD) - first);
            self.note_word(word, mask, thread, write)
        })
    }

    #[inline(always)]
    fn note_word(&mut self, word: u64, bytes: u8, thread: u16, write: bool) -> Option<u16> {
        let mark = self.marks.get_mut(word as usize)?;
        if mark.epoch != self.epoch {
            *mark = Mark { epoch: self.epoch, ..Mark::default() };
        }
        // What kernels do most: many read what nobody writes.
        if !write && mark.written == 0 && mark.read & bytes == bytes {
            if warp(mark.readers[0]) != warp(thread) {
                mark.readers[1] = thread;
            }
            return None;
        }
        mark.note(bytes, thread, write)
    }
}

/// The bytes of a word from `begin` to `end`, by bits.
fn mask(begin: u64, end: u64) -> u8 {
    ((1 << end) - (1 << begin)) as u8
}

impl Mark {
    fn note(&mut self, bytes: u8, thread: u16, write: bool) -> Option<u16> {
        let races_with = |other: u16| warp(other) != warp(thread);
        let writer = (self.written & bytes != 0 && races_with(self.writer)).then_some(self.writer);
        let is_read = write && self.read & bytes != 0;
        let reader = self.readers.into_iter().find(|reader| is_read && races_with(*reader));
        if write {
            self.note_write(bytes, thread);
        } else {
            self.note_read(bytes, thread);
        }
        writer.or(reader)
    }

    /// Of two warps that write bytes of one word, the last is remembered with its own.
    fn note_write(&mut self, bytes: u8, thread: u16) {
        let goes_on = self.written != 0 && warp(self.writer) == warp(thread);
        self.written = if goes_on { self.written | bytes } else { bytes };
        self.writer = thread;
    }

    /// Readers are remembered as long as they read the same bytes, or are of one warp.
    fn note_read(&mut self, bytes: u8, thread: u16) {
        let is_of_their_warp = self.readers.iter().all(|reader| warp(*reader) == warp(thread));
        if self.read & bytes == bytes && self.read != 0 {
            if warp(self.readers[0]) != warp(thread) {
                self.readers[1] = thread;
            }
        } else if self.read != 0 && is_of_their_warp {
            self.read |= bytes;
        } else {
            (self.readers, self.read) = ([thread; 2], bytes);
        }
    }
}

fn warp(thread: u16) -> u16 {
    thread / 32
}

/// Checks the access that follows, of the bytes that it is aligned to.
pub(crate) fn run_check<const WRITE: bool>(unit: &mut Unit<'_>, op: &Op) -> Control {
    let bytes = u64::from(op.align_mask) + 1;
    let addresses = addresses(unit, op);
    let first = unit.warp.index * 32;
    for lane in Lanes(unit.active) {
        let address = addresses[lane];
        // A warp often reads one address, or the same in both halves: to look once is enough.
        let seen = |distance: usize| {
            let is_active = lane >= distance && unit.active >> (lane - distance) & 1 == 1;
            is_active && addresses[lane - distance] == address
        };
        if seen(1) || seen(HALF) {
            continue;
        }
        let offset = if op.space == Space::Generic { address.wrapping_sub(SHARED_WINDOW) } else { address };
        let Some(shadow) = unit.block.shadow.as_mut().filter(|_| offset < BLOCK_STRIDE) else { continue };
        if let Some(other) = shadow.note(offset, bytes, (first + lane as u32) as u16, WRITE) {
            let kind = FaultKind::Race { with: thread_index(u32::from(other), unit.launch.block) };
            let access = Some(Access { address, size: bytes as u32, write: WRITE });
            return unit.fault(Trap { access, ..Trap::new(kind, lane).in_space(op.space) });
        }
    }
    Control::Next
}

/// What may be a barrier.
pub(crate) fn run_order(unit: &mut Unit<'_>, _op: &Op) -> Control {
    if let Some(shadow) = &mut unit.block.shadow {
        shadow.advance();
    }
    Control::Next
}

/// The index in its block of the thread of a number.
fn thread_index(number: u32, [columns, rows, _]: [u32; 3]) -> [u16; 3] {
    [number % columns, number / columns % rows, number / columns / rows].map(|index| index as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_of_two_warps_race_if_one_writes_and_no_barrier_lies_between() {
        for (first, second, races) in
            [(false, false, false), (false, true, true), (true, false, true), (true, true, true)]
        {
            let mut shadow = Shadow::new(64);
            assert_eq!(shadow.note(8, 4, 3, first), None);
            assert_eq!(shadow.note(8, 4, 5, second), None, "the warp is the same");
            assert_eq!(shadow.note(12, 4, 40, second), None, "the word is another");
            assert_eq!(shadow.note(8, 4, 40, second).is_some(), races, "{first} {second}");
            shadow.advance();
            assert_eq!(shadow.note(8, 4, 70, second), None, "a barrier lies between");
        }
    }

    #[test]
    fn bytes_of_one_word_are_told_apart() {
        let mut shadow = Shadow::new(8);
        assert_eq!(shadow.note(0, 1, 0, true), None);
        assert_eq!(shadow.note(1, 1, 32, true), None);
        assert_eq!(shadow.note(2, 2, 64, false), None);
        assert_eq!(shadow.note(1, 1, 0, true), Some(32));
        assert_eq!(shadow.note(2, 4, 32, true), Some(64));
    }

    #[test]
    fn writer_races_with_a_reader_of_another_warp_than_its_own() {
        let mut shadow = Shadow::new(8);
        assert_eq!(shadow.note(0, 4, 0, false), None);
        assert_eq!(shadow.note(0, 4, 33, false), None);
        assert_eq!(shadow.note(0, 4, 1, true), Some(33));
    }
}
