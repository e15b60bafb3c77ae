//! The marks of one allocation.
//!
//! A line of [`LINE`] bytes has one mark for as long as all of it was accessed alike, and then one for each word of four bytes, in which
//! bytes are told apart. Both are made with the first access near them. Whoever changes a mark may undo what another thread does to it
//! at the same time: what is left is a mark that was there, so that a race may stay unseen but none is made up.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::mark::{Mark, Party, WHOLE};

/// Bytes of a line.
const LINE: u64 = 64;
/// Bytes of a word.
const WORD: u64 = 4;
/// Words of a line.
const WORDS: usize = (LINE / WORD) as usize;
/// Lines that are made together.
const LINES: usize = 1024;

/// The mark of a line whose words have marks of their own; no other mark is like this, because its reader is no party.
const SPLIT: u64 = u64::MAX;

/// Who accessed each byte of an allocation last.
#[derive(Debug)]
pub(crate) struct Marks {
    size: u64,
    /// The mark of what nobody accessed.
    first: Mark,
    chunks: Box<[OnceLock<Box<Chunk>>]>,
}

/// The marks of some lines.
#[derive(Debug)]
struct Chunk {
    lines: [AtomicU64; LINES],
    words: OnceLock<Box<[[AtomicU64; WORDS]]>>,
}

impl Marks {
    /// The marks of so many bytes, which a party has made, if it is not 0, and nobody accessed.
    pub(crate) fn new(size: u64, made_by: Party) -> Self {
        let chunks = size.div_ceil(LINE * LINES as u64) as usize;
        let first = if made_by == 0 { Mark::default() } else { Mark::of_writer(made_by) };
        Self { size, first, chunks: std::iter::repeat_with(OnceLock::new).take(chunks).collect() }
    }

    /// Replaces the marks of a range by what `next` makes of each with the bytes of a word by bits, if that is anything else. Returns where
    /// the first word begins of which `next` tells something, and what it tells.
    pub(super) fn update<T>(
        &self,
        range: Range<u64>,
        mut next: impl FnMut(Mark, u8) -> (Mark, Option<T>),
    ) -> Option<(u64, T)> {
        let end = range.end.min(self.size);
        let mut found = None;
        let mut at = range.start;
        while at < end {
            let line = at / LINE;
            let stop = end.min((line + 1) * LINE);
            // The end of an allocation is the end of its last line.
            let is_whole = at == line * LINE && (stop == (line + 1) * LINE || stop == self.size);
            let told =
                if is_whole { self.update_line(line, &mut next) } else { self.update_words(at..stop, &mut next) };
            found = found.or(told);
            at = stop;
        }
        found.map(|(word, told)| (word.max(range.start), told))
    }

    fn update_line<T>(&self, line: u64, next: &mut impl FnMut(Mark, u8) -> (Mark, Option<T>)) -> Option<(u64, T)> {
        let (chunk, index) = self.chunk(line);
        let bits = chunk.lines[index].load(Ordering::Relaxed);
        if bits == SPLIT {
            let found = self.update_words(line * LINE..(line + 1) * LINE, next);
            chunk.merge(index);
            return found;
        }
        let (mark, told) = next(Mark::from_bits(bits), WHOLE);
        if mark.to_bits() != bits {
            chunk.lines[index].store(mark.to_bits(), Ordering::Relaxed);
        }
        told.map(|told| (line * LINE, told))
    }

    /// Updates a range within one line.
    fn update_words<T>(
        &self,
        range: Range<u64>,
        next: &mut impl FnMut(Mark, u8) -> (Mark, Option<T>),
    ) -> Option<(u64, T)> {
        let line = range.start / LINE;
        let (chunk, index) = self.chunk(line);
        let mut found = None;
        let mut words = None;
        let bits = chunk.lines[index].load(Ordering::Relaxed);
        if bits == SPLIT {
            words = Some(chunk.words(index));
        }
        for word in range.start / WORD..range.end.div_ceil(WORD) {
            let first = word * WORD;
            let mask = bytes(range.start.max(first) - first, range.end.min(first + WORD) - first);
            let within = (word % WORDS as u64) as usize;
            let old = words.map_or(bits, |words| words[within].load(Ordering::Relaxed));
            let (mark, told) = next(Mark::from_bits(old), mask);
            if mark.to_bits() != old {
                let words = *words.get_or_insert_with(|| chunk.split(index, bits));
                words[within].store(mark.to_bits(), Ordering::Relaxed);
            }
            found = found.or(told.map(|told| (first, told)));
        }
        found
    }

