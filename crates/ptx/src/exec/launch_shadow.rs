//! Accesses of a launch's threads to device memory, by words.
//!
//! Each word records the last thread that wrote it, with the value, and two threads that read it. A line of sixteen words has a single
//! record while consecutive threads access all of it in order, the usual case. Lines are kept in pages that are created with the first
//! access. Threads of different blocks run on different workers, so each page has a lock.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::lane::HALF;
use super::shadow::Steps;

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
/// The maximum number of pages of a launch. Accesses to further pages are not recorded, so the shadow of a large launch is at most 180 MB.
const MOST_PAGES: usize = 4096;
/// The number of pages that a worker caches.
const CACHED: usize = 64;

/// The accesses of a launch to device memory.
#[derive(Debug, Default)]
pub(crate) struct LaunchShadow {
    /// The number of operations so far that may order accesses of different blocks. Accesses of earlier epochs do not race.
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

/// A thread of a launch at a point of its program, or the first of several that make the same access with one instruction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Visitor {
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
pub(crate) struct Visit<'v> {
    pub(crate) by: Visitor,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    /// The stored bytes; `None` for a load.
    pub(crate) stored: Option<&'v [u8]>,
}

/// The thread that an access races with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rival {
    /// The number of its block in the grid, and its number in the block.
    pub(crate) block: u32,
    pub(crate) thread: u16,
    /// The distance from the first thread of the access to the one that races.
    pub(crate) distance: i8,
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
    /// `true` if each word has its own record. Otherwise the records of all words follow from the first: consecutive threads accessed them.
    is_split: bool,
    words: [Word; WORDS],
    /// The value of each word that its writer stored, in the bytes that it stored.
    values: [u32; WORDS],
}

/// The accesses to a word.
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    writer: Access,
    /// The last reader, and an earlier reader of another block, or otherwise of another warp.
    readers: [Access; 2],
}

/// An access to bytes of a word; to no bytes if the word has not been accessed.
#[derive(Clone, Copy, Debug, Default)]
struct Access {
    block: u32,
    phase: u32,
    /// The step of the warp at which the access was made.
    step: u32,
    thread: u16,
    /// The distance to another thread of the warp that accessed these bytes without synchronization in between; 0 without one.
    distance: i8,
    /// A bit for each byte.
    bytes: u8,
}

const _: () = assert!(
    size_of::<Access>() == 16,
    "the shadow has three for each word"
);

impl LaunchShadow {
    /// Orders earlier accesses before later ones.
    pub(crate) fn advance(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }

    /// Records the accesses of one instruction. Returns the position of the first access that races and the other thread. A race of
    /// different values takes precedence.
    pub(crate) fn record<'v>(
        &self,
        cache: &mut PageCache,
        visits: impl Iterator<Item = &'v Visit<'v>>,
    ) -> Option<(usize, Rival)> {
        let mut worst: Option<(usize, Rival)> = None;
        let mut visits = (0..).zip(visits).peekable();
        while let Some((_, first)) = visits.peek() {
            let number = first.address / PAGE;
            let page = cache.page(number, self);
            let mut page = page.map(|page| page.lock().unwrap_or_else(PoisonError::into_inner));
            let epoch = self.epoch.load(Ordering::Acquire);
            while let Some((position, visit)) =
                visits.next_if(|(_, visit)| visit.address / PAGE == number)
            {
                let rival = page.as_mut().and_then(|page| page.record(epoch, visit));
                if let Some(rival) =
                    rival.filter(|rival| is_worse(*rival, worst.map(|(_, rival)| rival)))
                {
                    worst = Some((position, rival));
                }
            }
        }
        worst
    }

    /// Records the accesses of half a warp to a line, from the thread `by` on. `stored` holds the values of stores. Returns `false` if they
    /// must be recorded one by one, because they may race or other accesses to the line were different.
    pub(crate) fn record_line(
        &self,
        cache: &mut PageCache,
        address: u64,
        by: Visitor,
        stored: Option<&[u32; WORDS]>,
    ) -> bool {
        let Some(page) = cache.page(address / PAGE, self) else {
            return true;
        };
        let mut page = page.lock().unwrap_or_else(PoisonError::into_inner);
        let epoch = self.epoch.load(Ordering::Acquire);
        let line = page.line(address % PAGE, epoch);
        !line.is_split && line.record(&by, stored)
    }

    fn pages(&self) -> MutexGuard<'_, HashMap<u64, Arc<Mutex<Page>>>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the page with a number, or `None` if the launch has too many pages.
    #[cold]
    fn page(&self, number: u64) -> Option<Arc<Mutex<Page>>> {
        let mut pages = self.pages();
        if let Some(page) = pages.get(&number) {
            return Some(Arc::clone(page));
        }
        if pages.len() == MOST_PAGES {
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
            (line.epoch, line.is_split, line.words[0]) = (epoch, false, Word::default());
        }
        line
    }

    /// Records an access up to the end of the page.
    fn record(&mut self, epoch: u32, visit: &Visit<'_>) -> Option<Rival> {
        let start = visit.address % PAGE;
        let end = (start + visit.bytes).min(PAGE);
        let mut worst = None;
        let mut at = start;
        while at < end {
            let word = at / WORD;
            let stop = end.min((word + 1) * WORD);
            let line = self.line(at, epoch);
            if !line.is_split {
                line.split();
            }
            let mask = ((1_u32 << (stop - word * WORD)) - (1 << (at - word * WORD))) as u8;
            let index = word as usize % WORDS;
            let (word, value) = (&mut line.words[index], &mut line.values[index]);
            let rival = match visit.stored {
                Some(stored) => word.write(
                    &visit.by,
                    mask,
                    value,
                    value_of(&stored[(at - start) as usize..(stop - start) as usize], at),
                ),
                None => word.read(&visit.by, mask),
            };
            worst = rival.filter(|rival| is_worse(*rival, worst)).or(worst);
            at = stop;
        }
        worst
    }
}

