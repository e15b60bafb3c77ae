//! Changes of segments.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::segments::Segment;
use crate::diagnostics::EventKind;

/// A segment that a resource took from upstream or released to it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct SegmentChange {
    /// The number of earlier changes.
    pub number: u64,
    /// The change, which [concerns a segment](EventKind::is_segment_event).
    pub kind: EventKind,
    /// The address of the segment.
    pub address: u64,
    /// The size of the segment in bytes.
    pub bytes: u64,
}

/// The most recent changes of a resource.
#[derive(Debug, Default)]
pub(super) struct SegmentChanges {
    /// The number of all changes.
    count: AtomicU64,
    last: Mutex<VecDeque<SegmentChange>>,
}

/// The number of changes to keep.
const KEPT: usize = 1 << 16;

impl SegmentChange {
    /// Creates a change, for resources that implement [`Resource::segment_changes`](super::Resource::segment_changes).
    #[must_use]
    pub const fn new(number: u64, kind: EventKind, address: u64, bytes: u64) -> Self {
        Self { number, kind, address, bytes }
    }
}

impl SegmentChanges {
    /// Records the difference between the segments `before` and `after`, both sorted by address. `kinds` are the event kinds of a new and
    /// of a removed segment.
    pub(super) fn note(&self, before: &[Segment], after: &[Segment], kinds: [EventKind; 2]) {
        let mut last = self.last.lock();
        let gone = before.iter().filter(|segment| !after.contains(segment)).map(|segment| (kinds[1], segment));
        let new = after.iter().filter(|segment| !before.contains(segment)).map(|segment| (kinds[0], segment));
        for (kind, segment) in gone.chain(new) {
            if last.len() == KEPT {
                last.pop_front();
            }
            let number = self.count.load(Ordering::Relaxed);
            last.push_back(SegmentChange::new(number, kind, segment.start, segment.length));
            self.count.store(number + 1, Ordering::Release);
        }
    }

    /// Returns the changes from this number on.
    pub(super) fn since(&self, number: u64) -> Vec<SegmentChange> {
        if self.count.load(Ordering::Acquire) <= number {
            return Vec::new();
        }
        self.last.lock().iter().filter(|change| change.number >= number).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_and_went_is_told_from_a_number_on() {
        let changes = SegmentChanges::default();
        let [first, second] = [1, 2].map(|start| Segment { start: start << 21, length: 1 << 21 });
        let kinds = [EventKind::MapSegment, EventKind::UnmapSegment];
        changes.note(&[], &[first, second], kinds);
        changes.note(&[first, second], &[second], kinds);
        let told: Vec<_> = changes.since(1).iter().map(|change| (change.number, change.kind, change.address)).collect();
        assert_eq!(told, [(1, kinds[0], second.start), (2, kinds[1], first.start)]);
        assert_eq!(changes.since(3), []);
    }
}
