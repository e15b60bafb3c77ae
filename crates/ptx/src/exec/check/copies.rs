//! The asynchronous copies of a warp: queued by `cp.async`, and performed when a thread waits for
//! them.
//!
//! Hardware may perform a copy at any time before the wait. Performing it as late as possible
//! reveals a missing wait.

use std::collections::VecDeque;

use crate::exec::values::lane::LANES;

/// The maximum number of queued copies. When it is exceeded, the oldest are performed.
const LIMIT: usize = 4096;

/// The pending copies.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    queued: VecDeque<Copy>,
    /// The number of each lane's open group, to which its next copy belongs.
    open: [u32; LANES],
}

/// A copy of one thread from device memory to shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Copy {
    pub(crate) lane: usize,
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// The number of bytes written: 4, 8 or 16.
    pub(crate) size: u32,
    /// The number of bytes read; the rest is filled with zeros.
    pub(crate) valid: u32,
    group: u32,
}

impl Copy {
    /// Creates a copy outside any group.
    pub(crate) fn new(lane: usize, from: u64, to: u64, size: u32, valid: u32) -> Self {
        Self {
            lane,
            from,
            to,
            size,
            valid,
            group: 0,
        }
    }
}

impl Copies {
    /// Discards all copies.
    pub(crate) fn clear(&mut self) {
        self.queued.clear();
        self.open = [0; LANES];
    }

    /// Queues a copy. Returns the oldest copy if the queue is full.
    pub(crate) fn push(&mut self, copy: Copy) -> Option<Copy> {
        self.queued.push_back(Copy {
            group: self.open[copy.lane],
            ..copy
        });
        if self.queued.len() > LIMIT {
            self.queued.pop_front()
        } else {
            None
        }
    }

    /// Returns `true` if a pending copy writes some of these bytes of shared memory.
    pub(crate) fn write_to(&self, address: u64, size: u32) -> bool {
        self.queued.iter().any(|copy| {
            copy.to < address + u64::from(size) && address < copy.to + u64::from(copy.size)
        })
    }

    /// Closes the open groups of these lanes.
    pub(crate) fn commit(&mut self, lanes: u32) {
        for (lane, open) in self.open.iter_mut().enumerate() {
            *open += lanes >> lane & 1;
        }
    }

    /// Removes and returns the copies of these lanes that must complete so that at most `groups`
    /// closed groups are pending.
    pub(crate) fn due(&mut self, lanes: u32, groups: u32) -> Vec<Copy> {
        let open = self.open;
        self.take(|copy| {
            lanes >> copy.lane & 1 == 1
                && u64::from(copy.group) + u64::from(groups) < u64::from(open[copy.lane])
        })
    }

    /// Removes and returns all copies of these lanes.
    pub(crate) fn all(&mut self, lanes: u32) -> Vec<Copy> {
        self.take(|copy| lanes >> copy.lane & 1 == 1)
    }

    fn take(&mut self, is_due: impl Fn(&Copy) -> bool) -> Vec<Copy> {
        let mut due = Vec::new();
        self.queued.retain(|copy| {
            let takes = is_due(copy);
            if takes {
                due.push(*copy);
            }
            !takes
        });
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(lane: usize, from: u64) -> Copy {
        Copy::new(lane, from, 0, 4, 4)
    }

    #[test]
    fn groups_are_due_oldest_first_and_lane_by_lane() {
        let mut copies = Copies::default();
        copies.push(copy(0, 1));
        copies.push(copy(1, 2));
        copies.commit(0b11);
        copies.push(copy(0, 3));
        copies.commit(0b01);
        for (lanes, groups, expected) in [(0b01, 1, &[1][..]), (0b10, 1, &[]), (0b11, 0, &[2, 3])] {
            let due = copies.due(lanes, groups);
            let sources: Vec<u64> = due.iter().map(|copy| copy.from).collect();
            assert_eq!(sources, expected);
        }
    }

    #[test]
    fn copies_in_open_groups_are_due_only_with_all() {
        let mut copies = Copies::default();
        copies.push(copy(5, 1));
        assert!(copies.due(u32::MAX, 0).is_empty());
        assert_eq!(copies.all(1 << 5).len(), 1);
    }

    #[test]
    fn a_full_queue_returns_its_oldest_copy() {
        let mut copies = Copies::default();
        for from in 0..LIMIT as u64 {
            assert_eq!(copies.push(copy(0, from)), None);
        }
        assert_eq!(copies.push(copy(0, 1 << 20)).map(|copy| copy.from), Some(0));
    }
}