impl Line {
    /// Records accesses to all of the line by consecutive threads, unless they may race.
    fn record(&mut self, first: &Visitor, stored: Option<&[u32; WORDS]>) -> bool {
        let word = &mut self.words[0];
        let races_with = |access: &Access| access.rival(first, WHOLE).is_some();
        let may_race = stored.is_some()
            && (word.writer.is_made_at_once_with(first) || word.readers.iter().any(races_with));
        if may_race || races_with(&word.writer) {
            return false;
        }
        match stored {
            Some(values) => {
                word.writer = Access::new(first, WHOLE);
                self.values = *values;
            }
            None => _ = word.read(first, WHOLE),
        }
        true
    }

    /// Gives each word its own record.
    fn split(&mut self) {
        let first = self.words[0];
        for (thread, word) in (0..).zip(&mut self.words) {
            let moved = |access: Access| access.moved_on(thread);
            *word = Word {
                writer: moved(first.writer),
                readers: first.readers.map(moved),
            };
        }
        if first.writer.bytes == 0 {
            self.values = [0; WORDS];
        }
        self.is_split = true;
    }
}

/// Returns stored bytes at their position in a word, from the byte of `address` on.
fn value_of(stored: &[u8], address: u64) -> u32 {
    let mut value = [0; WORD as usize];
    value[(address % WORD) as usize..][..stored.len()].copy_from_slice(stored);
    u32::from_le_bytes(value)
}

/// Returns `true` if a race takes precedence over another one of the same instruction.
fn is_worse(rival: Rival, than: Option<Rival>) -> bool {
    than.is_none_or(|than| than.same_value && !rival.same_value)
}

/// Returns a word with all bits set in the bytes of a mask.
fn bits_of(bytes: u8) -> u32 {
    (0..WORD as u32)
        .filter(|byte| bytes >> byte & 1 == 1)
        .map(|byte| 0xff << (8 * byte))
        .sum()
}

impl Access {
    fn new(by: &Visitor, bytes: u8) -> Self {
        Self {
            block: by.block,
            phase: by.phase,
            step: by.steps.now,
            thread: by.thread,
            distance: by.distance,
            bytes,
        }
    }

    /// Returns the same access by the thread whose number is higher by `threads`. No access stays no access.
    fn moved_on(self, threads: u16) -> Self {
        let thread = if self.bytes == 0 {
            self.thread
        } else {
            self.thread + threads
        };
        Self { thread, ..self }
    }

    /// Returns `true` if a thread of the same warp makes an access between the same barriers.
    fn is_by_warp_of(&self, by: &Visitor) -> bool {
        self.block == by.block && self.phase == by.phase && self.thread / 32 == by.thread / 32
    }

