//! Accesses to a block's shared memory since its last barrier, by words.
//!
//! A line of sixteen words has a single mark while threads access all of it in order, the usual
//! case. Otherwise each word has its own mark, which distinguishes bytes.

use crate::exec::values::lane::HALF;

/// The number of bytes of a word, which one mark describes, and the mask of all of them.
const WORD: u64 = 4;
const WHOLE: u8 = 0xf;
/// The numbers of words and of bytes of a line.
const WORDS: usize = HALF;
const LINE: u64 = WORD * WORDS as u64;

/// The accesses to a block's shared memory since its last barrier.
#[derive(Debug)]
pub(crate) struct Shadow {
    lines: Vec<Line>,
    marks: Vec<Mark>,
    /// `true` if two threads may have written to one byte with one instruction.
    has_common_write: bool,
    /// The number of barriers so far. Marks of earlier epochs are void.
    epoch: u32,
}

/// The progress of a warp in its accesses to shared memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Steps {
    /// The number of instructions so far that access shared memory.
    pub(crate) now: u32,
    /// The number of the last such instruction before the threads synchronized.
    pub(crate) joined: u32,
    /// The PTX line of the current instruction.
    pub(crate) line: u32,
}

/// The thread that an access races with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RacingThread {
    pub(crate) thread: u16,
    /// The distance from the first thread of the access to the one that races.
    pub(crate) distance: i8,
    /// `true` if it wrote. Otherwise it read memory that is written now.
    pub(crate) wrote: bool,
    /// The PTX line of its access.
    pub(crate) line: u32,
}

/// The accesses to a line.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    /// The accesses to the first word. Those to the other words differ in the threads only.
    first: Mark,
    /// The number of consecutive words that each thread accessed, in order; 0 if the words have
    /// their own marks.
    share: u16,
}

/// The accesses to a word.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    epoch: u32,
    /// The thread of the last write.
    writer: u16,
    /// A reading thread, and one of another warp, or the same thread twice.
    readers: [u16; 2],
    /// The masks of written and of read bytes.
    written: u8,
    read: u8,
    /// The bytes of the last writer and of the first reader, and the steps of their warps.
    last_writer_bytes: u8,
    first_reader_bytes: u8,
    /// The distances from the last writer and from the first reader to another thread of the warp
    /// that accessed the same bytes without synchronization in between; 0 without such a thread.
    writer_distance: i8,
    reader_distance: i8,
    write_step: u32,
    read_step: u32,
    /// The PTX lines of the last write and of the reads.
    write_line: u32,
    read_lines: [u32; 2],
}

/// A thread that reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    pub(crate) thread: u16,
    /// The distance to another thread that reads the same bytes with the same instruction; 0
    /// without one.
    pub(crate) distance: i8,
    pub(crate) steps: Steps,
}

impl Reader {
    /// Returns the reader at the step of one of its reads.
    #[inline(always)]
    fn at(self, read: &CheckedRead) -> Self {
        Self {
            steps: Steps {
                now: self.steps.now + read.number,
                line: read.line,
                ..self.steps
            },
            ..self
        }
    }

    fn accessor(self) -> Accessor {
        Accessor {
            thread: self.thread,
            distance: self.distance,
        }
    }

    /// Returns its read of a whole word.
    #[inline(always)]
    fn access(self) -> WordAccess {
        WordAccess {
            bytes: WHOLE,
            thread: self.thread,
            distance: self.distance,
            write: false,
            steps: self.steps,
        }
    }
}

/// An access of bytes of a word.
#[derive(Clone, Copy, Debug)]
struct WordAccess {
    bytes: u8,
    thread: u16,
    /// The distance to another thread that accesses the same bytes with the same instruction; 0
    /// without one.
    distance: i8,
    write: bool,
    steps: Steps,
}

/// The thread of an access, or the first one if several threads access the same bytes with one
/// instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accessor {
    pub(crate) thread: u16,
    /// The distance to another of these threads; 0 without one.
    pub(crate) distance: i8,
}

impl Accessor {
    /// Returns the thread whose number is higher by `threads`.
    fn shifted(self, threads: u16) -> Self {
        Self {
            thread: self.thread + threads,
            ..self
        }
    }
}

