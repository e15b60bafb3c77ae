//! Records of memory accesses, for race checks.

use std::sync::Arc;

use super::{CopyOperand, Memory};
use crate::race::{self, Marked, Marks, Party};
use curium_ptx::exec::AccessKind;

impl Memory {
    /// Returns the allocation that contains an address, and its recorded accesses if races are
    /// checked.
    pub(crate) fn marks(&self, address: u64) -> Option<Marked> {
        let records = self.read();
        let allocation = records.find(address)?;
        Some((allocation.base, allocation.size, allocation.marks.clone()))
    }

    /// Discards the recorded accesses to an allocation, and attributes its creation to a party.
    pub(crate) fn renew(&self, base: u64, made_by: Party) {
        if let Some(allocation) = self.write().allocations.get_mut(&base) {
            let size = allocation.size;
            allocation
                .marks
                .iter_mut()
                .for_each(|marks| *marks = Arc::new(Marks::new(size, made_by)));
        }
    }

    /// Stops recording accesses to an allocation.
    pub(crate) fn unmark(&self, base: u64) {
        if let Some(allocation) = self.write().allocations.get_mut(&base) {
            allocation.marks = None;
        }
    }

    /// Records that the work of this thread frees an allocation.
    pub(crate) fn record_free(&self, base: u64) {
        if let Some((_, size, Some(marks))) = self.marks(base) {
            race::record_free(&marks, base, size);
        }
    }

    /// Records an access by the work of this thread, if races are checked.
    pub(super) fn record_access(
        &self,
        name: &'static str,
        operand: &CopyOperand,
        size: usize,
        how: AccessKind,
    ) {
        if !self.tracks_accesses {
            return;
        }
        let mut address = match operand {
            CopyOperand::Device(address) => *address,
            // Host memory that is not registered is used by a single copy.
            CopyOperand::Host(host) => host.0.addr() as u64,
            CopyOperand::Staged(_) => return,
        };
        let end = address + size as u64;
        while address < end {
            let Some((base, length, marks)) = self.marks(address) else {
                return;
            };
            let accessed = end.min(base + length) - address;
            if let Some(marks) = marks {
                race::record(
                    name,
                    &marks,
                    base,
                    address - base..address - base + accessed,
                    how,
                );
            }
            address += accessed;
        }
    }
}