    fn is_by_thread(&self, by: &Visitor) -> bool {
        self.block == by.block && self.phase == by.phase && self.thread == by.thread
    }

    /// Returns `true` if another thread makes an access with the same instruction.
    fn is_made_at_once_with(&self, by: &Visitor) -> bool {
        self.bytes != 0
            && self.step == by.steps.now
            && self.thread != by.thread
            && self.is_by_warp_of(by)
    }

    /// Returns the thread that made the access, if it is unordered with an access by `by` and not made by the same instruction. Threads are
    /// unordered in different blocks, in different warps of a block between two barriers, and in a warp between two synchronizations.
    #[inline]
    fn rival(&self, by: &Visitor, bytes: u8) -> Option<Rival> {
        if self.bytes & bytes == 0 || self.block == by.block && self.phase != by.phase {
            return None;
        }
        let mut rival = Rival {
            block: self.block,
            thread: self.thread,
            distance: 0,
            same_value: false,
        };
        if self.is_by_warp_of(by) {
            if self.step <= by.steps.joined || self.step == by.steps.now {
                return None;
            }
            if self.thread == by.thread {
                if self.distance != 0 {
                    rival.thread = self.thread.wrapping_add_signed(self.distance.into());
                } else if by.distance != 0 {
                    rival.distance = by.distance;
                } else {
                    return None;
                }
            }
        }
        Some(rival)
    }

    /// Adds an access by the same thread. The step is that of an access to all the bytes.
    fn extend(&mut self, by: &Visitor, bytes: u8) {
        if bytes & self.bytes == self.bytes {
            (self.step, self.distance) = (by.steps.now, by.distance);
        }
        self.bytes |= bytes;
    }
}

impl Word {
    fn read(&mut self, by: &Visitor, bytes: u8) -> Option<Rival> {
        let rival = self.writer.rival(by, bytes);
        let [last, earlier] = &mut self.readers;
        if last.bytes != 0 && last.is_by_thread(by) {
            last.extend(by, bytes);
            return rival;
        }
        let mut access = Access::new(by, bytes);
        if last.bytes != 0 {
            let is_of_other_block = last.block != by.block;
            let is_of_other_warp = last.phase == by.phase && last.thread / 32 != by.thread / 32;
            if is_of_other_block
                || is_of_other_warp && (earlier.bytes == 0 || earlier.block == by.block)
            {
                *earlier = *last;
            }
            let is_unjoined = last.is_by_warp_of(by) && last.step > by.steps.joined;
            if access.distance == 0 && is_unjoined && last.bytes & bytes == bytes {
                access.distance = last.thread.wrapping_sub(by.thread) as i8;
            }
        }
        *last = access;
        rival
    }

    /// Records a store of `stored` to a word with the value `value`.
    fn write(&mut self, by: &Visitor, bytes: u8, value: &mut u32, stored: u32) -> Option<Rival> {
        let both = self.writer.bytes & bytes;
        let is_same_value = (*value ^ stored) & bits_of(both) == 0;
        let is_at_once = both != 0 && self.writer.is_made_at_once_with(by);
        let reader = self
            .readers
            .iter()
            .find_map(|reader| reader.rival(by, bytes));
        let writer = || {
            let rival = self.writer.rival(by, bytes).map(|rival| Rival {
                same_value: is_same_value,
                ..rival
            });
            rival.or((is_at_once && !is_same_value).then_some(Rival {
                block: by.block,
                thread: self.writer.thread,
                distance: 0,
                same_value: false,
            }))
        };
        let rival = reader.or_else(writer);
        if self.writer.bytes != 0 && self.writer.is_by_thread(by) {
            *value = *value & !bits_of(bytes) | stored;
            self.writer.extend(by, bytes);
        } else {
            let mut access = Access::new(by, bytes);
            if is_at_once && both == bytes {
                access.distance = self.writer.thread.wrapping_sub(by.thread) as i8;
            }
            (self.writer, *value) = (access, stored);
        }
        rival
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(block: u32, phase: u32, thread: u16) -> Visitor {
        Visitor {
            block,
            phase,
            thread,
            // The threads of a warp synchronize before each access.
            steps: Steps { now: 1, joined: 1 },
            distance: 0,
        }
    }

    fn load(by: Visitor, address: u64, bytes: u64) -> Visit<'static> {
        Visit {
            by,
            address,
            bytes,
            stored: None,
        }
    }