impl Shadow {
    /// Creates the shadow of `bytes` unaccessed bytes.
    pub(crate) fn new(bytes: u64) -> Self {
        Self {
            // The remainder at the end has marks of words only.
            lines: vec![Line::default(); (bytes / LINE) as usize],
            marks: vec![Mark::default(); bytes.div_ceil(WORD) as usize],
            has_common_write: false,
            epoch: 1,
        }
    }

    /// Discards all accesses, at a barrier or an instruction that may be one.
    pub(crate) fn advance(&mut self) {
        self.epoch += 1;
    }

    /// Returns `true` if two threads may have written to one byte with one instruction since the
    /// last call.
    pub(crate) fn take_common_write(&mut self) -> bool {
        std::mem::take(&mut self.has_common_write)
    }

    /// Returns the number of barriers so far.
    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Records a thread's access, and returns the thread that it races with, if any.
    #[inline]
    pub(crate) fn record(
        &mut self,
        offset: u64,
        bytes: u64,
        accessor: Accessor,
        write: bool,
        steps: Steps,
    ) -> Option<RacingThread> {
        let word = offset / WORD;
        let begin = offset % WORD;
        let mut access = WordAccess {
            bytes: mask(begin, WORD.min(begin + bytes)),
            thread: accessor.thread,
            distance: accessor.distance,
            write,
            steps,
        };
        if begin + bytes <= WORD {
            return self.record_word(word as usize, access);
        }
        let end = offset + bytes;
        (word..end.div_ceil(WORD)).find_map(|word| {
            let first = word * WORD;
            access.bytes = mask(offset.max(first) - first, end.min(first + WORD) - first);
            self.record_word(word as usize, access)
        })
    }

    /// Records accesses of half a warp from the thread `first` on, to consecutive bytes. Returns
    /// the first thread that races, relative to `first`, and the thread that it races with.
    #[inline]
    pub(crate) fn record_row(
        &mut self,
        offset: u64,
        bytes: u64,
        first: Accessor,
        write: bool,
        steps: Steps,
    ) -> Option<(u16, RacingThread)> {
        if !offset.is_multiple_of(LINE) || !matches!(bytes, 4 | 8 | 16) {
            return (0..HALF as u16).find_map(|lane| {
                let race = self.record(
                    offset + u64::from(lane) * bytes,
                    bytes,
                    first.shifted(lane),
                    write,
                    steps,
                )?;
                Some((lane, race))
            });
        }
        let share = (bytes / WORD) as u16;
        (0..share).find_map(|line| {
            let before = line * (WORDS as u16 / share);
            let access = WordAccess {
                bytes: WHOLE,
                thread: first.thread + before,
                distance: first.distance,
                write,
                steps,
            };
            let (lane, race) =
                self.record_line((offset / LINE) as usize + usize::from(line), share, access)?;
            Some((before + lane, race))
        })
    }

    /// Records a thread's reads at offsets from `start`. Returns `false` if a thread has written
    /// one of the words; then some are recorded.
    #[inline]
    pub(crate) fn record_reads(
        &mut self,
        start: u64,
        bytes: u64,
        reader: Reader,
        reads: &[CheckedRead],
    ) -> bool {
        reads
            .iter()
            .all(|read| self.record_read(read.address(start), bytes, reader.at(read)))
    }

    /// The same for consecutive words. Those of a line are recorded as one access, because no other
    /// can be between them.
    #[inline]
    pub(crate) fn record_word_reads(
        &mut self,
        start: u64,
        reader: Reader,
        mut reads: &[CheckedRead],
    ) -> bool {
        while let Some(read) = reads.first() {
            let offset = read.address(start);
            let reader = reader.at(read);
            if offset.is_multiple_of(LINE) && reads.len() >= WORDS {
                if !self.record_line_read(offset, WORDS as u16, reader) {
                    return false;
                }
                reads = &reads[WORDS..];
            } else {
                if !self.record_read(offset, WORD, reader) {
                    return false;
                }
                reads = &reads[1..];
            }
        }
        true
    }

    /// The same for rows, which half a warp reads from the thread on.
    #[inline]
    pub(crate) fn record_row_reads(
        &mut self,
        start: u64,
        bytes: u64,
        first: Reader,
        reads: &[CheckedRead],
    ) -> bool {
        reads
            .iter()
            .all(|read| self.record_row_read(read.address(start), bytes, first.at(read)))
    }

