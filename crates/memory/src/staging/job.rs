//! The parts of a slice that the lanes of one copy share.

use std::mem::MaybeUninit;

use parking_lot::Mutex;

/// The part of a slice that is still to be copied. Each lane takes the next part when it is free.
///
/// - The first parts are short: the device starts to copy as soon as the first of them is staged.
/// - Each round of all lanes doubles the length: a copy of the device costs some microseconds, however short it is.
/// - The last parts are shorter again, so that the lanes end at the same time.
pub(super) struct Job<S> {
    /// None once a lane has failed: the copy has, too.
    rest: Mutex<Option<Rest<S>>>,
    lanes: usize,
    /// The lengths of the shortest and the longest part in bytes.
    shortest: usize,
    longest: usize,
}

struct Rest<S> {
    slice: S,
    /// Where it begins in the whole slice.
    offset: usize,
    /// How many parts were taken.
    taken: usize,
}

/// A slice that parts are split off.
pub(super) trait Split {
    /// Its length in bytes.
    fn bytes(&self) -> usize;

    /// Splits the first `bytes` bytes off, of which there are as many.
    fn split_first(&mut self, bytes: usize) -> Self;
}

/// Parts begin at multiples of this many bytes.
const PAGE: usize = 4096;

impl<S: Split> Job<S> {
    /// All of `slice`, to be copied by `lanes` lanes in parts of `shortest` to `longest` bytes.
    #[inline]
    pub(super) fn new(slice: S, lanes: usize, shortest: usize, longest: usize) -> Self {
        let rest = Mutex::new(Some(Rest { slice, offset: 0, taken: 0 }));
        Self { rest, lanes: lanes.max(1), shortest: shortest.clamp(1, longest.max(1)), longest: longest.max(1) }
    }

    /// The next part and its offset.
    #[inline]
    pub(super) fn next(&self) -> Option<(usize, S)> {
        let mut rest = self.rest.lock();
        let Rest { slice, offset, taken } = rest.as_mut()?;
        let left = slice.bytes();
        if left == 0 {
            return None;
        }
        let length = self.length(left, *taken);
        let start = *offset;
        (*offset, *taken) = (start + length, *taken + 1);
        Some((start, slice.split_first(length)))
    }

    /// Gives out no more parts.
    #[inline]
    pub(super) fn stop(&self) {
        *self.rest.lock() = None;
    }

    /// The length of the next part if `left` bytes are left and this many parts were taken.
    #[inline]
    fn length(&self, left: usize, taken: usize) -> usize {
        let round = u32::try_from(taken / self.lanes).unwrap_or(u32::MAX);
        let doubled = 1_usize.checked_shl(round).map_or(usize::MAX, |factor| self.shortest.saturating_mul(factor));
        let share = left.div_ceil(self.lanes).next_multiple_of(PAGE);
        doubled.min(share).clamp(self.shortest, self.longest).min(left)
    }
}

impl Split for &[u8] {
    #[inline]
    fn bytes(&self) -> usize {
        self.len()
    }

    #[inline]
    fn split_first(&mut self, bytes: usize) -> Self {
        self.split_off(..bytes).unwrap_or_default()
    }
}

impl Split for &mut [MaybeUninit<u8>] {
    #[inline]
    fn bytes(&self) -> usize {
        self.len()
    }

    #[inline]
    fn split_first(&mut self, bytes: usize) -> Self {
        self.split_off_mut(..bytes).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(bytes: usize, lanes: usize, shortest: usize, longest: usize) -> Vec<(usize, usize)> {
        let slice = vec![0_u8; bytes];
        let job = Job::new(&slice[..], lanes, shortest, longest);
        std::iter::from_fn(|| job.next()).map(|(offset, part)| (offset, part.len())).collect()
    }

    #[test]
    fn parts_come_once_each_with_their_offset() {
        for (bytes, lanes, shortest, longest) in
            [(1, 1, 1, 1), (5, 2, 2, 2), (100_000, 3, 4096, 16384), (65_536, 8, 4096, 4096), (70_001, 4, 4096, 1 << 20)]
        {
            let mut end = 0;
            for (offset, length) in parts(bytes, lanes, shortest, longest) {
                assert_eq!(offset, end);
                assert!((1..=longest).contains(&length), "{length} of {bytes}");
                end += length;
            }
            assert_eq!(end, bytes);
        }
    }

    #[test]
    fn parts_grow_from_round_to_round_and_shrink_towards_the_end() {
        let lengths: Vec<_> = parts(64 * PAGE, 2, PAGE, 8 * PAGE).iter().map(|(_, length)| length / PAGE).collect();
        assert_eq!(lengths, [1, 1, 2, 2, 4, 4, 8, 8, 8, 8, 8, 5, 3, 1, 1]);
    }

    #[test]
    fn stopped_job_gives_no_more_parts() {
        let job = Job::new(&[1_u8, 2, 3][..], 1, 1, 1);
        assert!(job.next().is_some());
        job.stop();
        assert!(job.next().is_none());
    }
}
