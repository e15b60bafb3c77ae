//! Accesses of a launch's threads to device memory, by words.
//!
//! Each word records the last thread that wrote it, with the value, and two threads that read it. A
//! line of sixteen words has a single record while consecutive threads access all of it in order,
//! the usual case. Lines are kept in pages that are created with the first access. Threads of
//! different blocks run on different workers, so each page has a lock.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;

use super::shadow::Steps;
use crate::exec::values::lane::HALF;

/// The number of bytes of a word.
const WORD: u64 = 4;
/// The mask of all bytes of a word.
const WHOLE: u8 = 0xf;
/// The number of words of a line.
const WORDS: usize = HALF;
/// The number of bytes of a line.
pub(crate) const LINE: u64 = WORD * WORDS as u64;
/// The number of lines of a page.
const LINES: usize = 64;
/// The number of bytes of a page.
const PAGE: u64 = LINE * LINES as u64;
/// The maximum number of pages of a launch. Accesses to further pages are not recorded, so the
/// shadow of a large launch is at most 270 MB.
const MAX_PAGES: usize = 4096;
/// The number of pages that a worker caches.
const CACHED: usize = 64;

/// The accesses of a launch to device memory.
#[derive(Debug, Default)]
pub(crate) struct LaunchShadow {
    /// The number of operations so far that may order accesses of different blocks. Accesses of
    /// earlier epochs do not race.
    epoch: AtomicU32,
    pages: Mutex<HashMap<u64, Arc<Mutex<Page>>>>,
}

/// The pages that one worker accessed last.
#[derive(Debug)]
pub(crate) struct PageCache {
    entries: [Option<(u64, Arc<Mutex<Page>>)>; CACHED],
}

impl Default for PageCache {
    fn default() -> Self {
        Self {
            entries: [const { None }; CACHED],
        }
    }
}

/// A thread of a launch at a point of its program, or the first of several that make the same
/// access with one instruction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Accessor {
    /// The number of the block in the grid.
    pub(crate) block: u32,
    /// The number of barriers of the block so far.
    pub(crate) phase: u32,
    /// The number of the thread in the block.
    pub(crate) thread: u16,
    /// The progress of its warp.
    pub(crate) steps: Steps,
    /// The distance to another thread that makes the same access; 0 without one.
    pub(crate) distance: i8,
}

/// An access of one thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadAccess<'v> {
    pub(crate) accessor: Accessor,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    /// The stored bytes; `None` for a load.
    pub(crate) stored: Option<&'v [u8]>,
}

/// The thread that an access races with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RacingThread {
    /// The number of its block in the grid, and its number in the block.
    pub(crate) block: u32,
    pub(crate) thread: u16,
    /// The distance from the first thread of the access to the one that races.
    pub(crate) distance: i8,
    /// The PTX line of its access.
    pub(crate) line: u32,
    /// `true` if it wrote.
    pub(crate) wrote: bool,
    /// `true` if both threads stored the same value.
    pub(crate) same_value: bool,
}

/// The accesses to [`PAGE`] bytes.
#[derive(Debug)]
pub(crate) struct Page {
    lines: Box<[Line]>,
}

/// The accesses to a line since the last epoch began.
#[derive(Clone, Debug, Default)]
struct Line {
    epoch: u32,
    /// `true` if each word has its own record. Otherwise the records of all words follow from the
    /// first: consecutive threads accessed them.
    is_split: bool,
    words: [Word; WORDS],
    /// The value of each word that its writer stored, in the bytes that it stored.
    values: [u32; WORDS],
}

/// The accesses to a word.
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    writer: AccessRecord,
    /// The last reader, and an earlier reader of another block, or otherwise of another warp.
    readers: [AccessRecord; 2],
}

/// An access to bytes of a word; to no bytes if the word has not been accessed.
#[derive(Clone, Copy, Debug, Default)]
struct AccessRecord {
    block: u32,
    phase: u32,
    /// The step of the warp at which the access was made, and its PTX line.
    step: u32,
    line: u32,
    thread: u16,
    /// The distance to another thread of the warp that accessed these bytes without synchronization
    /// in between; 0 without one.
    distance: i8,
    /// A bit for each byte.
    bytes: u8,
}

const _: () = assert!(
    size_of::<AccessRecord>() == 20,
    "the shadow has three for each word"
);