    /// The chunk of a line, and the line's position in it.
    fn chunk(&self, line: u64) -> (&Chunk, usize) {
        let (chunk, index) = (line as usize / LINES, line as usize % LINES);
        (self.chunks[chunk].get_or_init(|| Box::new(Chunk::new(self.first))), index)
    }
}

impl Chunk {
    fn new(mark: Mark) -> Self {
        Self { lines: std::array::from_fn(|_| AtomicU64::new(mark.to_bits())), words: OnceLock::new() }
    }

    /// The marks of a line's words.
    fn words(&self, index: usize) -> &[AtomicU64; WORDS] {
        let none = || std::array::from_fn(|_| AtomicU64::new(0));
        &self.words.get_or_init(|| std::iter::repeat_with(none).take(LINES).collect())[index]
    }

    /// Gives each word of a line the line's mark.
    fn split(&self, index: usize, bits: u64) -> &[AtomicU64; WORDS] {
        let words = self.words(index);
        words.iter().for_each(|word| word.store(bits, Ordering::Relaxed));
        self.lines[index].store(SPLIT, Ordering::Release);
        words
    }

    /// Gives a line the mark of its words, if it is the same for all.
    fn merge(&self, index: usize) {
        let words = self.words(index);
        let bits = words[0].load(Ordering::Relaxed);
        if words.iter().all(|word| word.load(Ordering::Relaxed) == bits) {
            self.lines[index].store(bits, Ordering::Release);
        }
    }
}

/// The bytes of a word from `begin` to `end`, by bits.
fn bytes(begin: u64, end: u64) -> u8 {
    ((1 << end) - (1 << begin)) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Marks a range for a party, and returns the parties that had marked bytes of it.
    fn paint(marks: &Marks, range: Range<u64>, party: Party) -> Vec<Party> {
        let mut before = Vec::new();
        marks.update(range, |mark, _| {
            before.push(mark.writer().number);
            (Mark::of_writer(party), None::<()>)
        });
        before.sort_unstable();
        before.dedup();
        before
    }

    #[test]
    fn marks_are_found_again_in_lines_and_words() {
        let marks = Marks::new(1000, 0);
        assert_eq!(paint(&marks, 0..1000, 1), [0]);
        assert_eq!(paint(&marks, 60..72, 2), [1]);
        assert_eq!(paint(&marks, 56..60, 3), [1]);
        assert_eq!(paint(&marks, 64..128, 4), [1, 2]);
        assert_eq!(paint(&marks, 0..64, 5), [1, 2, 3]);
        assert_eq!(paint(&marks, 0..128, 6), [4, 5]);
        assert_eq!(paint(&marks, 996..1000, 7), [1]);
        assert_eq!(paint(&marks, 960..1000, 8), [1, 7], "the last line ends with the allocation");
        assert_eq!(paint(&marks, 960..2000, 9), [8]);
    }

    #[test]
    fn first_mark_is_the_makers() {
        let marks = Marks::new(200_000, 5);
        assert_eq!(paint(&marks, 100_000..100_004, 6), [5]);
        assert_eq!(paint(&marks, 99_968..100_032, 7), [5, 6]);
    }

    #[test]
    fn update_tells_where_something_was_found_first() {
        let marks = Marks::new(256, 0);
        paint(&marks, 70..71, 1);
        let find = |range: Range<u64>| marks.update(range, |mark, _| (mark, (mark.writer().number == 1).then_some(())));
        assert_eq!(find(0..256), Some((68, ())));
        assert_eq!(find(69..100), Some((69, ())), "bytes before the range are not meant");
        assert_eq!(find(72..256), None);
    }

    #[test]
    fn bytes_of_a_word_come_as_bits() {
        let marks = Marks::new(64, 0);
        let mut masks = Vec::new();
        marks.update(3..9, |mark, bytes| {
            masks.push(bytes);
            (mark, None::<()>)
        });
        assert_eq!(masks, [0b1000, 0b1111, 0b0001]);
    }
}