    /// Records a thread's read as [`record`](Self::record) does. Returns `false`, without a record,
    /// if a thread has written one of the words.
    #[inline(always)]
    fn record_read(&mut self, offset: u64, bytes: u64, reader: Reader) -> bool {
        let is_word = bytes == WORD && offset.is_multiple_of(WORD);
        let index = (offset / WORD) as usize;
        if is_word
            && let (Some(line), Some(mark)) =
                (self.lines.get_mut(index / WORDS), self.marks.get_mut(index))
        {
            if line.first.epoch != self.epoch {
                line.first.epoch = self.epoch;
                line.share = 0;
            }
            if line.share == 0 && mark.epoch != self.epoch {
                *mark = Mark::first(self.epoch, reader.access());
                return true;
            }
        }
        if self.is_written(offset, bytes) {
            return false;
        }
        self.record(offset, bytes, reader.accessor(), false, reader.steps);
        true
    }

    /// Records reads as [`record_row`](Self::record_row) does. Returns `false`, without a record,
    /// if a thread has written one of the words.
    #[inline(always)]
    fn record_row_read(&mut self, offset: u64, bytes: u64, first: Reader) -> bool {
        if bytes == WORD && offset.is_multiple_of(LINE) {
            return self.record_line_read(offset, 1, first);
        }
        if self.is_written(offset, bytes * HALF as u64) {
            return false;
        }
        self.record_row(offset, bytes, first.accessor(), false, first.steps);
        true
    }

    /// Records reads of a line, of which each thread reads `share` words. Returns `false`, without
    /// a record, if a thread has written one.
    #[inline(always)]
    fn record_line_read(&mut self, offset: u64, share: u16, first: Reader) -> bool {
        let index = (offset / LINE) as usize;
        if let Some(line) = self.lines.get_mut(index) {
            if line.first.epoch != self.epoch {
                *line = Line {
                    first: Mark::first(self.epoch, first.access()),
                    share,
                };
                return true;
            }
            if line.share == share && line.first.written == 0 {
                line.first.record(first.access());
                return true;
            }
        }
        if self.is_written(offset, LINE) {
            return false;
        }
        self.record_line(index, share, first.access());
        true
    }

    /// Returns `true` if a thread has written one of the words since the last barrier.
    fn is_written(&self, offset: u64, bytes: u64) -> bool {
        let words = (offset / WORD) as usize..(offset + bytes).div_ceil(WORD) as usize;
        words.into_iter().any(|word| {
            let line = self.lines.get(word / WORDS).filter(|line| line.share != 0);
            let mark = line
                .map(|line| &line.first)
                .or_else(|| self.marks.get(word));
            mark.is_some_and(|mark| mark.epoch == self.epoch && mark.written != 0)
        })
    }

    /// Records an access to all of a line, in which each thread accesses `share` words.
    #[inline]
    fn record_line(
        &mut self,
        index: usize,
        share: u16,
        access: WordAccess,
    ) -> Option<(u16, RacingThread)> {
        if let Some(line) = self.lines.get_mut(index) {
            if line.first.epoch != self.epoch {
                *line = Line {
                    first: Mark::first(self.epoch, access),
                    share,
                };
                return None;
            }
            if line.share == share {
                return line.first.record(access).map(|race| (0, race));
            }
        }
        (0..WORDS as u16).find_map(|word| {
            let lane = word / share;
            let access = WordAccess {
                thread: access.thread + lane,
                ..access
            };
            self.record_word(index * WORDS + usize::from(word), access)
                .map(|race| (lane, race))
        })
    }

    #[inline]
    fn record_word(&mut self, word: usize, access: WordAccess) -> Option<RacingThread> {
        if let Some(line) = self.lines.get_mut(word / WORDS) {
            if line.first.epoch != self.epoch {
                line.first.epoch = self.epoch;
                line.share = 0;
            } else if line.share != 0 {
                self.split(word / WORDS);
            }
        }
        let mark = self.marks.get_mut(word)?;
        if mark.epoch != self.epoch {
            *mark = Mark {
                epoch: self.epoch,
                ..Mark::default()
            };
        }
        self.has_common_write |= mark.may_be_written_at_once(access);
        mark.record(access)
    }

    /// Gives each word of a line its own mark.
    #[cold]
    fn split(&mut self, index: usize) {
        let Line { first, share } = self.lines[index];
        for (word, mark) in (0..).zip(&mut self.marks[index * WORDS..][..WORDS]) {
            *mark = first.shifted(word / share);
        }
        self.lines[index].share = 0;
    }
}

