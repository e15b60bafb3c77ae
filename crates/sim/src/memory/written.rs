//! Which bytes of device memory were written, where kernels are checked for reads of others.

use std::sync::Arc;

use super::{Allocation, End, Memory, Purpose, Records};
use crate::exec::Written;

impl Memory {
    /// Notes that bytes in a row are written, in whatever allocations they lie.
    pub(crate) fn note_write(&self, address: u64, size: u64) {
        self.each_piece(address, size, |found, address, bytes| {
            if let Some(written) = &found.written {
                written.add(address - found.base, bytes);
            }
        });
    }

    /// Has bytes in a row count as never written.
    pub(crate) fn note_fresh(&self, address: u64, size: u64) {
        self.each_piece(address, size, |found, address, bytes| {
            if let Some(written) = &found.written {
                written.remove(address - found.base, bytes);
            }
        });
    }

    /// Has an allocation count as written from now on, because others than this driver can write it.
    pub(crate) fn note_shared(&self, address: u64) {
        if self.notes_writes
            && let Some(found) = self.write().find_mut(address)
        {
            found.written = None;
        }
    }

    /// Notes a copy: what arrives was written if its source was.
    pub(super) fn note_copy(&self, to: &End, from: &End, size: u64) {
        let End::Device(to) = *to else { return };
        match *from {
            End::Device(from) => self.each_piece(from, size, |found, address, bytes| {
                self.note_piece(to + (address - from), found, address, bytes);
            }),
            _ => self.note_write(to, size),
        }
    }

    /// Notes a copy of bytes that lie in one allocation.
    fn note_piece(&self, to: u64, source: &Allocation, from: u64, size: u64) {
        let Some(known) = &source.written else { return self.note_write(to, size) };
        self.each_piece(to, size, |found, address, bytes| {
            if let Some(written) = &found.written {
                written.copy(address - found.base, known, from + (address - to) - source.base, bytes);
            }
        });
    }

    /// Shows the allocations that bytes in a row lie in, each with the first of them in it and how many they are.
    fn each_piece(&self, address: u64, size: u64, mut show: impl FnMut(&Allocation, u64, u64)) {
        if !self.notes_writes {
            return;
        }
        let (mut next, end) = (address, address.saturating_add(size));
        while next < end {
            let Some(found) = self.find(next) else { return };
            let bytes = found.end().min(end) - next;
            show(&found, next, bytes);
            next += bytes;
        }
    }
}

impl Records {
    /// Returns what of a fresh allocation was written: nothing, if it is of a kind that nobody writes unseen.
    pub(super) fn fresh(&self, size: u64, purpose: &Purpose) -> Option<Arc<Written>> {
        let is_known = matches!(purpose, Purpose::Device | Purpose::Pool(_) | Purpose::Module);
        (self.notes_writes && is_known).then(|| Arc::new(Written::new(size)))
    }

    fn find_mut(&mut self, address: u64) -> Option<&mut Allocation> {
        let (_, allocation) = self.allocations.range_mut(..=address).next_back()?;
        (address < allocation.end()).then_some(allocation)
    }
}
