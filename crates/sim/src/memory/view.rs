//! Memory as kernels reach it.

use std::sync::Arc;

use super::{Allocation, Memory, Purpose, READ, Records, WRITE};
use crate::exec::{self, Segment, Written};
use crate::race::{Accessor, LaunchWatch};

/// The memory of a driver as the kernels of one device reach it.
pub(crate) struct View<'a> {
    memory: &'a Memory,
    device: usize,
    /// The devices whose plain memory they reach as well.
    peers: Vec<usize>,
    /// Whose accesses are noted.
    accessor: Option<Accessor>,
}

impl Memory {
    /// Returns the memory as the kernels of a device reach it whose context has access to that of `peers`.
    pub(crate) fn seen_by(&self, device: usize, peers: Vec<usize>) -> View<'_> {
        View { memory: self, device, peers, accessor: None }
    }
}

// SAFETY: a segment is an allocation. Its bytes stay mapped until it is freed, which happens behind the work that was queued
// before; of reserved and mapped memory even longer. Places in host memory are congruent to device addresses: both start at pages.
// A kernel and a copy that race are a race of the program that queued them without an order.
unsafe impl exec::Memory for View<'_> {
    fn segment(&self, address: u64) -> Option<Segment> {
        let records = self.memory.read();
        let Some(found) = records.find(address) else {
            drop(records);
            return self.pageable(address);
        };
        if !self.allows(&records, found) {
            return None;
        }
        let writable = records.allows(found, Some(self.device), WRITE);
        Some(Segment { base: found.base, size: found.size, host: found.host.0, writable })
    }

    fn written(&self, address: u64) -> Option<Arc<Written>> {
        self.memory.read().find(address).and_then(|found| found.written.clone())
    }

    fn watcher(&self) -> Option<Box<dyn exec::Watcher + '_>> {
        let accessor = self.accessor.clone()?;
        Some(Box::new(LaunchWatch::new(accessor, |address| self.memory.marks(address))))
    }
}

impl View<'_> {
    /// Returns the memory of the host that holds `address`, if kernels access pageable memory. The program keeps it mapped during the
    /// launch.
    fn pageable(&self, address: u64) -> Option<Segment> {
        #[cfg(all(target_os = "linux", not(miri)))]
        if self.memory.has_pageable_access && !self.memory.is_device_address(address) {
            return super::pageable::segment(address);
        }
        let _ = (address, self.memory.has_pageable_access);
        None
    }

    /// The same with accesses that are noted as somebody's, if there is somebody.
    pub(crate) fn watched_by(self, accessor: Option<Accessor>) -> Self {
        Self { accessor, ..self }
    }

    /// Returns `true` if what is allocated at an address, if anything is, can be used.
    pub(crate) fn reaches(&self, address: u64) -> bool {
        let records = self.memory.read();
        records.find(address).is_none_or(|found| self.allows(&records, found))
    }

    /// Plain memory of another device takes access from context to context; pools and mappings have rights of their own.
    fn allows(&self, records: &Records, found: &Allocation) -> bool {
        let is_plain = matches!(found.purpose, Purpose::Device | Purpose::Module);
        let is_near = found.owner.device == self.device || self.peers.contains(&found.owner.device);
        (!is_plain || is_near) && records.allows(found, Some(self.device), READ)
    }
}
