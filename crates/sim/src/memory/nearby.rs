//! The allocation near an address that is not allocated, for reports.

use std::collections::VecDeque;

use super::{Allocation, Memory, Records};
use crate::origin;
use curium_ptx::exec::{Area, NearbyAllocation};

/// The number of recorded freed allocations.
const MAX_FREED_RECORDS: usize = 4096;
/// The maximum distance of a related allocation.
const MAX_DISTANCE: u64 = 1 << 36;

/// The allocations that were freed last, the latest at the end.
#[derive(Default)]
pub(super) struct Freed(VecDeque<NearbyAllocation>);

impl Freed {
    pub(super) fn record(&mut self, allocation: &Allocation) {
        if self.0.len() == MAX_FREED_RECORDS {
            self.0.pop_front();
        }
        self.0.push_back(NearbyAllocation {
            is_freed: true,
            freed_by: origin::description().into(),
            ..describe(allocation)
        });
    }
}

/// Returns the description of a live allocation.
fn describe(allocation: &Allocation) -> NearbyAllocation {
    NearbyAllocation {
        address: allocation.base,
        size: allocation.size,
        is_freed: false,
        freed_by: Box::default(),
        area: Area::Global,
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
        let before = self
            .allocations
            .range(..=address)
            .next_back()
            .map(|(_, allocation)| describe(allocation));
        let after = self
            .allocations
            .range(address..)
            .next()
            .map(|(_, allocation)| describe(allocation));
        let freed = self
            .freed
            .0
            .iter()
            .rev()
            .find(|allocation| allocation.distance(address) == 0)
            .cloned();
        let containing = before
            .clone()
            .filter(|allocation| allocation.distance(address) == 0);
        let nearest = [before, after]
            .into_iter()
            .flatten()
            .min_by_key(|allocation| allocation.distance(address));
        containing
            .or(freed)
            .or(nearest)
            .filter(|allocation| allocation.distance(address) < MAX_DISTANCE)
    }
}