impl RacingThread {
    /// Returns the thread of an access that is a write.
    fn writer(self) -> Self {
        Self {
            wrote: true,
            ..self
        }
    }
}

impl LaunchShadow {
    /// Orders earlier accesses before later ones.
    pub(crate) fn advance(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }

    /// Records the accesses of one instruction. Returns the position of the first access that races
    /// and the other thread. A race of different values takes precedence.
    pub(crate) fn record<'v>(
        &self,
        cache: &mut PageCache,
        accesses: impl Iterator<Item = &'v ThreadAccess<'v>>,
    ) -> Option<(usize, RacingThread)> {
        let mut worst: Option<(usize, RacingThread)> = None;
        let mut accesses = (0..).zip(accesses).peekable();
        while let Some((_, first)) = accesses.peek() {
            let number = first.address / PAGE;
            let mut page = cache.page(number, self).map(|page| page.lock());
            let epoch = self.epoch.load(Ordering::Acquire);
            while let Some((position, access)) =
                accesses.next_if(|(_, access)| access.address / PAGE == number)
            {
                let race = page.as_mut().and_then(|page| page.record(epoch, access));
                if let Some(race) = race
                    && is_worse(race, worst.map(|(_, race)| race))
                {
                    worst = Some((position, race));
                }
            }
        }
        worst
    }

    /// Records the accesses of half a warp to a line, from the thread `by` on. `stored` holds the
    /// values of stores. Returns `false` if they must be recorded one by one, because they may race
    /// or other accesses to the line were different.
    pub(crate) fn record_line(
        &self,
        cache: &mut PageCache,
        address: u64,
        accessor: Accessor,
        stored: Option<&[u32; WORDS]>,
    ) -> bool {
        let Some(page) = cache.page(address / PAGE, self) else {
            return true;
        };
        let mut page = page.lock();
        let epoch = self.epoch.load(Ordering::Acquire);
        let line = page.line(address % PAGE, epoch);
        !line.is_split && line.record(&accessor, stored)
    }

    /// Returns the page with a number, or `None` if the launch has too many pages.
    #[cold]
    fn page(&self, number: u64) -> Option<Arc<Mutex<Page>>> {
        let mut pages = self.pages.lock();
        if let Some(page) = pages.get(&number) {
            return Some(Arc::clone(page));
        }
        if pages.len() == MAX_PAGES {
            return None;
        }
        let page = Arc::new(Mutex::new(Page {
            lines: vec![Line::default(); LINES].into(),
        }));
        pages.insert(number, Arc::clone(&page));
        Some(page)
    }
}

impl PageCache {
    fn page(&mut self, number: u64, shadow: &LaunchShadow) -> Option<&Mutex<Page>> {
        let entry = &mut self.entries[number as usize % CACHED];
        if entry.as_ref().is_none_or(|(cached, _)| *cached != number) {
            *entry = Some((number, shadow.page(number)?));
        }
        entry.as_ref().map(|(_, page)| &**page)
    }
}

impl Page {
    /// Returns the line of an address, relative to the page.
    fn line(&mut self, address: u64, epoch: u32) -> &mut Line {
        let line = &mut self.lines[(address / LINE) as usize];
        if line.epoch < epoch {
            line.epoch = epoch;
            line.is_split = false;
            line.words[0] = Word::default();
        }
        line
    }

    /// Records an access up to the end of the page.
    fn record(&mut self, epoch: u32, access: &ThreadAccess<'_>) -> Option<RacingThread> {
        let start = access.address % PAGE;
        let end = (start + access.bytes).min(PAGE);
        let mut worst = None;
        let mut address = start;
        while address < end {
            let number = address / WORD;
            let word_start = number * WORD;
            let word_end = end.min(word_start + WORD);
            let line = self.line(address, epoch);
            if !line.is_split {
                line.split();
            }
            let mask = ((1_u32 << (word_end - word_start)) - (1 << (address - word_start))) as u8;
            let index = number as usize % WORDS;
            let word = &mut line.words[index];
            let race = match access.stored {
                Some(stored) => {
                    let stored = &stored[(address - start) as usize..(word_end - start) as usize];
                    let value = &mut line.values[index];
                    word.write(
                        &access.accessor,
                        mask,
                        value,
                        value_in_word(stored, address),
                    )
                }
                None => word.read(&access.accessor, mask),
            };
            if let Some(race) = race
                && is_worse(race, worst)
            {
                worst = Some(race);
            }
            address = word_end;
        }
        worst
    }
}