/// Returns the mask of the bytes of a word from `begin` to `end`.
fn mask(begin: u64, end: u64) -> u8 {
    ((1 << end) - (1 << begin)) as u8
}

impl Mark {
    /// Creates the mark of a word with one access.
    #[inline(always)]
    fn first(
        epoch: u32,
        WordAccess {
            bytes,
            thread,
            distance,
            write,
            steps,
        }: WordAccess,
    ) -> Self {
        let none = Self {
            epoch,
            ..Self::default()
        };
        if write {
            Self {
                writer: thread,
                written: bytes,
                last_writer_bytes: bytes,
                writer_distance: distance,
                write_step: steps.now,
                write_line: steps.line,
                ..none
            }
        } else {
            Self {
                readers: [thread; 2],
                read: bytes,
                first_reader_bytes: bytes,
                reader_distance: distance,
                read_step: steps.now,
                read_lines: [steps.line; 2],
                ..none
            }
        }
    }

    #[inline(always)]
    fn record(&mut self, access: WordAccess) -> Option<RacingThread> {
        let WordAccess {
            bytes,
            thread,
            write,
            ..
        } = access;
        // The usual case: many threads read memory that no thread writes.
        if !write && self.written == 0 && self.read & bytes == bytes {
            if warp(self.readers[0]) != warp(thread) {
                self.readers[1] = thread;
                self.read_lines[1] = access.steps.line;
            } else {
                self.record_repeated_read(access);
            }
            return None;
        }
        self.record_new(access)
    }

    /// Records a read by the warp of the first reader, of bytes that have been read.
    #[inline(always)]
    fn record_repeated_read(&mut self, access: WordAccess) {
        if self.read_step <= access.steps.joined {
            // The first read is ordered before all later accesses of the warp.
            self.readers[0] = access.thread;
            self.read_lines[0] = access.steps.line;
            self.first_reader_bytes = access.bytes;
            self.reader_distance = access.distance;
            self.read_step = access.steps.now;
        } else if self.reader_distance == 0
            && access.bytes & self.first_reader_bytes == self.first_reader_bytes
        {
            let distance = access.thread.wrapping_sub(self.readers[0]) as i8;
            self.reader_distance = if distance == 0 {
                access.distance
            } else {
                distance
            };
        }
    }

    /// Returns `true` if another thread may have written to one of the bytes with the instruction
    /// that writes to them now.
    fn may_be_written_at_once(&self, access: WordAccess) -> bool {
        access.write
            && self.written & access.bytes != 0
            && self.write_step == access.steps.now
            && self.writer != access.thread
            && warp(self.writer) == warp(access.thread)
    }

    fn record_new(&mut self, access: WordAccess) -> Option<RacingThread> {
        let race = self.race(access);
        if access.write {
            self.record_write(access);
        } else {
            self.record_read(access);
        }
        race
    }

    /// Returns the thread that an access races with. Readers take precedence, because a race with a
    /// reader is always an error.
    fn race(&self, access: WordAccess) -> Option<RacingThread> {
        let WordAccess {
            bytes,
            thread,
            write,
            ..
        } = access;
        if write && self.read & bytes != 0 {
            let mut readers = self.readers.into_iter().zip(self.read_lines);
            if let Some((reader, line)) = readers.find(|(reader, _)| warp(*reader) != warp(thread))
            {
                return Some(RacingThread {
                    thread: reader,
                    distance: 0,
                    wrote: false,
                    line,
                });
            }
            let first = WarpAccess {
                thread: self.readers[0],
                distance: self.reader_distance,
                bytes: self.first_reader_bytes,
                step: self.read_step,
                wrote: false,
                line: self.read_lines[0],
            };
            if let Some(race) = first.race(access) {
                return Some(race);
            }
        }
        if self.written & bytes == 0 {
            return None;
        }
        if warp(self.writer) != warp(thread) {
            return Some(RacingThread {
                thread: self.writer,
                distance: 0,
                wrote: true,
                line: self.write_line,
            });
        }
        let writer = WarpAccess {
            thread: self.writer,
            distance: self.writer_distance,
            bytes: self.last_writer_bytes,
            step: self.write_step,
            wrote: true,
            line: self.write_line,
        };
        writer.race(access)
    }

