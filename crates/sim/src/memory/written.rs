//! Records of written bytes of device memory, for checks of uninitialized reads.

use std::sync::Arc;

use super::{Allocation, CopyOperand, Memory, Purpose, Records};
use curium_ptx::exec::Written;

impl Memory {
    /// Marks consecutive bytes as written, in all of their allocations.
    pub(crate) fn record_write(&self, address: u64, size: u64) {
        self.each_piece(address, size, |found, address, bytes| {
            if let Some(written) = &found.written {
                written.add(address - found.base, bytes);
            }
        });
    }

    /// Marks consecutive bytes as uninitialized.
    pub(crate) fn record_fresh(&self, address: u64, size: u64) {
        self.each_piece(address, size, |found, address, bytes| {
            if let Some(written) = &found.written {
                written.remove(address - found.base, bytes);
            }
        });
    }

    /// Marks an allocation as written permanently, because others can write to it.
    pub(crate) fn record_sharing(&self, address: u64) {
        if self.tracks_writes
            && let Some(found) = self.write().find_mut(address)
        {
            found.written = None;
        }
    }

    /// Records a copy: the destination is written if the source is.
    pub(super) fn record_copy(&self, to: &CopyOperand, from: &CopyOperand, size: u64) {
        let CopyOperand::Device(to) = *to else { return };
        match *from {
            CopyOperand::Device(from) => self.each_piece(from, size, |found, address, bytes| {
                self.note_piece(to + (address - from), found, address, bytes);
            }),
            _ => self.record_write(to, size),
        }
    }

    /// Records a copy from bytes in one allocation.
    fn note_piece(&self, to: u64, source: &Allocation, from: u64, size: u64) {
        let Some(known) = &source.written else {
            return self.record_write(to, size);
        };
        self.each_piece(to, size, |found, address, bytes| {
            if let Some(written) = &found.written {
                written.copy(
                    address - found.base,
                    known,
                    from + (address - to) - source.base,
                    bytes,
                );
            }
        });
    }

    /// Calls `show` for each allocation in a range, with the first byte in it and the number of
    /// bytes.
    fn each_piece(&self, address: u64, size: u64, mut show: impl FnMut(&Allocation, u64, u64)) {
        if !self.tracks_writes {
            return;
        }
        let mut next = address;
        let end = address.saturating_add(size);
        while next < end {
            let Some(allocation) = self.find(next) else {
                return;
            };
            let bytes = allocation.end().min(end) - next;
            show(&allocation, next, bytes);
            next += bytes;
        }
    }
}

impl Records {
    /// Returns the record of a fresh allocation, or `None` if its writes are not all observed.
    pub(super) fn fresh(&self, size: u64, purpose: &Purpose) -> Option<Arc<Written>> {
        let is_known = matches!(
            purpose,
            Purpose::Device | Purpose::Pool(_) | Purpose::Module
        );
        (self.tracks_writes && is_known).then(|| Arc::new(Written::new(size)))
    }

    fn find_mut(&mut self, address: u64) -> Option<&mut Allocation> {
        let (_, allocation) = self.allocations.range_mut(..=address).next_back()?;
        (address < allocation.end()).then_some(allocation)
    }
}