impl Line {
    /// Records accesses to all of the line by consecutive threads, unless they may race.
    fn record(&mut self, first: &Accessor, stored: Option<&[u32; WORDS]>) -> bool {
        let word = &mut self.words[0];
        if word.writer.races_with(first) {
            return false;
        }
        let Some(values) = stored else {
            word.read(first, WHOLE);
            return true;
        };
        let mut readers = word.readers.iter();
        if word.writer.is_made_at_once_with(first) || readers.any(|reader| reader.races_with(first))
        {
            return false;
        }
        word.writer = AccessRecord::new(first, WHOLE);
        self.values = *values;
        true
    }

    /// Gives each word its own record.
    fn split(&mut self) {
        let first = self.words[0];
        for (thread, word) in (0..).zip(&mut self.words) {
            *word = Word {
                writer: first.writer.shifted(thread),
                readers: first.readers.map(|reader| reader.shifted(thread)),
            };
        }
        if first.writer.bytes == 0 {
            self.values = [0; WORDS];
        }
        self.is_split = true;
    }
}

/// Returns stored bytes at their position in a word, from the byte of `address` on.
fn value_in_word(stored: &[u8], address: u64) -> u32 {
    let mut value = [0; WORD as usize];
    value[(address % WORD) as usize..][..stored.len()].copy_from_slice(stored);
    u32::from_le_bytes(value)
}

/// Returns `true` if a race takes precedence over another one of the same instruction.
fn is_worse(race: RacingThread, than: Option<RacingThread>) -> bool {
    than.is_none_or(|than| than.same_value && !race.same_value)
}

/// Returns a word with all bits set in the bytes of a mask.
fn byte_bits(bytes: u8) -> u32 {
    (0..WORD as u32)
        .filter(|byte| bytes >> byte & 1 == 1)
        .map(|byte| 0xff << (8 * byte))
        .sum()
}

impl AccessRecord {
    fn new(accessor: &Accessor, bytes: u8) -> Self {
        Self {
            block: accessor.block,
            phase: accessor.phase,
            step: accessor.steps.now,
            line: accessor.steps.line,
            thread: accessor.thread,
            distance: accessor.distance,
            bytes,
        }
    }

    /// Returns the same access by the thread whose number is higher by `threads`. No access stays
    /// no access.
    fn shifted(self, threads: u16) -> Self {
        let thread = if self.bytes == 0 {
            self.thread
        } else {
            self.thread + threads
        };
        Self { thread, ..self }
    }

    /// Returns `true` if a thread of the same warp makes an access between the same barriers.
    fn is_by_warp(&self, accessor: &Accessor) -> bool {
        self.block == accessor.block
            && self.phase == accessor.phase
            && self.thread / 32 == accessor.thread / 32
    }

    fn is_by_thread(&self, accessor: &Accessor) -> bool {
        self.block == accessor.block
            && self.phase == accessor.phase
            && self.thread == accessor.thread
    }

    /// Returns `true` if another thread makes an access with the same instruction.
    fn is_made_at_once_with(&self, accessor: &Accessor) -> bool {
        self.bytes != 0
            && self.step == accessor.steps.now
            && self.thread != accessor.thread
            && self.is_by_warp(accessor)
    }

    /// Returns `true` if an access to the whole word races with this one.
    #[inline]
    fn races_with(&self, accessor: &Accessor) -> bool {
        self.race(accessor, WHOLE).is_some()
    }

    /// Returns the thread that made the access, if it is unordered with an access by `accessor` and
    /// not made by the same instruction. Threads are unordered in different blocks, in different
    /// warps of a block between two barriers, and in a warp between two synchronizations.
    #[inline]
    fn race(&self, accessor: &Accessor, bytes: u8) -> Option<RacingThread> {
        if self.bytes & bytes == 0 || self.block == accessor.block && self.phase != accessor.phase {
            return None;
        }
        let mut race = RacingThread {
            block: self.block,
            thread: self.thread,
            distance: 0,
            line: self.line,
            wrote: false,
            same_value: false,
        };
        if self.is_by_warp(accessor) {
            if self.step <= accessor.steps.joined || self.step == accessor.steps.now {
                return None;
            }
            if self.thread == accessor.thread {
                if self.distance != 0 {
                    race.thread = self.thread.wrapping_add_signed(self.distance.into());
                } else if accessor.distance != 0 {
                    race.distance = accessor.distance;
                } else {
                    return None;
                }
            }
        }
        Some(race)
    }

