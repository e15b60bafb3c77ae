//! Live memory objects.

use super::{Memory, Purpose};
use crate::live::{LiveHandles, LiveObject};

impl Memory {
    pub(crate) fn count_live(&self, live: &mut LiveHandles) {
        let records = self.read();
        for allocation in records
            .allocations
            .values()
            .filter(|allocation| !allocation.is_retired)
        {
            match allocation.purpose {
                Purpose::Device | Purpose::Pool(_) => live.device_allocations += 1,
                Purpose::Module | Purpose::ManagedVariable | Purpose::Mapped(_) => {}
                Purpose::Pinned { .. } | Purpose::HostPool(_) => live.host_allocations += 1,
                Purpose::Array => live.arrays += 1,
                Purpose::Foreign => live.imported_allocations += 1,
                Purpose::Managed | Purpose::ManagedPool(_) => live.managed_allocations += 1,
                Purpose::Registered { .. } => live.registrations += 1,
            }
        }
        live.pools = records
            .pools
            .iter()
            .filter(|(_, pool)| !pool.is_default && !pool.is_retired)
            .count() as u64;
        [
            live.address_ranges,
            live.physical_allocations,
            live.mappings,
        ] = records.virtual_memory.counts();
    }

    /// Returns the pools, allocations and virtual memory objects that the program must release.
    pub(crate) fn live_objects(&self) -> Vec<LiveObject> {
        let records = self.read();
        let mut all = Vec::new();
        for (id, _) in records
            .pools
            .iter()
            .filter(|(_, pool)| !pool.is_default && !pool.is_retired)
        {
            all.extend(
                records
                    .pools
                    .origin(id)
                    .map(|origin| LiveObject::new("pool", id.number(), origin)),
            );
        }
        for found in records
            .allocations
            .values()
            .filter(|allocation| !allocation.is_retired)
        {
            let Some(kind) = kind(found.purpose) else {
                continue;
            };
            let object = LiveObject::new(kind, found.base, &found.origin);
            let object = object
                .with_size(found.size)
                .with_context(found.owner.context.number());
            all.push(LiveObject {
                stream: found.stream,
                ..object
            });
        }
        all.extend(records.virtual_memory.live_objects());
        all
    }

    /// Records the stream of a stream-ordered allocation.
    pub(crate) fn record_stream(&self, address: u64, stream: u64) {
        if let Some(found) = self.write().allocations.get_mut(&address) {
            found.stream = Some(stream);
        }
    }
}

/// Returns the name of an allocation that the program must free.
fn kind(purpose: Purpose) -> Option<&'static str> {
    Some(match purpose {
        Purpose::Device | Purpose::Pool(_) => "device allocation",
        Purpose::Module | Purpose::ManagedVariable => return None,
        Purpose::Mapped(_) => "mapping",
        Purpose::Pinned { .. } | Purpose::HostPool(_) => "host allocation",
        Purpose::Array => "array",
        Purpose::Foreign => "imported allocation",
        Purpose::Managed | Purpose::ManagedPool(_) => "managed allocation",
        Purpose::Registered { .. } => "registration",
    })
}
