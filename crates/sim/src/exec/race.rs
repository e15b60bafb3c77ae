//! Races of a block's threads for its shared memory.
//!
//! Two warps race if both access a byte, at least one of them writes it, and no barrier of the block lies between. Two threads of one warp
//! race if they do so by different instructions, and the warp executes nothing in between that its threads do together: a barrier of the
//! warp, a shuffle, a vote. That a warp runs in step orders nothing. What one instruction of a warp writes to one place several times is
//! left out: PTX says that one of them is written. A race is reported whatever the order in which the warps happened to run.
//!
//! Fences, atomics, barrier objects, asynchronous copies, and accesses that are volatile or ordered may order anything: each of them counts
//! as a barrier, so that no program which is right is reported, while a race beside one may stay unseen. What matrix instructions load and
//! store is not looked at.

use super::access::addresses;
use super::fault::{Access, FaultKind, Trap};
use super::lane::{HALF, Lanes};
use super::op::{Control, Op, Space};
use super::runs;
use super::unit::Unit;
use super::window::{BLOCK_STRIDE, SHARED_WINDOW};

/// Bytes that one mark is about.
const WORD: u64 = 4;
/// All of them, by bits.
const WHOLE: u8 = 0xf;

/// Who accessed a block's shared memory since its last barrier.
#[derive(Debug)]
pub(crate) struct Shadow {
    marks: Vec<Mark>,
    /// Counts barriers; marks of earlier ones are void.
    epoch: u32,
}

/// How far a warp has got with its accesses to shared memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Steps {
    /// Counts the instructions that access it.
    now: u32,
    /// The last of them before the threads did something together.
    joined: u32,
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
    /// Of these, those of the last writer and of the first reader themselves, and the steps of their warps.
    writers_own: u8,
    readers_own: u8,
    write_step: u32,
    read_step: u32,
}

/// An access of bytes of a word.
#[derive(Clone, Copy, Debug)]
struct Visit {
    bytes: u8,
    thread: u16,
    write: bool,
    steps: Steps,
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
    fn note(&mut self, offset: u64, bytes: u64, thread: u16, write: bool, steps: Steps) -> Option<u16> {
        let (word, begin) = (offset / WORD, offset % WORD);
        let visit = |bytes| Visit { bytes, thread, write, steps };
        if begin + bytes <= WORD {
            return self.note_word(word, visit(mask(begin, begin + bytes)));
        }
        let end = offset + bytes;
        (word..end.div_ceil(WORD)).find_map(|word| {
            let first = word * WORD;
            let mask = mask(offset.max(first) - first, end.min(first + WORD) - first);
            self.note_word(word, visit(mask))
        })
    }

    /// Whether to note that a warp reads these bytes would change nothing: nobody has written them, and enough others read them.
    #[inline(always)]
    fn is_read(&self, offset: u64, bytes: u64, own: u16) -> bool {
        let words = (offset / WORD) as usize..((offset + bytes) / WORD) as usize;
        let is_whole = (offset | bytes).is_multiple_of(WORD);
        let is_read = |mark: &Mark| {
            let [first, second] = mark.readers.map(warp);
            let is_known = first == own || first != second;
            mark.epoch == self.epoch && mark.written == 0 && mark.read == WHOLE && is_known
        };
        is_whole && self.marks.get(words).is_some_and(|marks| marks.iter().all(is_read))
    }

    #[inline(always)]
    fn note_word(&mut self, word: u64, visit: Visit) -> Option<u16> {
        let Visit { bytes, thread, write, .. } = visit;
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
        mark.note(visit)
    }
}

/// The bytes of a word from `begin` to `end`, by bits.
fn mask(begin: u64, end: u64) -> u8 {
    ((1 << end) - (1 << begin)) as u8
}

impl Mark {
    fn note(&mut self, visit: Visit) -> Option<u16> {
        let rival = self.rival(visit);
        if visit.write {
            self.note_write(visit);
        } else {
            self.note_read(visit);
        }
        rival
    }

