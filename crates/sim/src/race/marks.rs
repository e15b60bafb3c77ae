//! The marks of one allocation.
//!
//! A line of [`LINE`] bytes has one mark while all of it was accessed alike, and otherwise one for
//! each word of four bytes, which distinguishes the bytes. Both are created on the first access
//! near them. Threads update marks concurrently: a thread that loses a compare-and-swap retries.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::mark::{Mark, NOBODY, Party, WHOLE};
use crate::lock::{Mutex, Rank};

/// The number of bytes of a line.
const LINE: u64 = 64;
/// The number of bytes of a word.
const WORD: u64 = 4;
/// The number of words of a line.
const WORDS: usize = (LINE / WORD) as usize;
/// The number of lines that are allocated together.
const LINES: usize = 1024;

/// The mark of a line whose words have their own marks. It is unique, because its reader is not a
/// party.
const SPLIT: u64 = u64::MAX;

/// The last accesses to each byte of an allocation.
#[derive(Debug)]
pub(crate) struct Marks {
    size: u64,
    /// The mark of bytes without accesses.
    first: Mark,
    chunks: Box<[OnceLock<Box<Chunk>>]>,
}

/// The marks of some lines.
#[derive(Debug)]
struct Chunk {
    lines: [AtomicU64; LINES],
    words: OnceLock<Box<[[AtomicU64; WORDS]]>>,
    /// Serializes the threads that split or merge lines.
    splitting: Mutex<()>,
}

impl Marks {
    /// Creates the marks of `size` bytes without accesses, attributed to a party unless it is
    /// [`NOBODY`].
    pub(crate) fn new(size: u64, writer: Party) -> Self {
        let chunks = size.div_ceil(LINE * LINES as u64) as usize;
        let first = if writer == NOBODY {
            Mark::default()
        } else {
            Mark::written_by(writer)
        };
        Self {
            size,
            first,
            chunks: std::iter::repeat_with(OnceLock::new).take(chunks).collect(),
        }
    }

    /// Replaces each mark of a range by `next` of the mark and the mask of the accessed bytes,
    /// unless it stays the same. Returns the first word for which `next` returned a value, and the
    /// value.
    pub(super) fn update<T>(
        &self,
        range: Range<u64>,
        mut next: impl FnMut(Mark, u8) -> (Mark, Option<T>),
    ) -> Option<(u64, T)> {
        let end = range.end.min(self.size);
        let mut first = None;
        let mut next_byte = range.start;
        while next_byte < end {
            let line = next_byte / LINE;
            let stop = end.min((line + 1) * LINE);
            // The end of an allocation is the end of its last line.
            let is_whole =
                next_byte == line * LINE && (stop == (line + 1) * LINE || stop == self.size);
            let result = if is_whole {
                self.update_line(line, &mut next)
            } else {
                self.update_words(next_byte..stop, &mut next)
            };
            first = first.or(result);
            next_byte = stop;
        }
        first.map(|(word, result)| (word.max(range.start), result))
    }

    /// Updates all marks, treating bytes without accesses as one.
    pub(super) fn update_all<T>(
        &self,
        mut next: impl FnMut(Mark, u8) -> (Mark, Option<T>),
    ) -> Option<(u64, T)> {
        let (_, result) = next(self.first, WHOLE);
        let mut first = result.map(|result| (0, result));
        let bytes = LINE * LINES as u64;
        for (index, chunk) in (0..).zip(&self.chunks) {
            if chunk.get().is_some() {
                let result = self.update(index * bytes..(index + 1) * bytes, &mut next);
                first = first.or(result);
            }
        }
        first
    }

    fn update_line<T>(
        &self,
        line: u64,
        next: &mut impl FnMut(Mark, u8) -> (Mark, Option<T>),
    ) -> Option<(u64, T)> {
        let (chunk, index) = self.chunk(line);
        loop {
            let bits = chunk.lines[index].load(Ordering::Acquire);
            if bits == SPLIT {
                let result = self.update_words(line * LINE..(line + 1) * LINE, next);
                chunk.merge(index);
                return result;
            }
            let (mark, result) = next(Mark::from_bits(bits), WHOLE);
            if change(&chunk.lines[index], bits, mark) {
                return result.map(|result| (line * LINE, result));
            }
        }
    }

    /// Updates a range within one line.
    fn update_words<T>(
        &self,
        range: Range<u64>,
        next: &mut impl FnMut(Mark, u8) -> (Mark, Option<T>),
    ) -> Option<(u64, T)> {
        let (chunk, index) = self.chunk(range.start / LINE);
        let mut first = None;
        loop {
            let bits = chunk.lines[index].load(Ordering::Acquire);
            let is_done = if bits == SPLIT {
                let words = chunk.words(index);
                for (word, mask) in word_masks(&range) {
                    let result = update_word(&words[word as usize % WORDS], mask, next);
                    first = first.or(result.map(|result| (word * WORD, result)));
                }
                // The thread that merged the line may have missed this update.
                chunk.lines[index].load(Ordering::SeqCst) == SPLIT
            } else {
                let changes = word_masks(&range)
                    .any(|(_, mask)| next(Mark::from_bits(bits), mask).0.to_bits() != bits);
                if changes {
                    chunk.split(index, bits);
                }
                !changes
            };
            if is_done {
                return first;
            }
        }
    }

