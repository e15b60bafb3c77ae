//! Initialized bytes of the local memory of a warp's threads.

use crate::exec::values::lane::{LANES, Lanes};

/// Masks of the initialized bytes, one for each word of eight bytes and each lane.
#[derive(Debug, Default)]
pub(crate) struct LocalWritten {
    words: Vec<[u8; LANES]>,
}

/// The number of bytes of a word.
const WORD: u64 = 8;

impl LocalWritten {
    /// Resets to `words` words, all uninitialized.
    pub(crate) fn restart(&mut self, words: usize) {
        self.words.clear();
        self.words.resize(words, [0; LANES]);
    }

    /// Marks the memory of a new activation as uninitialized in some lanes.
    pub(crate) fn enter(&mut self, offset: u64, size: u64, lanes: u32) {
        let first = (offset / WORD) as usize;
        let end = ((offset + size) / WORD) as usize;
        if self.words.len() < end {
            self.words.resize(end, [0; LANES]);
        }
        for word in &mut self.words[first..end] {
            for lane in Lanes(lanes) {
                word[lane] = 0;
            }
        }
    }

    /// Marks bytes as written in some lanes.
    pub(crate) fn add(&mut self, offset: u64, bytes: u64, lanes: u32) {
        for (word, mask) in words(offset, bytes) {
            if let Some(word) = self.words.get_mut(word) {
                for lane in Lanes(lanes) {
                    word[lane] |= mask;
                }
            }
        }
    }

    /// Marks bytes as uninitialized in some lanes.
    pub(crate) fn remove(&mut self, offset: u64, bytes: u64, lanes: u32) {
        for (word, mask) in words(offset, bytes) {
            if let Some(word) = self.words.get_mut(word) {
                for lane in Lanes(lanes) {
                    word[lane] &= !mask;
                }
            }
        }
    }

    /// Copies the state of whole words, whose contents were copied too.
    pub(crate) fn copy(&mut self, source: u64, target: u64, bytes: u64, lanes: u32) {
        for word in 0..bytes.div_ceil(WORD) {
            let from = self
                .words
                .get((source / WORD + word) as usize)
                .copied()
                .unwrap_or([0; LANES]);
            if let Some(word) = self.words.get_mut((target / WORD + word) as usize) {
                for lane in Lanes(lanes) {
                    word[lane] = from[lane];
                }
            }
        }
    }

    /// Returns the lanes in which some of these bytes are uninitialized. Bytes past the end are
    /// ignored.
    pub(crate) fn uninitialized(&self, offset: u64, bytes: u64, lanes: u32) -> u32 {
        let mut uninitialized = 0;
        for (word, mask) in words(offset, bytes) {
            let Some(word) = self.words.get(word) else {
                break;
            };
            for (lane, bits) in word.iter().enumerate() {
                uninitialized |= u32::from(bits & mask != mask) << lane;
            }
        }
        uninitialized & lanes
    }
}

/// Returns the index of each word that overlaps `bytes` bytes at `offset`, with the mask of the
/// overlapping bytes.
fn words(offset: u64, bytes: u64) -> impl Iterator<Item = (usize, u8)> {
    let end = offset.saturating_add(bytes);
    (offset / WORD..end.div_ceil(WORD)).map(move |word| {
        let first = word * WORD;
        let begin = offset.max(first) - first;
        let stop = end.min(first.saturating_add(WORD)) - first;
        (word as usize, u8::MAX << begin & u8::MAX >> (WORD - stop))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_uninitialized_until_their_lane_writes() {
        let mut local = LocalWritten::default();
        local.restart(2);
        local.add(4, 8, 0b110);
        assert_eq!(local.uninitialized(4, 8, 0b1111), 0b1001);
        assert_eq!(local.uninitialized(3, 2, 0b110), 0b110);
        assert_eq!(local.uninitialized(16, 8, u32::MAX), 0, "past the end");
        local.enter(8, 16, 0b100);
        assert_eq!(local.uninitialized(4, 8, 0b110), 0b100);
        assert_eq!(local.uninitialized(4, 4, 0b110), 0);
        assert_eq!(local.uninitialized(16, 1, 0b11), 0b11);
    }
}