    fn store(by: Visitor, address: u64, stored: &[u8]) -> Visit<'_> {
        Visit {
            by,
            address,
            bytes: stored.len() as u64,
            stored: Some(stored),
        }
    }

    fn record(
        shadow: &LaunchShadow,
        cache: &mut PageCache,
        visits: &[Visit<'_>],
    ) -> Option<(usize, Rival)> {
        shadow.record(cache, visits.iter())
    }

    fn thread_of(by: Visitor) -> (u32, u16) {
        (by.block, by.thread)
    }

    /// Returns the thread that the last access races with, and `true` if both stored the same value.
    fn last_rival(visits: &[Visit<'_>]) -> Option<((u32, u16), bool)> {
        let (shadow, mut cache) = (LaunchShadow::default(), PageCache::default());
        let visits: Vec<Visit<'_>> = (1..)
            .zip(visits)
            .map(|(now, visit)| {
                let joined = now - 1;
                let by = Visitor {
                    steps: Steps { now, joined },
                    ..visit.by
                };
                Visit { by, ..*visit }
            })
            .collect();
        let (last, before) = visits.split_last().expect("there is an access");
        for visit in before {
            record(&shadow, &mut cache, &[*visit]);
        }
        let rival = record(&shadow, &mut cache, &[*last]);
        rival.map(|(_, rival)| ((rival.block, rival.thread), rival.same_value))
    }

    const A: u64 = 0x7f00_1000;

    #[test]
    fn unordered_accesses_race_if_one_of_them_writes() {
        let first = by(0, 3, 0);
        for (other, is_unordered) in [
            (by(0, 3, 31), false),
            (by(0, 3, 32), true),
            (by(0, 4, 32), false),
            (by(1, 0, 0), true),
            (by(1, 3, 0), true),
        ] {
            let expected = is_unordered.then_some((thread_of(first), false));
            assert_eq!(
                last_rival(&[store(first, A, &[1; 4]), load(other, A, 4)]),
                expected,
                "{other:?}"
            );
            assert_eq!(
                last_rival(&[load(first, A, 4), store(other, A, &[1; 4])]),
                expected,
                "{other:?}"
            );
            assert_eq!(
                last_rival(&[store(first, A, &[1; 4]), store(other, A, &[2; 4])]),
                expected,
                "{other:?}"
            );
            assert_eq!(last_rival(&[load(first, A, 4), load(other, A, 4)]), None);
        }
    }

    #[test]
    fn stores_of_the_same_value_are_compared_in_their_common_bytes() {
        let (first, other) = (by(0, 0, 0), by(1, 0, 0));
        let rival = |stored: &[u8], address, again: &[u8]| {
            last_rival(&[store(first, A, stored), store(other, address, again)])
        };
        assert_eq!(rival(&[7; 4], A, &[7; 4]), Some((thread_of(first), true)));
        assert_eq!(
            rival(&[7, 7, 7, 8], A, &[7; 4]),
            Some((thread_of(first), false))
        );
        assert_eq!(
            rival(&[1, 2, 3, 4], A + 1, &[2]),
            Some((thread_of(first), true))
        );
        assert_eq!(rival(&[1, 2], A + 2, &[9, 9]), None, "the bytes are others");
        assert_eq!(
            rival(&[5; 16], A + 12, &[5; 4]),
            Some((thread_of(first), true)),
            "the last word of a vector"
        );
        let read = [
            store(first, A, &[7; 4]),
            load(by(2, 0, 0), A, 4),
            store(other, A, &[7; 4]),
        ];
        assert_eq!(
            last_rival(&read),
            Some(((2, 0), false)),
            "a reader may see neither or one"
        );
    }

    #[test]
    fn epochs_order_everything() {
        let (shadow, mut cache) = (LaunchShadow::default(), PageCache::default());
        record(&shadow, &mut cache, &[store(by(0, 0, 0), A, &[1; 4])]);
        shadow.advance();
        assert_eq!(
            record(&shadow, &mut cache, &[load(by(1, 0, 0), A, 4)]),
            None
        );
        assert!(
            record(&shadow, &mut cache, &[store(by(2, 0, 0), A, &[1; 4])]).is_some(),
            "the read is of the new epoch"
        );
    }

    #[test]
    fn accesses_to_lines_race_as_those_to_words_alone() {
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let (lines, words) = (LaunchShadow::default(), LaunchShadow::default());
        let (mut cache, mut other) = (PageCache::default(), PageCache::default());
        let (mut rows, mut races) = (0, 0);
        for turn in 0..60_000_u32 {
            if random(30) == 0 {
                lines.advance();
                words.advance();
            }
            let thread = random(4) as u16 * HALF as u16;
            let now = turn + 1;
            let joined = now.saturating_sub(1 + random(3) as u32);
            let by = Visitor {
                steps: Steps { now, joined },
                ..by(random(2) as u32, random(2) as u32, thread)
            };
            let values: [u32; WORDS] =
                std::array::from_fn(|word| if turn % 3 == 0 { 0 } else { word as u32 });
            let bytes = values.map(u32::to_le_bytes);
            let is_store = random(4) == 0;
            let address = A + random(2) * LINE;
            if random(4) == 0 {
                let stored = is_store.then_some(&bytes[3][..]);
                let visit = Visit {
                    by,
                    address: address + random(61),
                    bytes: 4,
                    stored,
                };
                let found = lines.record(&mut cache, [visit].iter());
                assert_eq!(found, words.record(&mut other, [visit].iter()), "{turn}");
                continue;
            }
            let visit = |lane: usize| Visit {
                by: Visitor {
                    thread: thread + lane as u16,
                    ..by
                },
                address: address + lane as u64 * WORD,
                bytes: WORD,
                stored: is_store.then_some(&bytes[lane][..]),
            };
            let visits: [Visit<'_>; WORDS] = std::array::from_fn(visit);
            let expected = words.record(&mut other, visits.iter());
            races += u32::from(expected.is_some());
            if lines.record_line(&mut cache, address, by, is_store.then_some(&values)) {
                rows += 1;
                assert_eq!(expected, None, "{turn}");
            } else {
                assert_eq!(lines.record(&mut cache, visits.iter()), expected, "{turn}");
            }
        }
        assert!(rows > 1000 && races > 1000, "{rows} {races}");
    }

    #[test]
    fn reader_of_another_block_is_remembered() {
        let visits = [
            load(by(1, 0, 0), A, 4),
            load(by(0, 0, 0), A, 4),
            load(by(0, 0, 32), A, 4),
            store(by(0, 0, 32), A, &[1; 4]),
        ];
        assert_eq!(last_rival(&visits), Some(((1, 0), false)));
        let visits = [
            load(by(0, 0, 0), A, 4),
            load(by(0, 0, 32), A, 4),
            store(by(0, 0, 32), A, &[1; 4]),
        ];
        assert_eq!(last_rival(&visits), Some(((0, 0), false)));
        let visits = [
            load(by(0, 0, 0), A, 4),
            load(by(0, 1, 32), A, 4),
            store(by(0, 1, 32), A, &[1; 4]),
        ];
        assert_eq!(last_rival(&visits), None, "a barrier lies between");
    }

    #[test]
    fn race_of_different_values_is_reported_before_one_of_the_same() {
        let (shadow, mut cache) = (LaunchShadow::default(), PageCache::default());
        record(&shadow, &mut cache, &[store(by(0, 0, 0), A, &[1; 8])]);
        let other = by(1, 0, 0);
        let found = record(
            &shadow,
            &mut cache,
            &[store(other, A, &[1; 4]), store(other, A + 4, &[2; 4])],
        );
        assert_eq!(
            found,
            Some((
                1,
                Rival {
                    block: 0,
                    thread: 0,
                    distance: 0,
                    same_value: false
                }
            ))
        );
    }

    #[test]
    fn pages_beyond_the_limit_are_not_recorded() {
        let (shadow, mut cache) = (LaunchShadow::default(), PageCache::default());
        for page in 0..MOST_PAGES as u64 + 1 {
            record(
                &shadow,
                &mut cache,
                &[store(by(0, 0, 0), page * PAGE, &[1; 4])],
            );
        }
        let read = |cache: &mut PageCache, page: u64| {
            record(&shadow, cache, &[load(by(1, 0, 0), page * PAGE, 4)]).is_some()
        };
        assert!(read(&mut cache, 0) && !read(&mut cache, MOST_PAGES as u64));
    }
}
