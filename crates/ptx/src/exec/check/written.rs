//! Records of the written bytes of memory.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// A bit for each byte of some memory: set if the byte was written since the memory was allocated.
///
/// Bits are allocated with the first write near them, so large and mostly unused memory costs
/// little.
#[derive(Debug)]
pub struct Written {
    chunks: Box<[OnceLock<Box<Chunk>>]>,
    size: u64,
    /// The number of uninitialized bytes. Concurrent writes may not be counted yet.
    uninitialized: AtomicU64,
}

/// The bits of [`CHUNK`] bytes.
type Chunk = [AtomicU64; WORDS];

/// The number of bytes that one word of bits describes.
const WORD: u64 = 64;
/// The number of words in a chunk.
const WORDS: usize = 1024;
/// The number of bytes that a chunk describes.
const CHUNK: u64 = WORD * WORDS as u64;

impl Written {
    /// Creates the record of `size` uninitialized bytes.
    #[must_use]
    pub fn new(size: u64) -> Self {
        let chunks = std::iter::repeat_with(OnceLock::new).take(size.div_ceil(CHUNK) as usize);
        Self {
            chunks: chunks.collect(),
            size,
            uninitialized: AtomicU64::new(size),
        }
    }

    /// Returns `true` if all bytes were written.
    #[inline]
    #[must_use]
    pub(crate) fn is_whole(&self) -> bool {
        self.uninitialized.load(Ordering::Relaxed) == 0
    }

    /// Marks bytes as written. Bytes past the end are ignored.
    #[inline]
    pub fn add(&self, offset: u64, bytes: u64) {
        let words = words(offset, self.end(offset, bytes));
        let new: u64 = words
            .map(|(word, mask)| u64::from(self.set(word, mask)))
            .sum();
        if new != 0 {
            self.uninitialized.fetch_sub(new, Ordering::Relaxed);
        }
    }

    /// Marks bytes as uninitialized.
    pub fn remove(&self, offset: u64, bytes: u64) {
        let words = words(offset, self.end(offset, bytes));
        let old: u64 = words
            .map(|(word, mask)| u64::from(self.clear(word, mask)))
            .sum();
        self.uninitialized.fetch_add(old, Ordering::Relaxed);
    }

    /// Returns `true` if all of these bytes were written. Bytes past the end are ignored.
    #[inline]
    #[must_use]
    pub fn covers(&self, offset: u64, bytes: u64) -> bool {
        self.is_whole()
            || words(offset, self.end(offset, bytes))
                .all(|(word, mask)| self.bits(word) & mask == mask)
    }

    /// Returns the unwritten bytes around the first unwritten one of some bytes, or `None` if all
    /// of them were written.
    pub(crate) fn gap(&self, bytes: Range<u64>) -> Option<Range<u64>> {
        let end = bytes.end.min(self.size);
        let byte = (bytes.start..end).find(|byte| !self.covers(*byte, 1))?;
        let first = byte / WORD;
        let below = self.bits(first as usize) & ((1 << (byte % WORD)) - 1);
        let above = self.bits(first as usize) & u64::MAX << (byte % WORD);
        Some(self.gap_start(first as usize, below)..self.gap_end(first as usize, above))
    }

    /// Returns the start of the unwritten bytes that end in a word, whose lower bits are `bits`.
    fn gap_start(&self, mut word: usize, mut bits: u64) -> u64 {
        while bits == 0 {
            if self.chunks[word / WORDS].get().is_none() {
                word -= word % WORDS;
            }
            if word == 0 {
                return 0;
            }
            word -= 1;
            bits = self.bits(word);
        }
        word as u64 * WORD + u64::from(u64::BITS - bits.leading_zeros())
    }

    /// Returns the end of the unwritten bytes that begin in a word, whose upper bits are `bits`.
    fn gap_end(&self, mut word: usize, mut bits: u64) -> u64 {
        while bits == 0 {
            word += 1;
            if word as u64 * WORD >= self.size {
                return self.size;
            }
            if self.chunks[word / WORDS].get().is_none() {
                word += WORDS - 1 - word % WORDS;
            } else {
                bits = self.bits(word);
            }
        }
        word as u64 * WORD + u64::from(bits.trailing_zeros())
    }

    /// Copies the state of `bytes` bytes at `from_offset` of `from` to `offset`, as their contents
    /// were copied.
    pub fn copy(&self, offset: u64, from: &Self, from_offset: u64, bytes: u64) {
        if from.covers(from_offset, bytes) {
            return self.add(offset, bytes);
        }
        // The source is read completely before anything is changed: memory may be copied onto
        // itself.
        let copied: Vec<_> = words(offset, self.end(offset, bytes))
            .map(|(word, mask)| {
                let target = word as u64 * WORD;
                let source = target.wrapping_sub(offset).wrapping_add(from_offset);
                (word, mask, from.window(source))
            })
            .collect();
        for (word, mask, bits) in copied {
            self.uninitialized
                .fetch_sub(self.set(word, mask & bits).into(), Ordering::Relaxed);
            self.uninitialized
                .fetch_add(self.clear(word, mask & !bits).into(), Ordering::Relaxed);
        }
    }

    /// Returns the bits of the 64 bytes from `offset` on, which may be negative. Bits outside are
    /// zero.
    fn window(&self, offset: u64) -> u64 {
        let word = offset.cast_signed().div_euclid(WORD as i64);
        let shift = offset % WORD;
        let [low, high] =
            [word, word + 1].map(|word| usize::try_from(word).map_or(0, |word| self.bits(word)));
        if shift == 0 {
            low
        } else {
            low >> shift | high << (WORD - shift)
        }
    }