    /// Returns the mark of the same accesses by threads with higher numbers.
    fn shifted(self, threads: u16) -> Self {
        Self {
            writer: self.writer + threads,
            readers: self.readers.map(|reader| reader + threads),
            ..self
        }
    }

    /// Records a write. If two warps write to one word, the mark records the bytes of the last one.
    fn record_write(&mut self, access: WordAccess) {
        let WordAccess {
            bytes,
            thread,
            distance,
            steps,
            ..
        } = access;
        let continues = self.written != 0 && warp(self.writer) == warp(thread);
        let is_common = self.may_be_written_at_once(access) && self.last_writer_bytes == bytes;
        self.writer_distance = if distance == 0 && is_common {
            self.writer.wrapping_sub(thread) as i8
        } else {
            distance
        };
        self.written = if continues {
            self.written | bytes
        } else {
            bytes
        };
        self.writer = thread;
        self.last_writer_bytes = bytes;
        self.write_step = steps.now;
        self.write_line = steps.line;
    }

    /// Records a read. Readers are recorded as long as they read the same bytes, or are in one
    /// warp.
    fn record_read(&mut self, access: WordAccess) {
        let WordAccess {
            bytes,
            thread,
            distance,
            steps,
            ..
        } = access;
        let is_their_warp = self
            .readers
            .iter()
            .all(|reader| warp(*reader) == warp(thread));
        if self.read & bytes == bytes && self.read != 0 {
            if warp(self.readers[0]) != warp(thread) {
                self.readers[1] = thread;
                self.read_lines[1] = access.steps.line;
            } else {
                self.record_repeated_read(access);
            }
        } else if self.read != 0 && is_their_warp {
            self.read |= bytes;
        } else {
            self.readers = [thread; 2];
            self.read = bytes;
            self.first_reader_bytes = bytes;
            self.read_step = steps.now;
            self.read_lines = [steps.line; 2];
            self.reader_distance = distance;
        }
    }
}

/// An earlier access by a warp.
struct WarpAccess {
    thread: u16,
    distance: i8,
    bytes: u8,
    step: u32,
    wrote: bool,
    line: u32,
}

impl WarpAccess {
    /// Returns the race of an access of the same warp with this one.
    fn race(&self, access: WordAccess) -> Option<RacingThread> {
        let is_unjoined = warp(self.thread) == warp(access.thread)
            && self.bytes & access.bytes != 0
            && self.step > access.steps.joined
            && self.step != access.steps.now;
        if !is_unjoined {
            return None;
        }
        let mut race = RacingThread {
            thread: self.thread,
            distance: 0,
            wrote: self.wrote,
            line: self.line,
        };
        if self.thread == access.thread {
            if self.distance != 0 {
                race.thread = self.thread.wrapping_add_signed(self.distance.into());
            } else if access.distance != 0 {
                race.distance = access.distance;
            } else {
                return None;
            }
        }
        Some(race)
    }
}

fn warp(thread: u16) -> u16 {
    thread / 32
}

/// A read at an offset from an address register.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckedRead {
    pub(crate) offset: i32,
    /// Its number among the reads of the superinstruction, from one on.
    pub(crate) number: u32,
    /// Its PTX line.
    pub(crate) line: u32,
}

impl CheckedRead {
    /// Returns its address, if that of the register is `start`.
    #[inline(always)]
    pub(crate) fn address(self, start: u64) -> u64 {
        start.wrapping_add_signed(self.offset.into())
    }
}

/// Lanes whose stores to shared memory race with an earlier store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Suspects {
    pub(crate) lanes: u32,
    /// The first lane, and the thread that it races with.
    pub(crate) first: usize,
    pub(crate) thread: u16,
    /// The PTX line of the access of that thread.
    pub(crate) line: u32,
    /// `true` if lanes store to the same bytes.
    pub(crate) is_common: bool,
}

