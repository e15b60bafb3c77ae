//! What the lanes of one copy share: the parts that are still to be copied.

use std::iter::Enumerate;

use curium_driver::lock::Mutex;

/// Parts of a slice, each given out once, with their offsets in bytes.
pub(super) struct Job<I> {
    /// None once a lane has failed: the copy has, too.
    parts: Mutex<Option<Enumerate<I>>>,
    chunk: usize,
}

impl<I: Iterator> Job<I> {
    /// The parts of a slice, of `chunk` bytes each but for the last.
    #[inline]
    pub(super) fn new(parts: I, chunk: usize) -> Self {
        Self { parts: Mutex::new(Some(parts.enumerate())), chunk }
    }

    /// The next part and its offset.
    #[inline]
    pub(super) fn next(&self) -> Option<(usize, I::Item)> {
        let (index, part) = self.parts.lock().as_mut()?.next()?;
        Some((index * self.chunk, part))
    }

    /// Gives out no more parts.
    #[inline]
    pub(super) fn stop(&self) {
        *self.parts.lock() = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_once_each_with_their_offset() {
        let job = Job::new([1, 2, 3, 4, 5].chunks(2), 2);
        let parts: Vec<_> = std::iter::from_fn(|| job.next()).collect();
        assert_eq!(parts, [(0, &[1, 2][..]), (2, &[3, 4]), (4, &[5])]);
    }

    #[test]
    fn stopped_job_gives_no_more_parts() {
        let job = Job::new([1, 2, 3].chunks(1), 1);
        assert!(job.next().is_some());
        job.stop();
        assert!(job.next().is_none());
    }
}
