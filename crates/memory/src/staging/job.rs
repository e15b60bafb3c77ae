//! The parts of a slice, which the lanes of one copy share.

use std::mem::MaybeUninit;

use parking_lot::Mutex;

/// The remainder of a slice that is being copied. Each lane takes the next part when it is ready.
///
/// - The first parts are short, so that the device starts early.
/// - Each round of all lanes doubles the length, since each device copy has a fixed cost of a few microseconds.
/// - The last parts are shorter again, so that the lanes finish at the same time.
pub(super) struct Job<S> {
    /// `None` once a lane has failed, which fails the copy.
    rest: Mutex<Option<Rest<S>>>,
    lanes: usize,
    lengths: Lengths,
}

/// The lengths of the parts in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lengths {
    /// The length of the first part of each lane.
    pub(super) first: usize,
    /// The minimum length of a part, except for the very last one.
    pub(super) shortest: usize,
    /// The maximum length of a part.
    pub(super) longest: usize,
}

struct Rest<S> {
    slice: S,
    /// The offset in the whole slice.
    offset: usize,
    /// The number of parts taken so far.
    taken: usize,
}

/// A slice that can be split.
pub(super) trait Split {
    /// Returns the length in bytes.
    fn bytes(&self) -> usize;

    /// Splits off the first `bytes` bytes. The slice must be at least as long.
    fn split_first(&mut self, bytes: usize) -> Self;
}

/// Parts start at multiples of this number of bytes.
const PAGE: usize = 4096;

impl<S: Split> Job<S> {
    /// Creates a job for all of `slice`, to be copied by `lanes` lanes.
    #[inline]
    pub(super) fn new(slice: S, lanes: usize, lengths: Lengths) -> Self {
        let rest = Mutex::new(Some(Rest { slice, offset: 0, taken: 0 }));
        let longest = lengths.longest.max(1);
        let [first, shortest] = [lengths.first, lengths.shortest].map(|length| length.clamp(1, longest));
        Self { rest, lanes: lanes.max(1), lengths: Lengths { first, shortest, longest } }
    }

    /// Returns the next part and its offset.
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

    /// Stops the distribution of parts.
    #[inline]
    pub(super) fn stop(&self) {
        *self.rest.lock() = None;
    }

    /// Returns the length of the next part, for `left` remaining bytes and this number of parts taken.
    #[inline]
    fn length(&self, left: usize, taken: usize) -> usize {
        let round = u32::try_from(taken / self.lanes).unwrap_or(u32::MAX);
        let Lengths { first, shortest, longest } = self.lengths;
        let doubled = 1_usize.checked_shl(round).map_or(usize::MAX, |factor| first.saturating_mul(factor));
        let share = left.div_ceil(self.lanes).next_multiple_of(PAGE);
        doubled.min(share).clamp(shortest, longest).min(left)
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

    fn parts(bytes: usize, lanes: usize, [first, shortest, longest]: [usize; 3]) -> Vec<(usize, usize)> {
        let slice = vec![0_u8; bytes];
        let job = Job::new(&slice[..], lanes, Lengths { first, shortest, longest });
        std::iter::from_fn(|| job.next()).map(|(offset, part)| (offset, part.len())).collect()
    }

    #[test]
    fn parts_come_once_each_with_their_offset() {
        for (bytes, lanes, lengths) in [
            (1, 1, [1, 1, 1]),
            (5, 2, [2, 2, 2]),
            (100_000, 3, [4096, 4096, 16384]),
            (65_536, 8, [4096, 4096, 4096]),
            (70_001, 4, [8192, 4096, 1 << 20]),
        ] {
            let mut end = 0;
            for (offset, length) in parts(bytes, lanes, lengths) {
                assert_eq!(offset, end);
                assert!((1..=lengths[2]).contains(&length), "{length} of {bytes}");
                end += length;
            }
            assert_eq!(end, bytes);
        }
    }

    #[test]
    fn parts_grow_from_round_to_round_and_shrink_towards_the_end() {
        let lengths: Vec<_> =
            parts(64 * PAGE, 2, [PAGE, PAGE, 8 * PAGE]).iter().map(|(_, length)| length / PAGE).collect();
        assert_eq!(lengths, [1, 1, 2, 2, 4, 4, 8, 8, 8, 8, 8, 5, 3, 1, 1]);
    }

    #[test]
    fn stopped_job_gives_no_more_parts() {
        let job = Job::new(&[1_u8, 2, 3][..], 1, Lengths { first: 1, shortest: 1, longest: 1 });
        assert!(job.next().is_some());
        job.stop();
        assert!(job.next().is_none());
    }
}