impl Suspects {
    /// Creates the suspects of a store in which lanes store to the same bytes, and none races with
    /// an earlier access.
    pub(crate) fn common() -> Self {
        Self {
            lanes: 0,
            first: 0,
            thread: 0,
            line: 0,
            is_common: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the visitor of an access by one thread.
    fn accessor(thread: u16) -> Accessor {
        Accessor {
            thread,
            distance: 0,
        }
    }

    /// The steps of synchronized warps, whose threads do not race with each other.
    const JOINED: Steps = Steps {
        now: 1,
        joined: 1,
        line: 0,
    };

    /// The first step of warps that have not synchronized.
    const UNJOINED: Steps = Steps {
        now: 1,
        joined: 0,
        line: 0,
    };

    /// Accesses of two warps race if one of them writes and no barrier is between them.
    #[test]
    fn warps_race_unless_a_barrier_is_between() {
        for (first, second, races) in [
            (false, false, false),
            (false, true, true),
            (true, false, true),
            (true, true, true),
        ] {
            let mut shadow = Shadow::new(64);
            assert_eq!(shadow.record(8, 4, accessor(3), first, JOINED), None);
            assert_eq!(
                shadow.record(8, 4, accessor(5), second, JOINED),
                None,
                "the warp is the same"
            );
            assert_eq!(
                shadow.record(12, 4, accessor(40), second, JOINED),
                None,
                "the word is another"
            );
            assert_eq!(
                shadow.record(8, 4, accessor(40), second, JOINED).is_some(),
                races,
                "{first} {second}"
            );
            shadow.advance();
            assert_eq!(
                shadow.record(8, 4, accessor(70), second, JOINED),
                None,
                "a barrier lies between"
            );
        }
    }

    #[test]
    fn bytes_in_a_word_are_distinguished() {
        let mut shadow = Shadow::new(8);
        assert_eq!(shadow.record(0, 1, accessor(0), true, JOINED), None);
        assert_eq!(shadow.record(1, 1, accessor(32), true, JOINED), None);
        assert_eq!(shadow.record(2, 2, accessor(64), false, JOINED), None);
        assert_eq!(
            shadow
                .record(1, 1, accessor(0), true, JOINED)
                .map(|race| race.thread),
            Some(32)
        );
        assert_eq!(
            shadow
                .record(2, 4, accessor(32), true, JOINED)
                .map(|race| race.thread),
            Some(64)
        );
    }

    #[test]
    fn writer_races_with_a_reader_in_another_warp() {
        let mut shadow = Shadow::new(8);
        assert_eq!(shadow.record(0, 4, accessor(0), false, JOINED), None);
        assert_eq!(shadow.record(0, 4, accessor(33), false, JOINED), None);
        assert_eq!(
            shadow
                .record(0, 4, accessor(1), true, JOINED)
                .map(|race| race.thread),
            Some(33)
        );
    }

    #[test]
    fn threads_in_a_warp_race_unless_synchronized() {
        for (first, second, races) in [
            (false, false, false),
            (false, true, true),
            (true, false, true),
            (true, true, true),
        ] {
            for (now, joined, is_unordered) in [(2, 0, true), (2, 1, false), (1, 0, false)] {
                let steps = Steps {
                    now,
                    joined,
                    line: 0,
                };
                let mut shadow = Shadow::new(64);
                assert_eq!(shadow.record(8, 4, accessor(3), first, UNJOINED), None);
                assert_eq!(
                    shadow.record(8, 4, accessor(3), second, steps),
                    None,
                    "the thread is the same"
                );
                let mut shadow = Shadow::new(64);
                assert_eq!(shadow.record(8, 4, accessor(3), first, UNJOINED), None);
                let other = shadow
                    .record(8, 4, accessor(5), second, steps)
                    .map(|race| race.thread);
                assert_eq!(
                    other,
                    (races && is_unordered).then_some(3),
                    "{first} {second} {steps:?}"
                );
            }
        }
    }

    #[test]
    fn writers_in_a_warp_are_distinguished_by_bytes() {
        let mut steps = UNJOINED;
        let mut shadow = Shadow::new(8);
        for thread in 0..4 {
            assert_eq!(
                shadow.record(u64::from(thread), 1, accessor(thread), true, steps),
                None
            );
        }
        steps.now = 2;
        for thread in 0..4 {
            assert_eq!(
                shadow.record(u64::from(thread), 1, accessor(thread), false, steps),
                None
            );
        }
        steps.now = 3;
        assert_eq!(
            shadow
                .record(3, 1, accessor(0), false, steps)
                .map(|race| race.thread),
            Some(3)
        );
    }

    /// Returns a shadow that has marks of words only.
    fn without_lines(bytes: u64) -> Shadow {
        Shadow {
            lines: Vec::new(),
            ..Shadow::new(bytes)
        }
    }

    /// Records reads one by one, in rows of half a warp or by a single thread, up to the first that
    /// races.
    fn record_one_by_one(
        shadow: &mut Shadow,
        start: u64,
        reader: Reader,
        reads: &[CheckedRead],
        are_rows: bool,
    ) -> Option<RacingThread> {
        for read in reads {
            let offset = start + read.offset as u64;
            let steps = reader.at(read).steps;
            let race = if are_rows {
                shadow
                    .record_row(offset, WORD, reader.accessor(), false, steps)
                    .map(|(_, race)| race)
            } else {
                shadow.record(offset, WORD, reader.accessor(), false, steps)
            };
            if race.is_some() {
                return race;
            }
        }
        None
    }

    /// Replaces the thread of a race by the first one of its warp. If several threads of a warp
    /// read a word, any of them may be reported.
    fn by_warp(race: RacingThread) -> RacingThread {
        RacingThread {
            thread: warp(race.thread) * 32,
            ..race
        }
    }

    /// A shadow with marks of lines reports the same races as one with marks of words only.
    #[test]
    fn lines_race_like_their_words() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut races = 0;
        let mut rows = 0;
        let mut free = 0;
        let size = 3 * LINE + 20;
        let mut shadow = Shadow::new(size);
        let mut expected = without_lines(size);
        for turn in 0..60_000 {
            if random.u64(..6) == 0 {
                shadow.advance();
                expected.advance();
            }
            let write = random.u64(..5) == 0;
            let first = random.u16(..4) * HALF as u16;
            // No thread synchronizes with its warp between the reads of a superinstruction.
            let now = turn * 32 + 1;
            let steps = Steps {
                now,
                joined: (turn * 32_u32).saturating_sub(random.u32(..3) * 32),
                line: 0,
            };
            if random.u64(..4) == 0 {
                let are_rows = random.bool();
                let start = if are_rows { 0 } else { random.u64(..30) * WORD };
                let distance = if are_rows { LINE } else { WORD } as i32;
                let count = if are_rows { 3 } else { random.u32(1..=22) };
                let reads: Vec<CheckedRead> = (1..=count)
                    .map(|number| CheckedRead {
                        offset: (number as i32 - 1) * distance,
                        number,
                        line: 0,
                    })
                    .collect();
                let reader = Reader {
                    thread: first,
                    distance: 0,
                    steps,
                };
                let are_free = if are_rows {
                    shadow.record_row_reads(start, WORD, reader, &reads)
                } else if random.u64(..3) == 0 {
                    shadow.record_reads(start, WORD, reader, &reads)
                } else {
                    shadow.record_word_reads(start, reader, &reads)
                };
                let race = record_one_by_one(&mut expected, start, reader, &reads, are_rows);
                let reported = if are_free {
                    None
                } else {
                    record_one_by_one(&mut shadow, start, reader, &reads, are_rows)
                };
                assert_eq!(reported.map(by_warp), race.map(by_warp), "{turn}");
                free += u32::from(are_free);
                if race.is_some() {
                    // After a race, the rest of a row is not recorded word by word.
                    shadow.advance();
                    expected.advance();
                }
                continue;
            }
            let bytes = 1 << random.u64(..5);
            let offset = if random.bool() {
                random.u64(..4) * LINE
            } else {
                random.u64(..size) / bytes * bytes
            };
            if random.u64(..3) == 0 {
                let accessor = accessor(first + random.u16(..16));
                let race = shadow.record(offset, bytes, accessor, write, steps);
                let expected_race = expected.record(offset, bytes, accessor, write, steps);
                assert_eq!(race.map(by_warp), expected_race.map(by_warp), "{turn}");
                continue;
            }
            let race = shadow
                .record_row(offset, bytes, accessor(first), write, steps)
                .map(|(lane, race)| (lane, by_warp(race)));
            let expected_race = (0..HALF as u16).find_map(|lane| {
                let offset = offset + u64::from(lane) * bytes;
                expected
                    .record(offset, bytes, accessor(first + lane), write, steps)
                    .map(|race| (lane, by_warp(race)))
            });
            assert_eq!(race, expected_race, "{turn}");
            rows += u32::from(shadow.lines.iter().any(|line| line.share != 0));
            if race.is_some() {
                races += 1;
                shadow.advance();
                expected.advance();
            }
        }
        assert!(
            races > 1000 && rows > 1000 && free > 1000,
            "{races} {rows} {free}"
        );
    }
}