    /// Returns the bits of 64 bytes. Bits outside are zero.
    #[inline]
    fn bits(&self, word: usize) -> u64 {
        let chunk = self.chunks.get(word / WORDS).and_then(OnceLock::get);
        chunk.map_or(0, |chunk| chunk[word % WORDS].load(Ordering::Relaxed))
    }

    /// Sets bits, and returns the number of bits that were not set.
    #[inline]
    fn set(&self, word: usize, mask: u64) -> u32 {
        let chunk = self.chunks[word / WORDS]
            .get_or_init(|| Box::new(std::array::from_fn(|_| AtomicU64::new(0))));
        let bits = &chunk[word % WORDS];
        if bits.load(Ordering::Relaxed) & mask == mask {
            return 0;
        }
        (mask & !bits.fetch_or(mask, Ordering::Relaxed)).count_ones()
    }

    /// Clears bits, and returns the number of bits that were set.
    fn clear(&self, word: usize, mask: u64) -> u32 {
        let Some(chunk) = self.chunks[word / WORDS].get() else {
            return 0;
        };
        let bits = &chunk[word % WORDS];
        (mask & bits.fetch_and(!mask, Ordering::Relaxed)).count_ones()
    }

    #[inline]
    fn end(&self, offset: u64, bytes: u64) -> u64 {
        offset.saturating_add(bytes).min(self.size)
    }
}

/// Returns the words of bits of the bytes `offset..end`, each with the mask of these bytes.
#[inline]
fn words(offset: u64, end: u64) -> impl Iterator<Item = (usize, u64)> {
    let last = if offset < end { end.div_ceil(WORD) } else { 0 };
    (offset / WORD..last).map(move |word| {
        let first = word * WORD;
        let begin = offset.max(first) - first;
        let stop = end.min(first + WORD) - first;
        (word as usize, u64::MAX << begin & u64::MAX >> (WORD - stop))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_were_added_are_covered_and_no_others() {
        for (offset, bytes) in [
            (0, 1),
            (3, 4),
            (60, 8),
            (64, 64),
            (1, 200),
            (CHUNK - 1, 2),
            (0, 2 * CHUNK),
        ] {
            let written = Written::new(2 * CHUNK + 10);
            assert!(!written.covers(offset, bytes));
            written.add(offset, bytes);
            assert!(written.covers(offset, bytes));
            assert!(!written.covers(offset, bytes + 1));
            assert!(offset == 0 || !written.covers(offset - 1, 2));
            written.remove(offset + bytes / 2, 1);
            assert!(!written.covers(offset + bytes / 2, 1));
        }
    }

    #[test]
    fn memory_is_whole_if_every_byte_was_written() {
        let written = Written::new(CHUNK + 10);
        let other = Written::new(100);
        written.add(0, CHUNK);
        written.add(5, 70);
        assert!(!written.is_whole());
        written.add(CHUNK - 3, 99);
        assert!(written.is_whole());
        written.remove(77, 1);
        written.remove(77, 1);
        assert!(!written.is_whole() && !written.covers(77, 1));
        written.add(77, 1);
        assert!(written.is_whole());
        other.add(0, 40);
        written.copy(0, &other, 0, 100);
        assert!(!written.is_whole());
        other.add(40, 60);
        written.copy(0, &other, 0, 100);
        assert!(written.is_whole() && Written::new(0).is_whole());
    }

    #[test]
    fn gap_extends_to_the_written_bytes_around_it() {
        let size = 3 * CHUNK + 10;
        for (before, after) in [
            (0, size),
            (1, size),
            (70, 75),
            (64, 128),
            (5, 2 * CHUNK + 7),
            (CHUNK + 1, size - 1),
            (CHUNK - 64, CHUNK + 64),
        ] {
            let written = Written::new(size);
            written.add(0, before);
            written.add(after, size - after);
            for read in [
                before..before + 1,
                before.saturating_sub(3)..before + 1,
                after - 1..after + 8,
                (before + after) / 2..size + 5,
            ] {
                assert_eq!(written.gap(read), Some(before..after));
            }
            assert_eq!(written.gap(0..before), None);
            assert_eq!(written.gap(after..u64::MAX), None);
        }
    }

    #[test]
    fn bytes_past_the_end_do_not_count() {
        let written = Written::new(10);
        written.add(8, 100);
        assert!(
            written.covers(8, 2)
                && written.covers(8, u64::MAX)
                && written.covers(10, 1)
                && written.covers(99, 1)
        );
        assert!(!written.covers(7, 2));
        written.add(u64::MAX, 2);
    }

    #[test]
    fn copied_bytes_are_written_where_their_sources_are() {
        let from = Written::new(300);
        let to = Written::new(300);
        from.add(10, 100);
        to.add(0, 300);
        to.copy(50, &from, 5, 200);
        for byte in 0..300 {
            let expected = !(50..250).contains(&byte) || (55..155).contains(&byte);
            assert_eq!(to.covers(byte, 1), expected, "{byte}");
        }
        from.copy(20, &from, 10, 100);
        assert!(from.covers(10, 110) && !from.covers(120, 1));
        from.copy(0, &from, 5, 100);
        assert!(!from.covers(4, 1) && from.covers(5, 115) && !from.covers(120, 1));
    }
}