    /// The thread that an access races with.
    fn rival(&self, Visit { bytes, thread, write, steps }: Visit) -> Option<u16> {
        let races_with = |other: u16| warp(other) != warp(thread);
        // Of a thread of the same warp it is known what it did itself, and when.
        let is_unjoined = |other: u16, own: u8, step: u32| {
            warp(other) == warp(thread)
                && other != thread
                && own & bytes != 0
                && step > steps.joined
                && step != steps.now
        };
        let writer = self.written & bytes != 0
            && (races_with(self.writer) || is_unjoined(self.writer, self.writers_own, self.write_step));
        if writer {
            return Some(self.writer);
        }
        let is_read = write && self.read & bytes != 0;
        let reader = self.readers.into_iter().find(|reader| is_read && races_with(*reader));
        let first = self.readers[0];
        reader.or((is_read && is_unjoined(first, self.readers_own, self.read_step)).then_some(first))
    }

    /// Of two warps that write bytes of one word, the last is remembered with its own.
    fn note_write(&mut self, Visit { bytes, thread, steps, .. }: Visit) {
        let goes_on = self.written != 0 && warp(self.writer) == warp(thread);
        self.written = if goes_on { self.written | bytes } else { bytes };
        (self.writer, self.writers_own, self.write_step) = (thread, bytes, steps.now);
    }

    /// Readers are remembered as long as they read the same bytes, or are of one warp.
    fn note_read(&mut self, Visit { bytes, thread, steps, .. }: Visit) {
        let is_of_their_warp = self.readers.iter().all(|reader| warp(*reader) == warp(thread));
        if self.read & bytes == bytes && self.read != 0 {
            if warp(self.readers[0]) != warp(thread) {
                self.readers[1] = thread;
            }
        } else if self.read != 0 && is_of_their_warp {
            self.read |= bytes;
        } else {
            (self.readers, self.read) = ([thread; 2], bytes);
            (self.readers_own, self.read_step) = (bytes, steps.now);
        }
    }
}

fn warp(thread: u16) -> u16 {
    thread / 32
}

/// Checks the access that follows, of the bytes that it is aligned to.
pub(crate) fn run_check<const WRITE: bool>(unit: &mut Unit<'_>, op: &Op) -> Control {
    let bytes = u64::from(op.align_mask) + 1;
    if !WRITE && is_read(unit, op) {
        return Control::Next;
    }
    let addresses = addresses(unit, op);
    let first = unit.warp.index * 32;
    unit.warp.steps.now += 1;
    let steps = unit.warp.steps;
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
        if let Some(other) = shadow.note(offset, bytes, (first + lane as u32) as u16, WRITE, steps) {
            let kind = FaultKind::Race { with: thread_index(u32::from(other), unit.launch.block) };
            let access = Some(Access { address, size: bytes as u32, write: WRITE });
            return unit.fault(Trap { access, ..Trap::new(kind, lane).in_space(op.space) });
        }
    }
    Control::Next
}

/// Whether a warp reads, in runs, what it is known to read.
#[inline(always)]
fn is_read(unit: &Unit<'_>, op: &Op) -> bool {
    let (Some(shadow), Some((starts, length))) = (&unit.block.shadow, runs::ranges(unit, op)) else { return false };
    let [low, high] =
        starts.map(|start| if op.space == Space::Generic { start.wrapping_sub(SHARED_WINDOW) } else { start });
    let own = unit.warp.index as u16;
    low.max(high) < BLOCK_STRIDE
        && shadow.is_read(low, length, own)
        && (low == high || shadow.is_read(high, length, own))
}

/// What may be a barrier.
pub(crate) fn run_order(unit: &mut Unit<'_>, _op: &Op) -> Control {
    if let Some(shadow) = &mut unit.block.shadow {
        shadow.advance();
    }
    Control::Next
}