    /// Adds an access by the same thread. The step is that of an access to all the bytes.
    fn extend(&mut self, accessor: &Accessor, bytes: u8) {
        if bytes & self.bytes == self.bytes {
            self.step = accessor.steps.now;
            self.line = accessor.steps.line;
            self.distance = accessor.distance;
        }
        self.bytes |= bytes;
    }
}

impl Word {
    fn read(&mut self, accessor: &Accessor, bytes: u8) -> Option<RacingThread> {
        let race = self.writer.race(accessor, bytes).map(RacingThread::writer);
        let [last, earlier] = &mut self.readers;
        if last.bytes != 0 && last.is_by_thread(accessor) {
            last.extend(accessor, bytes);
            return race;
        }
        let mut record = AccessRecord::new(accessor, bytes);
        if last.bytes != 0 {
            let is_other_block = last.block != accessor.block;
            let is_other_warp =
                last.phase == accessor.phase && last.thread / 32 != accessor.thread / 32;
            if is_other_block
                || is_other_warp && (earlier.bytes == 0 || earlier.block == accessor.block)
            {
                *earlier = *last;
            }
            let is_unjoined = last.is_by_warp(accessor) && last.step > accessor.steps.joined;
            if record.distance == 0 && is_unjoined && last.bytes & bytes == bytes {
                record.distance = last.thread.wrapping_sub(accessor.thread) as i8;
            }
        }
        *last = record;
        race
    }

    /// Records a store of `stored` to a word with the value `value`.
    fn write(
        &mut self,
        accessor: &Accessor,
        bytes: u8,
        value: &mut u32,
        stored: u32,
    ) -> Option<RacingThread> {
        let both = self.writer.bytes & bytes;
        let is_same_value = (*value ^ stored) & byte_bits(both) == 0;
        let is_at_once = both != 0 && self.writer.is_made_at_once_with(accessor);
        let reader = self
            .readers
            .iter()
            .find_map(|reader| reader.race(accessor, bytes));
        let race = if reader.is_some() {
            reader
        } else if let Some(race) = self.writer.race(accessor, bytes) {
            Some(RacingThread {
                same_value: is_same_value,
                ..race.writer()
            })
        } else if is_at_once && !is_same_value {
            Some(RacingThread {
                block: accessor.block,
                thread: self.writer.thread,
                distance: 0,
                line: self.writer.line,
                wrote: true,
                same_value: false,
            })
        } else {
            None
        };
        if self.writer.bytes != 0 && self.writer.is_by_thread(accessor) {
            *value = *value & !byte_bits(bytes) | stored;
            self.writer.extend(accessor, bytes);
        } else {
            let mut record = AccessRecord::new(accessor, bytes);
            if is_at_once && both == bytes {
                record.distance = self.writer.thread.wrapping_sub(accessor.thread) as i8;
            }
            self.writer = record;
            *value = stored;
        }
        race
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accessor(block: u32, phase: u32, thread: u16) -> Accessor {
        Accessor {
            block,
            phase,
            thread,
            // The threads of a warp synchronize before each access.
            steps: Steps {
                now: 1,
                joined: 1,
                line: 0,
            },
            distance: 0,
        }
    }

    fn load(accessor: Accessor, address: u64, bytes: u64) -> ThreadAccess<'static> {
        ThreadAccess {
            accessor,
            address,
            bytes,
            stored: None,
        }
    }

