//! The allocation near an address that is not allocated, for reports.

use std::collections::VecDeque;

use super::{Allocation, Memory, Records};
use curium_ptx::exec::{Area, NearbyAllocation};

/// The number of recorded freed allocations.
const REMEMBERED: usize = 4096;
/// The maximum distance of a related allocation.
const FARTHEST: u64 = 1 << 36;

/// The allocations that were freed last, the latest at the end.
#[derive(Default)]
pub(super) struct Freed(VecDeque<NearbyAllocation>);

impl Freed {
    pub(super) fn note(&mut self, allocation: &Allocation) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(NearbyAllocation {
            address: allocation.base,
            size: allocation.size,
            is_freed: true,
            area: Area::Global,
        });
    }
}

impl Memory {
    /// Returns the freed allocation that contained `address`, or otherwise the nearest allocation.
    pub(crate) fn nearby(&self, address: u64) -> Option<NearbyAllocation> {
        self.read().nearby(address)
    }
}

impl Records {
    fn nearby(&self, address: u64) -> Option<NearbyAllocation> {
        let live = |allocation: &Allocation| NearbyAllocation {
            address: allocation.base,
            size: allocation.size,
            is_freed: false,
            area: Area::Global,
        };
        let before = self
            .allocations
            .range(..=address)
            .next_back()
            .map(|(_, allocation)| live(allocation));
        let after = self
            .allocations
            .range(address..)
            .next()
            .map(|(_, allocation)| live(allocation));
        let was_here = self
            .freed
            .0
            .iter()
            .rev()
            .copied()
            .find(|it| it.distance(address) == 0);
        let inside = before.filter(|it| it.distance(address) == 0);
        let near = [before, after]
            .into_iter()
            .flatten()
            .min_by_key(|it| it.distance(address));
        inside
            .or(was_here)
            .or(near)
            .filter(|it| it.distance(address) < FARTHEST)
    }
}
