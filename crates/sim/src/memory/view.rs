//! Memory as seen by kernels.

use std::sync::Arc;

use super::{Allocation, Memory, Purpose, READ, Records, WRITE};
use crate::race::{Accessor, LaunchWatch};
use curium_ptx::exec::{self, Segment, Written};

/// The memory of a driver that the kernels of one device can access.
pub(crate) struct View<'a> {
    memory: &'a Memory,
    device: usize,
    /// The devices with enabled peer access.
    peers: Vec<usize>,
    /// The accessor to which accesses are attributed.
    accessor: Option<Accessor>,
}

impl Memory {
    /// Returns the memory that kernels of a device can access. Their context has access to that of
    /// `peers`.
    pub(crate) fn seen_by(&self, device: usize, peers: Vec<usize>) -> View<'_> {
        View {
            memory: self,
            device,
            peers,
            accessor: None,
        }
    }
}

// SAFETY: a segment is an allocation. Its bytes stay mapped until it is freed, which happens after
// the work that was queued earlier; reserved and mapped memory stays mapped even longer. Host
// addresses are congruent to device addresses, because both start at pages. A race of a kernel and
// a copy is a race of the program that queued them without an order.
unsafe impl exec::Memory for View<'_> {
    fn segment(&self, address: u64) -> Option<Segment> {
        let records = self.memory.read();
        let Some(allocation) = records.find(address) else {
            drop(records);
            return self.pageable(address);
        };
        if !self.allows(&records, allocation) {
            return None;
        }
        let writable = records.allows(allocation, Some(self.device), WRITE);
        Some(Segment {
            base: allocation.base,
            size: allocation.size,
            host: allocation.host.0,
            writable,
        })
    }

    fn written(&self, address: u64) -> Option<Arc<Written>> {
        self.memory
            .read()
            .find(address)
            .and_then(|allocation| allocation.written.clone())
    }

    fn watcher(&self) -> Option<Box<dyn exec::Watcher + '_>> {
        let accessor = self.accessor.clone()?;
        Some(Box::new(LaunchWatch::new(accessor, |address| {
            self.memory.marks(address)
        })))
    }
}

impl View<'_> {
    /// Returns the host memory that contains `address`, if kernels may access pageable memory. The
    /// program keeps it mapped during the launch.
    fn pageable(&self, address: u64) -> Option<Segment> {
        #[cfg(all(target_os = "linux", not(miri)))]
        if self.memory.has_pageable_access && !self.memory.is_device_address(address) {
            return super::pageable::segment(address);
        }
        let _ = (address, self.memory.has_pageable_access);
        None
    }

    /// Attributes accesses to an accessor, if there is one.
    pub(crate) fn watched_by(self, accessor: Option<Accessor>) -> Self {
        Self { accessor, ..self }
    }

    /// Returns `true` if the allocation at an address, if any, is accessible.
    pub(crate) fn reaches(&self, address: u64) -> bool {
        let records = self.memory.read();
        records
            .find(address)
            .is_none_or(|allocation| self.allows(&records, allocation))
    }

    /// Returns `true` if the device may access an allocation. Peer access is enabled by context for
    /// synchronous allocations; pools and mappings have their own rights.
    fn allows(&self, records: &Records, allocation: &Allocation) -> bool {
        let is_plain = matches!(
            allocation.purpose,
            Purpose::Device | Purpose::Module | Purpose::Foreign
        );
        let is_near =
            allocation.owner.device == self.device || self.peers.contains(&allocation.owner.device);
        (!is_plain || is_near) && records.allows(allocation, Some(self.device), READ)
    }
}
