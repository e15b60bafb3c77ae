//! The pending accesses to tensor memory, for the check of races.
//!
//! Products and copies complete when a thread observes the mbarrier object of a later
//! `tcgen05.commit`. Loads and stores complete at `tcgen05.wait`. Products and copies are ordered
//! among themselves. An access that overlaps a pending one of the other kind is a race if one of
//! both writes. A wait by any thread counts for all threads of the block, so correct programs are
//! never reported.

use std::ops::Range;

use crate::exec::machine::tensor_memory::Region;

/// The pending accesses.
#[derive(Debug, Default)]
pub(crate) struct AccessOrder {
    products: Vec<PendingProduct>,
    transfers: Vec<PendingTransfer>,
}

/// An access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TensorAccess {
    /// The thread, by its linear number in the block.
    pub(crate) thread: u16,
    pub(crate) region: Region,
    pub(crate) is_write: bool,
}

impl TensorAccess {
    fn conflicts(&self, other: &Self) -> bool {
        (self.is_write || other.is_write) && self.region.overlaps(&other.region)
    }
}

/// An access by a product or a copy.
#[derive(Debug)]
struct PendingProduct {
    access: TensorAccess,
    /// The mbarrier objects that complete after it.
    barriers: Vec<u64>,
}

/// An access by a load or a store.
#[derive(Debug)]
struct PendingTransfer {
    access: TensorAccess,
    warp: u32,
}

impl AccessOrder {
    /// Records an access by a product or a copy. Returns the access of a load or a store that it
    /// races with.
    pub(crate) fn record_product(&mut self, access: TensorAccess) -> Option<TensorAccess> {
        let race = self
            .transfers
            .iter()
            .map(|transfer| &transfer.access)
            .find(|pending| pending.conflicts(&access));
        let race = race.cloned();
        let is_known = self
            .products
            .iter()
            .any(|product| product.barriers.is_empty() && product.access == access);
        if !is_known {
            self.products.push(PendingProduct {
                access,
                barriers: Vec::new(),
            });
        }
        race
    }

    /// Records an access by a load or a store of a warp. Returns the access of a product or a copy
    /// that it races with.
    pub(crate) fn record_transfer(
        &mut self,
        warp: u32,
        access: TensorAccess,
    ) -> Option<TensorAccess> {
        let race = self
            .products
            .iter()
            .map(|product| &product.access)
            .find(|pending| pending.conflicts(&access));
        let race = race.cloned();
        let is_known = self
            .transfers
            .iter()
            .any(|transfer| transfer.access == access);
        if !is_known {
            self.transfers.push(PendingTransfer { access, warp });
        }
        race
    }

    /// Makes an mbarrier object of the block track the thread's accesses. Objects of other blocks
    /// order them in ways that are not recorded, so the accesses then count as complete.
    pub(crate) fn commit(&mut self, thread: u16, barrier: Option<u64>) {
        match barrier {
            Some(barrier) => {
                for product in &mut self.products {
                    if product.access.thread == thread {
                        product.barriers.push(barrier);
                    }
                }
            }
            None => self
                .products
                .retain(|product| product.access.thread != thread),
        }
    }

    /// Completes the accesses that an mbarrier object tracks.
    pub(crate) fn observe(&mut self, barrier: u64) {
        self.products
            .retain(|product| !product.barriers.contains(&barrier));
    }

    /// Completes the loads or the stores of a warp.
    pub(crate) fn wait(&mut self, warp: u32, are_stores: bool) {
        self.transfers
            .retain(|transfer| transfer.warp != warp || transfer.access.is_write != are_stores);
    }

    /// Discards the accesses to columns that are deallocated.
    pub(super) fn forget(&mut self, columns: Range<u32>) {
        self.products
            .retain(|product| !columns.contains(&product.access.region.columns.start));
        self.transfers
            .retain(|transfer| !columns.contains(&transfer.access.region.columns.start));
    }
}

#[cfg(test)]
mod tests {
    use super::super::TensorAddress;
    use crate::exec::machine::tensor_memory::order::*;

    fn access(thread: u16, column: u32, is_write: bool) -> TensorAccess {
        TensorAccess {
            thread,
            region: Region::new(TensorAddress::from_bits(column), 128, 8),
            is_write,
        }
    }

    fn thread(race: Option<TensorAccess>) -> Option<u16> {
        race.map(|access| access.thread)
    }

    #[test]
    fn load_races_until_commit_is_observed() {
        let mut order = AccessOrder::default();
        assert_eq!(thread(order.record_product(access(5, 0, true))), None);
        assert_eq!(
            thread(order.record_transfer(0, access(0, 7, false))),
            Some(5)
        );
        order.observe(64);
        assert_eq!(
            thread(order.record_transfer(0, access(0, 7, false))),
            Some(5)
        );
        order.commit(4, Some(64));
        order.observe(64);
        assert_eq!(
            thread(order.record_transfer(0, access(0, 7, false))),
            Some(5)
        );
        assert_eq!(thread(order.record_transfer(0, access(0, 8, false))), None);
        order.commit(5, Some(64));
        order.observe(64);
        assert_eq!(thread(order.record_transfer(0, access(0, 7, false))), None);
    }

    #[test]
    fn product_races_with_store_until_wait() {
        let mut order = AccessOrder::default();
        assert_eq!(thread(order.record_transfer(1, access(32, 0, true))), None);
        assert_eq!(thread(order.record_product(access(0, 0, false))), Some(32));
        order.wait(1, false);
        order.wait(0, true);
        assert_eq!(thread(order.record_product(access(0, 0, false))), Some(32));
        order.wait(1, true);
        assert_eq!(thread(order.record_product(access(0, 0, false))), None);
    }
}