    fn store(accessor: Accessor, address: u64, stored: &[u8]) -> ThreadAccess<'_> {
        ThreadAccess {
            accessor,
            address,
            bytes: stored.len() as u64,
            stored: Some(stored),
        }
    }

    fn record(
        shadow: &LaunchShadow,
        cache: &mut PageCache,
        accesses: &[ThreadAccess<'_>],
    ) -> Option<(usize, RacingThread)> {
        shadow.record(cache, accesses.iter())
    }

    fn thread_id(accessor: Accessor) -> (u32, u16) {
        (accessor.block, accessor.thread)
    }

    /// Returns the thread that the last access races with, and `true` if both stored the same
    /// value.
    fn last_race(accesses: &[ThreadAccess<'_>]) -> Option<((u32, u16), bool)> {
        let shadow = LaunchShadow::default();
        let mut cache = PageCache::default();
        let accesses: Vec<ThreadAccess<'_>> = (1..)
            .zip(accesses)
            .map(|(now, access)| {
                let joined = now - 1;
                let accessor = Accessor {
                    steps: Steps {
                        now,
                        joined,
                        line: 0,
                    },
                    ..access.accessor
                };
                ThreadAccess {
                    accessor,
                    ..*access
                }
            })
            .collect();
        let (last, before) = accesses.split_last().expect("no access");
        for access in before {
            record(&shadow, &mut cache, &[*access]);
        }
        let race = record(&shadow, &mut cache, &[*last]);
        race.map(|(_, race)| ((race.block, race.thread), race.same_value))
    }

    const A: u64 = 0x7f00_1000;

    #[test]
    fn unordered_accesses_race_if_one_of_them_writes() {
        let first = accessor(0, 3, 0);
        for (other, is_unordered) in [
            (accessor(0, 3, 31), false),
            (accessor(0, 3, 32), true),
            (accessor(0, 4, 32), false),
            (accessor(1, 0, 0), true),
            (accessor(1, 3, 0), true),
        ] {
            let expected = is_unordered.then_some((thread_id(first), false));
            assert_eq!(
                last_race(&[store(first, A, &[1; 4]), load(other, A, 4)]),
                expected,
                "{other:?}"
            );
            assert_eq!(
                last_race(&[load(first, A, 4), store(other, A, &[1; 4])]),
                expected,
                "{other:?}"
            );
            assert_eq!(
                last_race(&[store(first, A, &[1; 4]), store(other, A, &[2; 4])]),
                expected,
                "{other:?}"
            );
            assert_eq!(last_race(&[load(first, A, 4), load(other, A, 4)]), None);
        }
    }

    #[test]
    fn stored_values_are_compared_in_common_bytes() {
        let first = accessor(0, 0, 0);
        let other = accessor(1, 0, 0);
        for (stored, address, again, same_value) in [
            (&[7; 4][..], A, &[7; 4][..], Some(true)),
            (&[7, 7, 7, 8], A, &[7; 4], Some(false)),
            (&[1, 2, 3, 4], A + 1, &[2], Some(true)),
            (&[1, 2], A + 2, &[9, 9], None),
            // The last word of a vector.
            (&[5; 16], A + 12, &[5; 4], Some(true)),
        ] {
            assert_eq!(
                last_race(&[store(first, A, stored), store(other, address, again)]),
                same_value.map(|same_value| (thread_id(first), same_value)),
                "{stored:?} {again:?}"
            );
        }
        let read = [
            store(first, A, &[7; 4]),
            load(accessor(2, 0, 0), A, 4),
            store(other, A, &[7; 4]),
        ];
        assert_eq!(
            last_race(&read),
            Some(((2, 0), false)),
            "a reader may see neither or one"
        );
    }

    #[test]
    fn epochs_order_everything() {
        let shadow = LaunchShadow::default();
        let mut cache = PageCache::default();
        record(&shadow, &mut cache, &[store(accessor(0, 0, 0), A, &[1; 4])]);
        shadow.advance();
        assert_eq!(
            record(&shadow, &mut cache, &[load(accessor(1, 0, 0), A, 4)]),
            None
        );
        assert!(
            record(&shadow, &mut cache, &[store(accessor(2, 0, 0), A, &[1; 4])]).is_some(),
            "the read is of the new epoch"
        );
    }

    #[test]
    fn accesses_to_lines_race_as_those_to_words_alone() {
        let mut random = fastrand::Rng::with_seed(1);
        let lines = LaunchShadow::default();
        let mut lines_cache = PageCache::default();
        let words = LaunchShadow::default();
        let mut words_cache = PageCache::default();
        let mut rows = 0;
        let mut races = 0;
        for turn in 0..60_000_u32 {
            if random.u64(..30) == 0 {
                lines.advance();
                words.advance();
            }
            let thread = random.u16(..4) * HALF as u16;
            let now = turn + 1;
            let joined = now.saturating_sub(1 + random.u32(..3));
            let accessor = Accessor {
                steps: Steps {
                    now,
                    joined,
                    line: 0,
                },
                ..accessor(random.u32(..2), random.u32(..2), thread)
            };
            let values: [u32; WORDS] =
                std::array::from_fn(|word| if turn % 3 == 0 { 0 } else { word as u32 });
            let bytes = values.map(u32::to_le_bytes);
            let is_store = random.u64(..4) == 0;
            let address = A + random.u64(..2) * LINE;
            if random.u64(..4) == 0 {
                let stored = is_store.then_some(&bytes[3][..]);
                let access = ThreadAccess {
                    accessor,
                    address: address + random.u64(..61),
                    bytes: 4,
                    stored,
                };
                assert_eq!(
                    lines.record(&mut lines_cache, [access].iter()),
                    words.record(&mut words_cache, [access].iter()),
                    "{turn}"
                );
                continue;
            }
            let accesses: [ThreadAccess<'_>; WORDS] = std::array::from_fn(|lane| ThreadAccess {
                accessor: Accessor {
                    thread: thread + lane as u16,
                    ..accessor
                },
                address: address + lane as u64 * WORD,
                bytes: WORD,
                stored: is_store.then_some(&bytes[lane][..]),
            });
            let expected = words.record(&mut words_cache, accesses.iter());
            races += u32::from(expected.is_some());
            let values = is_store.then_some(&values);
            if lines.record_line(&mut lines_cache, address, accessor, values) {
                rows += 1;
                assert_eq!(expected, None, "{turn}");
            } else {
                let race = lines.record(&mut lines_cache, accesses.iter());
                assert_eq!(race, expected, "{turn}");
            }
        }
        assert!(rows > 1000 && races > 1000, "{rows} {races}");
    }

    #[test]
    fn reader_of_another_block_is_remembered() {
        let accesses = [
            load(accessor(1, 0, 0), A, 4),
            load(accessor(0, 0, 0), A, 4),
            load(accessor(0, 0, 32), A, 4),
            store(accessor(0, 0, 32), A, &[1; 4]),
        ];
        assert_eq!(last_race(&accesses), Some(((1, 0), false)));
        let accesses = [
            load(accessor(0, 0, 0), A, 4),
            load(accessor(0, 0, 32), A, 4),
            store(accessor(0, 0, 32), A, &[1; 4]),
        ];
        assert_eq!(last_race(&accesses), Some(((0, 0), false)));
        let accesses = [
            load(accessor(0, 0, 0), A, 4),
            load(accessor(0, 1, 32), A, 4),
            store(accessor(0, 1, 32), A, &[1; 4]),
        ];
        assert_eq!(last_race(&accesses), None, "a barrier lies between");
    }

    #[test]
    fn races_with_different_values_are_reported_first() {
        let shadow = LaunchShadow::default();
        let mut cache = PageCache::default();
        record(&shadow, &mut cache, &[store(accessor(0, 0, 0), A, &[1; 8])]);
        let other = accessor(1, 0, 0);
        let race = record(
            &shadow,
            &mut cache,
            &[store(other, A, &[1; 4]), store(other, A + 4, &[2; 4])],
        );
        let expected = RacingThread {
            block: 0,
            thread: 0,
            distance: 0,
            line: 0,
            wrote: true,
            same_value: false,
        };
        assert_eq!(race, Some((1, expected)));
    }

    #[test]
    fn pages_beyond_the_limit_are_not_recorded() {
        let shadow = LaunchShadow::default();
        let mut cache = PageCache::default();
        for page in 0..MAX_PAGES as u64 + 1 {
            record(
                &shadow,
                &mut cache,
                &[store(accessor(0, 0, 0), page * PAGE, &[1; 4])],
            );
        }
        for (page, is_recorded) in [(0, true), (MAX_PAGES as u64, false)] {
            let access = load(accessor(1, 0, 0), page * PAGE, 4);
            let race = record(&shadow, &mut cache, &[access]);
            assert_eq!(race.is_some(), is_recorded);
        }
    }
}