    /// Returns the chunk of a line, and the line's position in it.
    fn chunk(&self, line: u64) -> (&Chunk, usize) {
        let chunk = &self.chunks[line as usize / LINES];
        (
            chunk.get_or_init(|| Box::new(Chunk::new(self.first))),
            line as usize % LINES,
        )
    }
}

impl Chunk {
    fn new(mark: Mark) -> Self {
        Self {
            lines: std::array::from_fn(|_| AtomicU64::new(mark.to_bits())),
            words: OnceLock::new(),
            splitting: Mutex::new(Rank::RaceMarks, ()),
        }
    }

    /// Returns the marks of a line's words.
    fn words(&self, index: usize) -> &[AtomicU64; WORDS] {
        let words = self.words.get_or_init(|| {
            std::iter::repeat_with(|| std::array::from_fn(|_| AtomicU64::new(0)))
                .take(LINES)
                .collect()
        });
        &words[index]
    }

    /// Copies a line's mark to its words, if the mark is still `bits`.
    fn split(&self, index: usize, bits: u64) {
        let words = self.words(index);
        let _turn = self.splitting.lock();
        if self.lines[index].load(Ordering::SeqCst) == bits {
            words
                .iter()
                .for_each(|word| word.store(bits, Ordering::Relaxed));
            // If the line has changed in the meantime, the caller retries.
            _ = self.lines[index].compare_exchange(
                bits,
                SPLIT,
                Ordering::SeqCst,
                Ordering::Relaxed,
            );
        }
    }

    /// Copies the mark of a line's words to the line, if it is the same for all.
    fn merge(&self, index: usize) {
        let words = self.words(index);
        let _turn = self.splitting.lock();
        let bits = words[0].load(Ordering::SeqCst);
        let line = &self.lines[index];
        if have_mark(words, bits)
            && line
                .compare_exchange(SPLIT, bits, Ordering::SeqCst, Ordering::Relaxed)
                .is_ok()
            && !have_mark(words, bits)
        {
            // A word has changed in the meantime. If the line has changed too, the thread that
            // changed the word retries.
            _ = line.compare_exchange(bits, SPLIT, Ordering::SeqCst, Ordering::Relaxed);
        }
    }
}

/// Returns `true` if all words have the same mark.
fn have_mark(words: &[AtomicU64; WORDS], bits: u64) -> bool {
    words.iter().all(|word| word.load(Ordering::SeqCst) == bits)
}

/// Updates the mark of a word.
fn update_word<T>(
    word: &AtomicU64,
    mask: u8,
    next: &mut impl FnMut(Mark, u8) -> (Mark, Option<T>),
) -> Option<T> {
    loop {
        let bits = word.load(Ordering::Acquire);
        let (mark, result) = next(Mark::from_bits(bits), mask);
        if change(word, bits, mark) {
            return result;
        }
    }
}

/// Replaces a mark. Returns `false` if it has changed in the meantime.
#[inline]
fn change(word: &AtomicU64, bits: u64, mark: Mark) -> bool {
    let new = mark.to_bits();
    new == bits
        || word
            .compare_exchange(bits, new, Ordering::SeqCst, Ordering::Relaxed)
            .is_ok()
}

/// Returns the words of a range, each with the mask of its bytes.
fn word_masks(range: &Range<u64>) -> impl Iterator<Item = (u64, u8)> {
    let Range { start, end } = *range;
    (start / WORD..end.div_ceil(WORD)).map(move |word| {
        let first = word * WORD;
        (
            word,
            bytes(start.max(first) - first, end.min(first + WORD) - first),
        )
    })
}

/// Returns the mask of the bytes of a word from `begin` to `end`.
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
            (Mark::written_by(party), None::<()>)
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
        assert_eq!(
            paint(&marks, 960..1000, 8),
            [1, 7],
            "the last line ends with the allocation"
        );
        assert_eq!(paint(&marks, 960..2000, 9), [8]);
    }

    #[test]
    fn first_mark_is_the_makers() {
        let marks = Marks::new(200_000, 5);
        assert_eq!(paint(&marks, 100_000..100_004, 6), [5]);
        assert_eq!(paint(&marks, 99_968..100_032, 7), [5, 6]);
    }

    #[test]
    fn update_returns_the_first_result() {
        let marks = Marks::new(256, 0);
        paint(&marks, 70..71, 1);
        // Bytes before the range do not count.
        for (range, expected) in [(0..256, Some(68)), (69..100, Some(69)), (72..256, None)] {
            let first = marks.update(range, |mark, _| {
                (mark, (mark.writer().number == 1).then_some(()))
            });
            assert_eq!(first.map(|(byte, ())| byte), expected);
        }
    }

    #[test]
    fn masks_select_accessed_bytes() {
        let marks = Marks::new(64, 0);
        let mut masks = Vec::new();
        marks.update(3..9, |mark, bytes| {
            masks.push(bytes);
            (mark, None::<()>)
        });
        assert_eq!(masks, [0b1000, 0b1111, 0b0001]);
    }
}
