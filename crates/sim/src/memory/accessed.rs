//! Who accessed memory, for finding races.

use std::sync::Arc;

use super::{End, Memory};
use crate::exec::Use;
use crate::race::{self, Marked, Marks, Party};

impl Memory {
    /// Returns the allocation that an address is in, and who accessed it, if that is noted.
    pub(crate) fn marks(&self, address: u64) -> Option<Marked> {
        let records = self.read();
        let found = records.find(address)?;
        Some((found.base, found.size, found.marks.clone()))
    }

    /// Has nobody have accessed an allocation but who made it.
    pub(crate) fn renew(&self, base: u64, made_by: Party) {
        if let Some(found) = self.write().allocations.get_mut(&base) {
            let size = found.size;
            found.marks.iter_mut().for_each(|marks| *marks = Arc::new(Marks::new(size, made_by)));
        }
    }

    /// Notes no accesses to an allocation any more.
    pub(crate) fn unmark(&self, base: u64) {
        if let Some(found) = self.write().allocations.get_mut(&base) {
            found.marks = None;
        }
    }

    /// Notes that the work of this thread frees an allocation.
    pub(crate) fn note_free(&self, base: u64) {
        if let Some((_, size, Some(marks))) = self.marks(base) {
            race::note_free(&marks, base, size);
        }
    }

    /// Notes what the work of this thread accesses, if races are looked for.
    pub(super) fn note(&self, name: &'static str, end: &End, size: usize, how: Use) {
        if !self.notes_accesses {
            return;
        }
        let (mut address, mut left) = match end {
            End::Device(address) => (*address, size as u64),
            // Memory of the host that the device does not know is used by one copy alone.
            End::Host(host) => (host.0.addr() as u64, size as u64),
            End::Staged(_) => return,
        };
        while left > 0 {
            let Some((base, length, marks)) = self.marks(address) else { return };
            let piece = left.min(base + length - address);
            if let Some(marks) = marks {
                race::note(name, &marks, base, address - base..address - base + piece, how);
            }
            (address, left) = (address + piece, left - piece);
        }
    }
}