/// What threads of a warp do together.
pub(crate) fn run_join(unit: &mut Unit<'_>, _op: &Op) -> Control {
    unit.warp.steps.joined = unit.warp.steps.now;
    Control::Next
}

/// The index in its block of the thread of a number.
fn thread_index(number: u32, [columns, rows, _]: [u32; 3]) -> [u16; 3] {
    [number % columns, number / columns % rows, number / columns / rows].map(|index| index as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of warps that do everything together, so that threads of one warp do not race.
    const JOINED: Steps = Steps { now: 1, joined: 1 };

    #[test]
    fn accesses_of_two_warps_race_if_one_writes_and_no_barrier_lies_between() {
        for (first, second, races) in
            [(false, false, false), (false, true, true), (true, false, true), (true, true, true)]
        {
            let mut shadow = Shadow::new(64);
            assert_eq!(shadow.note(8, 4, 3, first, JOINED), None);
            assert_eq!(shadow.note(8, 4, 5, second, JOINED), None, "the warp is the same");
            assert_eq!(shadow.note(12, 4, 40, second, JOINED), None, "the word is another");
            assert_eq!(shadow.note(8, 4, 40, second, JOINED).is_some(), races, "{first} {second}");
            shadow.advance();
            assert_eq!(shadow.note(8, 4, 70, second, JOINED), None, "a barrier lies between");
        }
    }

    #[test]
    fn bytes_of_one_word_are_told_apart() {
        let mut shadow = Shadow::new(8);
        assert_eq!(shadow.note(0, 1, 0, true, JOINED), None);
        assert_eq!(shadow.note(1, 1, 32, true, JOINED), None);
        assert_eq!(shadow.note(2, 2, 64, false, JOINED), None);
        assert_eq!(shadow.note(1, 1, 0, true, JOINED), Some(32));
        assert_eq!(shadow.note(2, 4, 32, true, JOINED), Some(64));
    }

    #[test]
    fn writer_races_with_a_reader_of_another_warp_than_its_own() {
        let mut shadow = Shadow::new(8);
        assert_eq!(shadow.note(0, 4, 0, false, JOINED), None);
        assert_eq!(shadow.note(0, 4, 33, false, JOINED), None);
        assert_eq!(shadow.note(0, 4, 1, true, JOINED), Some(33));
    }

    #[test]
    fn threads_of_a_warp_race_unless_they_did_something_together_in_between() {
        let at = |now, joined| Steps { now, joined };
        for (first, second, races) in
            [(false, false, false), (false, true, true), (true, false, true), (true, true, true)]
        {
            for (steps, is_apart) in [(at(2, 0), true), (at(2, 1), false), (at(1, 0), false)] {
                let mut shadow = Shadow::new(64);
                assert_eq!(shadow.note(8, 4, 3, first, at(1, 0)), None);
                assert_eq!(shadow.note(8, 4, 3, second, steps), None, "the thread is the same");
                let mut shadow = Shadow::new(64);
                assert_eq!(shadow.note(8, 4, 3, first, at(1, 0)), None);
                let other = shadow.note(8, 4, 5, second, steps);
                assert_eq!(other, (races && is_apart).then_some(3), "{first} {second} {steps:?}");
            }
        }
    }

    #[test]
    fn bytes_that_another_thread_of_the_warp_wrote_beside_ones_own_are_its_own() {
        let at = |now| Steps { now, joined: 0 };
        let mut shadow = Shadow::new(8);
        for thread in 0..4 {
            assert_eq!(shadow.note(u64::from(thread), 1, thread, true, at(1)), None);
        }
        for thread in 0..4 {
            assert_eq!(shadow.note(u64::from(thread), 1, thread, false, at(2)), None);
        }
        assert_eq!(shadow.note(3, 1, 0, false, at(3)), Some(3));
    }
}
