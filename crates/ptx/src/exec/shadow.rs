//! Accesses to a block's shared memory since its last barrier, by words.
//!
//! A line of sixteen words has a single mark while threads access all of it in order, the usual case. Otherwise each word has its own mark,
//! which distinguishes bytes.

use super::lane::HALF;
use super::race::CheckedRead;

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
}

/// The thread that an access races with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rival {
    pub(crate) thread: u16,
    /// The distance from the first thread of the access to the one that races.
    pub(crate) distance: i8,
    /// `true` if it wrote. Otherwise it read memory that is written now.
    pub(crate) wrote: bool,
}

/// The accesses to a line.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    /// The accesses to the first word. Those to the other words differ in the threads only.
    first: Mark,
    /// The number of consecutive words that each thread accessed, in order; 0 if the words have their own marks.
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
    writers_own: u8,
    readers_own: u8,
    /// The distances from the last writer and from the first reader to another thread of the warp that accessed the same bytes without
    /// synchronization in between; 0 without such a thread.
    writer_distance: i8,
    reader_distance: i8,
    write_step: u32,
    read_step: u32,
}

/// A thread that reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    pub(crate) thread: u16,
    /// The distance to another thread that reads the same bytes with the same instruction; 0 without one.
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
                ..self.steps
            },
            ..self
        }
    }

    fn visitor(self) -> Visitor {
        Visitor {
            thread: self.thread,
            distance: self.distance,
        }
    }

    /// Returns its read of a whole word.
    #[inline(always)]
    fn visit(self) -> Visit {
        Visit {
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
struct Visit {
    bytes: u8,
    thread: u16,
    /// The distance to another thread that accesses the same bytes with the same instruction; 0 without one.
    distance: i8,
    write: bool,
    steps: Steps,
}

/// The thread of an access, or the first one if several threads access the same bytes with one instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visitor {
    pub(crate) thread: u16,
    /// The distance to another of these threads; 0 without one.
    pub(crate) distance: i8,
}

impl Visitor {
    /// Returns the thread whose number is higher by `threads`.
    fn moved_on(self, threads: u16) -> Self {
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

    /// Returns `true` if two threads may have written to one byte with one instruction since the last call.
    pub(crate) fn take_common_write(&mut self) -> bool {
        std::mem::take(&mut self.has_common_write)
    }

    /// Returns the number of barriers so far.
    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Records a thread's access, and returns the thread that it races with, if any.
    #[inline]
    pub(crate) fn note(
        &mut self,
        offset: u64,
        bytes: u64,
        by: Visitor,
        write: bool,
        steps: Steps,
    ) -> Option<Rival> {
        let (word, begin) = (offset / WORD, offset % WORD);
        let visit = |bytes| Visit {
            bytes,
            thread: by.thread,
            distance: by.distance,
            write,
            steps,
        };
        if begin + bytes <= WORD {
            return self.note_word(word as usize, visit(mask(begin, begin + bytes)));
        }
        let end = offset + bytes;
        (word..end.div_ceil(WORD)).find_map(|word| {
            let first = word * WORD;
            let mask = mask(offset.max(first) - first, end.min(first + WORD) - first);
            self.note_word(word as usize, visit(mask))
        })
    }

    /// Records accesses of half a warp from the thread `first` on, to consecutive bytes. Returns the first thread that races, relative to
    /// `first`, and the thread that it races with.
    #[inline]
    pub(crate) fn note_row(
        &mut self,
        offset: u64,
        bytes: u64,
        first: Visitor,
        write: bool,
        steps: Steps,
    ) -> Option<(u16, Rival)> {
        if !offset.is_multiple_of(LINE) || !matches!(bytes, 4 | 8 | 16) {
            return (0..HALF as u16).find_map(|lane| {
                let rival = self.note(
                    offset + u64::from(lane) * bytes,
                    bytes,
                    first.moved_on(lane),
                    write,
                    steps,
                )?;
                Some((lane, rival))
            });
        }
        let share = (bytes / WORD) as u16;
        (0..share).find_map(|line| {
            let before = line * (WORDS as u16 / share);
            let visit = Visit {
                bytes: WHOLE,
                thread: first.thread + before,
                distance: first.distance,
                write,
                steps,
            };
            let (lane, rival) =
                self.note_line((offset / LINE) as usize + usize::from(line), share, visit)?;
            Some((before + lane, rival))
        })
    }

    /// Records a thread's reads at offsets from `start`. Returns `false` if a thread has written one of the words; then some are recorded.
    #[inline]
    pub(crate) fn note_reads(
        &mut self,
        start: u64,
        bytes: u64,
        reader: Reader,
        reads: &[CheckedRead],
    ) -> bool {
        reads
            .iter()
            .all(|read| self.note_read(read.address(start), bytes, reader.at(read)))
    }

    /// The same for consecutive words. Those of a line are recorded as one access, because no other can be between them.
    #[inline]
    pub(crate) fn note_reads_of_words(
        &mut self,
        start: u64,
        reader: Reader,
        mut reads: &[CheckedRead],
    ) -> bool {
        while let Some(read) = reads.first() {
            let (offset, reader) = (read.address(start), reader.at(read));
            let is_line = offset.is_multiple_of(LINE) && reads.len() >= WORDS;
            let (is_free, taken) = if is_line {
                (self.note_read_of_line(offset, WORDS as u16, reader), WORDS)
            } else {
                (self.note_read(offset, WORD, reader), 1)
            };
            if !is_free {
                return false;
            }
            reads = &reads[taken..];
        }
        true
    }

    /// The same for rows, which half a warp reads from the thread on.
    #[inline]
    pub(crate) fn note_reads_of_rows(
        &mut self,
        start: u64,
        bytes: u64,
        first: Reader,
        reads: &[CheckedRead],
    ) -> bool {
        reads
            .iter()
            .all(|read| self.note_read_of_row(read.address(start), bytes, first.at(read)))
    }

    /// Records a thread's read as [`note`](Self::note) does. Returns `false`, without a record, if a thread has written one of the words.
    #[inline(always)]
    fn note_read(&mut self, offset: u64, bytes: u64, reader: Reader) -> bool {
        let is_word = bytes == WORD && offset.is_multiple_of(WORD);
        let index = (offset / WORD) as usize;
        if is_word
            && let (Some(line), Some(mark)) =
                (self.lines.get_mut(index / WORDS), self.marks.get_mut(index))
        {
            if line.first.epoch != self.epoch {
                (line.first.epoch, line.share) = (self.epoch, 0);
            }
            if line.share == 0 && mark.epoch != self.epoch {
                *mark = Mark::of_first(self.epoch, reader.visit());
                return true;
            }
        }
        if self.is_written(offset, bytes) {
            return false;
        }
        self.note(offset, bytes, reader.visitor(), false, reader.steps);
        true
    }

    /// Records reads as [`note_row`](Self::note_row) does. Returns `false`, without a record, if a thread has written one of the words.
    #[inline(always)]
    fn note_read_of_row(&mut self, offset: u64, bytes: u64, first: Reader) -> bool {
        if bytes == WORD && offset.is_multiple_of(LINE) {
            return self.note_read_of_line(offset, 1, first);
        }
        if self.is_written(offset, bytes * HALF as u64) {
            return false;
        }
        self.note_row(offset, bytes, first.visitor(), false, first.steps);
        true
    }

    /// Records reads of a line, of which each thread reads `share` words. Returns `false`, without a record, if a thread has written one.
    #[inline(always)]
    fn note_read_of_line(&mut self, offset: u64, share: u16, first: Reader) -> bool {
        let index = (offset / LINE) as usize;
        if let Some(line) = self.lines.get_mut(index) {
            if line.first.epoch != self.epoch {
                *line = Line {
                    first: Mark::of_first(self.epoch, first.visit()),
                    share,
                };
                return true;
            }
            if line.share == share && line.first.written == 0 {
                line.first.note(first.visit());
                return true;
            }
        }
        if self.is_written(offset, LINE) {
            return false;
        }
        self.note_line(index, share, first.visit());
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
    fn note_line(&mut self, index: usize, share: u16, visit: Visit) -> Option<(u16, Rival)> {
        if let Some(line) = self.lines.get_mut(index) {
            if line.first.epoch != self.epoch {
                *line = Line {
                    first: Mark::of_first(self.epoch, visit),
                    share,
                };
                return None;
            }
            if line.share == share {
                return line.first.note(visit).map(|rival| (0, rival));
            }
        }
        (0..WORDS as u16).find_map(|word| {
            let lane = word / share;
            let visit = Visit {
                thread: visit.thread + lane,
                ..visit
            };
            self.note_word(index * WORDS + usize::from(word), visit)
                .map(|rival| (lane, rival))
        })
    }

    #[inline]
    fn note_word(&mut self, word: usize, visit: Visit) -> Option<Rival> {
        if let Some(line) = self.lines.get_mut(word / WORDS) {
            if line.first.epoch != self.epoch {
                (line.first.epoch, line.share) = (self.epoch, 0);
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
        self.has_common_write |= mark.may_be_written_at_once(visit);
        mark.note(visit)
    }

    /// Gives each word of a line its own mark.
    #[cold]
    fn split(&mut self, index: usize) {
        let Line { first, share } = self.lines[index];
        for (word, mark) in (0..).zip(&mut self.marks[index * WORDS..][..WORDS]) {
            *mark = first.moved_on(word / share);
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
    fn of_first(
        epoch: u32,
        Visit {
            bytes,
            thread,
            distance,
            write,
            steps,
        }: Visit,
    ) -> Self {
        let none = Self {
            epoch,
            ..Self::default()
        };
        if write {
            Self {
                writer: thread,
                written: bytes,
                writers_own: bytes,
                writer_distance: distance,
                write_step: steps.now,
                ..none
            }
        } else {
            Self {
                readers: [thread; 2],
                read: bytes,
                readers_own: bytes,
                reader_distance: distance,
                read_step: steps.now,
                ..none
            }
        }
    }

    #[inline(always)]
    fn note(&mut self, visit: Visit) -> Option<Rival> {
        let Visit {
            bytes,
            thread,
            write,
            ..
        } = visit;
        // The usual case: many threads read memory that no thread writes.
        if !write && self.written == 0 && self.read & bytes == bytes {
            if warp(self.readers[0]) != warp(thread) {
                self.readers[1] = thread;
            } else {
                self.note_read_again(visit);
            }
            return None;
        }
        self.note_news(visit)
    }

    /// Records a read by the warp of the first reader, of bytes that have been read.
    #[inline(always)]
    fn note_read_again(&mut self, visit: Visit) {
        if self.read_step <= visit.steps.joined {
            // The first read is ordered before all later accesses of the warp.
            self.readers[0] = visit.thread;
            self.readers_own = visit.bytes;
            self.reader_distance = visit.distance;
            self.read_step = visit.steps.now;
        } else if self.reader_distance == 0 && visit.bytes & self.readers_own == self.readers_own {
            let distance = visit.thread.wrapping_sub(self.readers[0]) as i8;
            self.reader_distance = if distance == 0 {
                visit.distance
            } else {
                distance
            };
        }
    }

    /// Returns `true` if another thread may have written to one of the bytes with the instruction that writes to them now.
    fn may_be_written_at_once(&self, visit: Visit) -> bool {
        visit.write
            && self.written & visit.bytes != 0
            && self.write_step == visit.steps.now
            && self.writer != visit.thread
            && warp(self.writer) == warp(visit.thread)
    }

    fn note_news(&mut self, visit: Visit) -> Option<Rival> {
        let rival = self.rival(visit);
        if visit.write {
            self.note_write(visit);
        } else {
            self.note_read(visit);
        }
        rival
    }

    /// Returns the thread that an access races with. Readers take precedence, because a race with a reader is always an error.
    fn rival(&self, visit: Visit) -> Option<Rival> {
        let Visit {
            bytes,
            thread,
            write,
            ..
        } = visit;
        let rival = |thread: u16, distance: i8, wrote: bool| Rival {
            thread,
            distance,
            wrote,
        };
        let races_with = |other: u16| warp(other) != warp(thread);
        if write && self.read & bytes != 0 {
            if let Some(reader) = self.readers.into_iter().find(|reader| races_with(*reader)) {
                return Some(rival(reader, 0, false));
            }
            let first = Earlier {
                thread: self.readers[0],
                distance: self.reader_distance,
                bytes: self.readers_own,
                step: self.read_step,
            };
            if let Some((thread, distance)) = first.unjoined(visit) {
                return Some(rival(thread, distance, false));
            }
        }
        if self.written & bytes == 0 {
            return None;
        }
        if races_with(self.writer) {
            return Some(rival(self.writer, 0, true));
        }
        let writer = Earlier {
            thread: self.writer,
            distance: self.writer_distance,
            bytes: self.writers_own,
            step: self.write_step,
        };
        let (thread, distance) = writer.unjoined(visit)?;
        Some(rival(thread, distance, true))
    }

    /// Returns the mark of the same accesses by threads with higher numbers.
    fn moved_on(self, threads: u16) -> Self {
        Self {
            writer: self.writer + threads,
            readers: self.readers.map(|reader| reader + threads),
            ..self
        }
    }

    /// Records a write. If two warps write to one word, the mark records the bytes of the last one.
    fn note_write(&mut self, visit: Visit) {
        let Visit {
            bytes,
            thread,
            distance,
            steps,
            ..
        } = visit;
        let goes_on = self.written != 0 && warp(self.writer) == warp(thread);
        let is_common = self.may_be_written_at_once(visit) && self.writers_own == bytes;
        self.writer_distance = if distance == 0 && is_common {
            self.writer.wrapping_sub(thread) as i8
        } else {
            distance
        };
        self.written = if goes_on { self.written | bytes } else { bytes };
        (self.writer, self.writers_own, self.write_step) = (thread, bytes, steps.now);
    }

    /// Records a read. Readers are recorded as long as they read the same bytes, or are in one warp.
    fn note_read(&mut self, visit: Visit) {
        let Visit {
            bytes,
            thread,
            distance,
            steps,
            ..
        } = visit;
        let is_of_their_warp = self
            .readers
            .iter()
            .all(|reader| warp(*reader) == warp(thread));
        if self.read & bytes == bytes && self.read != 0 {
            if warp(self.readers[0]) != warp(thread) {
                self.readers[1] = thread;
            } else {
                self.note_read_again(visit);
            }
        } else if self.read != 0 && is_of_their_warp {
            self.read |= bytes;
        } else {
            (self.readers, self.read) = ([thread; 2], bytes);
            (self.readers_own, self.read_step) = (bytes, steps.now);
            self.reader_distance = distance;
        }
    }
}

/// An earlier access by a warp.
struct Earlier {
    thread: u16,
    distance: i8,
    bytes: u8,
    step: u32,
}

impl Earlier {
    /// Returns the earlier thread that an access of the same warp races with, and the distance from the first thread of that access to the
    /// one that races.
    fn unjoined(&self, visit: Visit) -> Option<(u16, i8)> {
        let is_unjoined = warp(self.thread) == warp(visit.thread)
            && self.bytes & visit.bytes != 0
            && self.step > visit.steps.joined
            && self.step != visit.steps.now;
        if !is_unjoined {
            return None;
        }
        if self.thread != visit.thread {
            Some((self.thread, 0))
        } else if self.distance != 0 {
            Some((self.thread.wrapping_add_signed(self.distance.into()), 0))
        } else if visit.distance != 0 {
            Some((self.thread, visit.distance))
        } else {
            None
        }
    }
}

fn warp(thread: u16) -> u16 {
    thread / 32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the visitor of an access by one thread.
    fn by(thread: u16) -> Visitor {
        Visitor {
            thread,
            distance: 0,
        }
    }

    /// The steps of synchronized warps, whose threads do not race with each other.
    const JOINED: Steps = Steps { now: 1, joined: 1 };

    #[test]
    fn accesses_of_two_warps_race_if_one_writes_and_no_barrier_is_between() {
        for (first, second, races) in [
            (false, false, false),
            (false, true, true),
            (true, false, true),
            (true, true, true),
        ] {
            let mut shadow = Shadow::new(64);
            assert_eq!(shadow.note(8, 4, by(3), first, JOINED), None);
            assert_eq!(
                shadow.note(8, 4, by(5), second, JOINED),
                None,
                "the warp is the same"
            );
            assert_eq!(
                shadow.note(12, 4, by(40), second, JOINED),
                None,
                "the word is another"
            );
            assert_eq!(
                shadow.note(8, 4, by(40), second, JOINED).is_some(),
                races,
                "{first} {second}"
            );
            shadow.advance();
            assert_eq!(
                shadow.note(8, 4, by(70), second, JOINED),
                None,
                "a barrier lies between"
            );
        }
    }

    #[test]
    fn bytes_of_one_word_are_distinguished() {
        let mut shadow = Shadow::new(8);
        assert_eq!(shadow.note(0, 1, by(0), true, JOINED), None);
        assert_eq!(shadow.note(1, 1, by(32), true, JOINED), None);
        assert_eq!(shadow.note(2, 2, by(64), false, JOINED), None);
        assert_eq!(
            shadow
                .note(1, 1, by(0), true, JOINED)
                .map(|rival| rival.thread),
            Some(32)
        );
        assert_eq!(
            shadow
                .note(2, 4, by(32), true, JOINED)
                .map(|rival| rival.thread),
            Some(64)
        );
    }

    #[test]
    fn writer_races_with_a_reader_of_another_warp_than_its_own() {
        let mut shadow = Shadow::new(8);
        assert_eq!(shadow.note(0, 4, by(0), false, JOINED), None);
        assert_eq!(shadow.note(0, 4, by(33), false, JOINED), None);
        assert_eq!(
            shadow
                .note(0, 4, by(1), true, JOINED)
                .map(|rival| rival.thread),
            Some(33)
        );
    }

    #[test]
    fn threads_of_a_warp_race_unless_they_synchronized_in_between() {
        let at = |now, joined| Steps { now, joined };
        for (first, second, races) in [
            (false, false, false),
            (false, true, true),
            (true, false, true),
            (true, true, true),
        ] {
            for (steps, is_apart) in [(at(2, 0), true), (at(2, 1), false), (at(1, 0), false)] {
                let mut shadow = Shadow::new(64);
                assert_eq!(shadow.note(8, 4, by(3), first, at(1, 0)), None);
                assert_eq!(
                    shadow.note(8, 4, by(3), second, steps),
                    None,
                    "the thread is the same"
                );
                let mut shadow = Shadow::new(64);
                assert_eq!(shadow.note(8, 4, by(3), first, at(1, 0)), None);
                let other = shadow
                    .note(8, 4, by(5), second, steps)
                    .map(|rival| rival.thread);
                assert_eq!(
                    other,
                    (races && is_apart).then_some(3),
                    "{first} {second} {steps:?}"
                );
            }
        }
    }

    #[test]
    fn writers_of_neighboring_bytes_in_one_warp_are_distinguished() {
        let at = |now| Steps { now, joined: 0 };
        let mut shadow = Shadow::new(8);
        for thread in 0..4 {
            assert_eq!(
                shadow.note(u64::from(thread), 1, by(thread), true, at(1)),
                None
            );
        }
        for thread in 0..4 {
            assert_eq!(
                shadow.note(u64::from(thread), 1, by(thread), false, at(2)),
                None
            );
        }
        assert_eq!(
            shadow
                .note(3, 1, by(0), false, at(3))
                .map(|rival| rival.thread),
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

    #[test]
    fn accesses_of_lines_and_words_in_any_order_race_as_those_of_words_alone() {
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let (mut races, mut rows, mut free) = (0, 0, 0);
        let size = 3 * LINE + 20;
        let (mut shadow, mut expected) = (Shadow::new(size), without_lines(size));
        for turn in 0..60_000 {
            if random(6) == 0 {
                shadow.advance();
                expected.advance();
            }
            let write = random(5) == 0;
            let first = random(4) as u16 * HALF as u16;
            // No thread synchronizes with its warp between the reads of a superinstruction.
            let now = turn * 32 + 1;
            let steps = Steps {
                now,
                joined: (turn * 32).saturating_sub(random(3) as u32 * 32),
            };
            if random(4) == 0 {
                let is_row = random(2) == 0;
                let (start, distance) = if is_row {
                    (0, LINE as i32)
                } else {
                    (random(30) * WORD, WORD as i32)
                };
                let count = if is_row { 3 } else { random(22) as u32 + 1 };
                let read = |number: u32| CheckedRead {
                    offset: (number as i32 - 1) * distance,
                    number,
                };
                let reads: Vec<CheckedRead> = (1..=count).map(read).collect();
                let reader = Reader {
                    thread: first,
                    distance: 0,
                    steps,
                };
                let one_by_one = |shadow: &mut Shadow| {
                    reads.iter().find_map(|read| {
                        let (offset, steps) = (start + read.offset as u64, reader.at(read).steps);
                        if is_row {
                            shadow
                                .note_row(offset, WORD, by(first), false, steps)
                                .map(|(_, rival)| rival)
                        } else {
                            shadow.note(offset, WORD, by(first), false, steps)
                        }
                    })
                };
                let are_free = if is_row {
                    shadow.note_reads_of_rows(start, WORD, reader, &reads)
                } else if random(3) == 0 {
                    shadow.note_reads(start, WORD, reader, &reads)
                } else {
                    shadow.note_reads_of_words(start, reader, &reads)
                };
                let rival = one_by_one(&mut expected);
                assert_eq!(
                    if are_free {
                        None
                    } else {
                        one_by_one(&mut shadow)
                    },
                    rival,
                    "{turn}"
                );
                free += u32::from(are_free);
                if rival.is_some() {
                    // After a race, the rest of a row is not recorded word by word.
                    shadow.advance();
                    expected.advance();
                }
                continue;
            }
            let bytes = 1 << random(5);
            let offset = if random(2) == 0 {
                random(4) * LINE
            } else {
                random(size) / bytes * bytes
            };
            if random(3) == 0 {
                let thread = first + random(16) as u16;
                let found = shadow.note(offset, bytes, by(thread), write, steps);
                assert_eq!(
                    found,
                    expected.note(offset, bytes, by(thread), write, steps),
                    "{turn}"
                );
                continue;
            }
            let found = shadow.note_row(offset, bytes, by(first), write, steps);
            let lanes = (0..HALF as u16).find_map(|lane| {
                let at = offset + u64::from(lane) * bytes;
                expected
                    .note(at, bytes, by(first + lane), write, steps)
                    .map(|rival| (lane, rival))
            });
            assert_eq!(found, lanes, "{turn}");
            rows += u32::from(shadow.lines.iter().any(|line| line.share != 0));
            if found.is_some() {
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
