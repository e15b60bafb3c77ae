//! Memory that is mapped contiguously from the start of a reserved address range.

use curium_driver::sys::CUdeviceptr;
use curium_driver::{Device, Error, LeakedMemory, Result, Returned};

use crate::virtual_memory::{AddressRange, Granularity, Mapping, PhysicalMemory, PhysicalOptions};
use crate::{MemoryAccess, MemoryLocation};

/// A reserved address range with memory mapped at its start.
pub(super) struct Segments {
    /// In order of address; the last one ends at `mapped`.
    mappings: Vec<Mapping>,
    mapped: usize,
    granularity: usize,
    /// The devices with access, in addition to the memory's own device.
    peers: Vec<MemoryLocation>,
    range: AddressRange,
}

impl Segments {
    /// Reserves addresses for at least `bytes` bytes, without memory.
    pub(super) fn reserve(device: &Device, bytes: usize) -> Result<Self> {
        let granularity =
            PhysicalOptions::new(device).granularity(device.driver(), Granularity::Minimum)?;
        let padded = bytes
            .checked_next_multiple_of(granularity.max(1))
            .ok_or_else(|| {
                Error::argument(
                    "DeviceVec::with_max_len",
                    format!("size overflow ({bytes} bytes)"),
                )
            })?;
        let range = AddressRange::reserve(device.driver(), padded)?;
        let granularity = granularity.max(1);
        Ok(Self {
            mappings: Vec::new(),
            mapped: 0,
            granularity,
            peers: Vec::new(),
            range,
        })
    }

    pub(super) fn address(&self) -> CUdeviceptr {
        self.range.as_pointer().as_raw()
    }

    /// Returns the number of reserved bytes.
    pub(super) fn reserved(&self) -> usize {
        self.range.byte_len()
    }

    /// Returns the number of mapped bytes.
    pub(super) fn mapped(&self) -> usize {
        self.mapped
    }

    /// Maps memory for at least `bytes` bytes, within the reserved range. Grows by half if there is
    /// enough memory, to limit the number of mappings.
    pub(super) fn grow_to(&mut self, device: &Device, bytes: usize) -> Result<()> {
        let Some(missing) = bytes
            .checked_sub(self.mapped)
            .filter(|missing| *missing > 0)
        else {
            return Ok(());
        };
        let missing = missing.next_multiple_of(self.granularity);
        let wanted = (self.mapped / 2)
            .next_multiple_of(self.granularity)
            .max(missing);
        match self.grow_by(device, wanted.min(self.reserved() - self.mapped)) {
            Err(error) if error.is_out_of_memory() && wanted > missing => {
                self.grow_by(device, missing)
            }
            result => result,
        }
    }

    fn grow_by(&mut self, device: &Device, bytes: usize) -> Result<()> {
        let memory = PhysicalMemory::new(device, bytes)?;
        let mapping = self.range.map(self.mapped, &memory)?;
        let users = std::iter::once(device.into()).chain(self.peers.iter().copied());
        let accesses: Vec<_> = users.map(|user| (user, MemoryAccess::ReadWrite)).collect();
        mapping.set_accesses(&accesses)?;
        self.mappings.push(mapping);
        self.mapped += bytes;
        Ok(())
    }

    /// Returns `true` if another device has access.
    pub(super) fn is_reached_by(&self, peer: &Device) -> bool {
        self.peers.contains(&peer.into())
    }

    /// Enables access by another device to the current and future memory.
    pub(super) fn allow(&mut self, peer: &Device) -> Result<()> {
        let location = MemoryLocation::from(peer);
        self.mappings
            .iter()
            .try_for_each(|mapping| mapping.set_access(location, MemoryAccess::ReadWrite))?;
        self.peers.push(location);
        Ok(())
    }

    /// Returns `true` if a whole mapping lies beyond the first `bytes` bytes.
    pub(super) fn can_shrink_to(&self, bytes: usize) -> bool {
        self.mappings
            .last()
            .is_some_and(|last| self.mapped - last.byte_len() >= bytes)
    }

    /// Unmaps the mappings beyond the first `bytes` bytes, starting at the end. They must not be in
    /// use.
    pub(super) fn shrink_to(&mut self, bytes: usize) -> Result<()> {
        while self.can_shrink_to(bytes) {
            let Some(last) = self.mappings.pop() else {
                break;
            };
            let size = last.byte_len();
            if let Err(Returned { value: last, error }) = last.close() {
                self.mappings.push(last);
                return Err(error);
            }
            self.mapped -= size;
        }
        Ok(())
    }

    /// Frees the reserved addresses once no memory is mapped.
    pub(super) fn free_addresses(&mut self) -> Result<()> {
        self.range.free()
    }

    /// Leaks the memory and its addresses, and returns the number of allocations and bytes.
    pub(super) fn leak(&mut self) -> LeakedMemory {
        let mappings = std::mem::take(&mut self.mappings);
        let mapped = std::mem::take(&mut self.mapped);
        let leaked = LeakedMemory::new(mappings.len() as u64, mapped as u64);
        std::mem::forget(mappings);
        leaked
    }
}
