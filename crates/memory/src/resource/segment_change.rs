//! Segment changes of a resource, for diagnostics.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::cache::Segment;

/// The addition or removal of a segment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct SegmentChange {
    /// The sequence number: the number of earlier changes.
    pub number: u64,
    /// The kind of change.
    pub kind: SegmentChangeKind,
    /// The address of the segment.
    pub address: u64,
    /// The size in bytes.
    pub bytes: u64,
}

/// The kind of a segment change.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum SegmentChangeKind {
    /// The resource allocated a segment upstream.
    Allocate,
    /// The resource released a segment upstream.
    Free,
    /// Physical memory is in use at these addresses from now on.
    Map,
    /// Physical memory is no longer in use at these addresses. If its mapping remains, the resource
    /// can use it there again without a driver call.
    Unmap,
}

/// The most recent changes of a resource.
#[derive(Debug, Default)]
pub(super) struct SegmentChanges {
    /// The total number of changes.
    count: AtomicU64,
    last: Mutex<VecDeque<SegmentChange>>,
}

/// The maximum number of changes that are kept.
const KEPT: usize = 1 << 16;

impl SegmentChange {
    /// Creates a change, for a resource that implements
    /// [`Resource::segment_changes`](super::Resource::segment_changes).
    #[must_use]
    pub const fn new(number: u64, kind: SegmentChangeKind, address: u64, bytes: u64) -> Self {
        Self {
            number,
            kind,
            address,
            bytes,
        }
    }
}

impl SegmentChanges {
    /// Records that a segment was added or removed.
    pub(super) fn record(&self, kind: SegmentChangeKind, segment: Segment) {
        let mut last = self.last.lock();
        if last.len() == KEPT {
            last.pop_front();
        }
        let number = self.count.load(Ordering::Relaxed);
        last.push_back(SegmentChange::new(
            number,
            kind,
            segment.start,
            segment.length,
        ));
        self.count.store(number + 1, Ordering::Release);
    }

    /// Records that a segment moved to other addresses.
    pub(super) fn record_move(&self, from: Segment, to: Segment) {
        self.record(SegmentChangeKind::Unmap, from);
        self.record(SegmentChangeKind::Map, to);
    }

    /// Returns the changes from this number on.
    pub(super) fn since(&self, number: u64) -> Vec<SegmentChange> {
        if self.count.load(Ordering::Acquire) <= number {
            return Vec::new();
        }
        self.last
            .lock()
            .iter()
            .filter(|change| change.number >= number)
            .copied()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_returned_from_a_number_on() {
        let changes = SegmentChanges::default();
        let [first, second] = [1, 2].map(|start| Segment {
            start: start << 21,
            length: 1 << 21,
        });
        changes.record(SegmentChangeKind::Map, first);
        changes.record(SegmentChangeKind::Map, second);
        changes.record(SegmentChangeKind::Unmap, first);
        let returned: Vec<_> = changes
            .since(1)
            .iter()
            .map(|change| (change.number, change.kind, change.address))
            .collect();
        assert_eq!(
            returned,
            [
                (1, SegmentChangeKind::Map, second.start),
                (2, SegmentChangeKind::Unmap, first.start)
            ]
        );
        assert_eq!(changes.since(3), []);
    }
}
