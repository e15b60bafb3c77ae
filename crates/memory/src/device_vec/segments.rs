//! The memory behind a row of reserved addresses: mapped from the front, without gaps.

use curium_driver::sys::CUdeviceptr;
use curium_driver::{Device, Error, Result, Returned};

use crate::virtual_memory::{AddressRange, Granularity, Mapping, PhysicalMemory, PhysicalOptions};
use crate::{MemoryAccess, MemoryLocation};

/// Addresses, and memory behind the first of them.
pub(super) struct Segments {
    /// From the front on; the last ends at `mapped`.
    mappings: Vec<Mapping>,
    mapped: usize,
    granularity: usize,
    /// Who may use the memory beside its own device.
    peers: Vec<MemoryLocation>,
    range: AddressRange,
}

impl Segments {
    /// Addresses for at least `bytes` bytes, and no memory.
    #[inline]
    pub(super) fn reserve(device: &Device, bytes: usize) -> Result<Self> {
        let granularity = PhysicalOptions::new(device).granularity(device.driver(), Granularity::Minimum)?;
        let padded = bytes
            .checked_next_multiple_of(granularity.max(1))
            .ok_or_else(|| Error::argument("DeviceVec::with_max_len", format!("size overflow ({bytes} bytes)")))?;
        let range = AddressRange::reserve(device.driver(), padded)?;
        let granularity = granularity.max(1);
        Ok(Self { mappings: Vec::new(), mapped: 0, granularity, peers: Vec::new(), range })
    }

    #[inline]
    pub(super) fn address(&self) -> CUdeviceptr {
        self.range.as_pointer().as_raw()
    }

    /// The bytes that there are addresses for.
    #[inline]
    pub(super) fn reserved(&self) -> usize {
        self.range.byte_len()
    }

    /// The bytes that there is memory for.
    #[inline]
    pub(super) fn mapped(&self) -> usize {
        self.mapped
    }

    /// Has memory for at least `bytes` bytes, which there are addresses for. Grows by half where there is memory for it, so that
    /// many small steps make few mappings.
    #[inline]
    pub(super) fn grow_to(&mut self, device: &Device, bytes: usize) -> Result<()> {
        let Some(missing) = bytes.checked_sub(self.mapped).filter(|missing| *missing > 0) else { return Ok(()) };
        let missing = missing.next_multiple_of(self.granularity);
        let wanted = (self.mapped / 2).next_multiple_of(self.granularity).max(missing);
        match self.grow_by(device, wanted.min(self.reserved() - self.mapped)) {
            Err(error) if error.is_out_of_memory() && wanted > missing => self.grow_by(device, missing),
            result => result,
        }
    }

    #[inline]
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

    /// Whether another device may use the memory.
    #[inline]
    pub(super) fn is_reached_by(&self, peer: &Device) -> bool {
        self.peers.contains(&peer.into())
    }

    /// Lets another device use the memory, and what is mapped later.
    #[inline]
    pub(super) fn allow(&mut self, peer: &Device) -> Result<()> {
        let location = MemoryLocation::from(peer);
        self.mappings.iter().try_for_each(|mapping| mapping.set_access(location, MemoryAccess::ReadWrite))?;
        self.peers.push(location);
        Ok(())
    }

    /// Whether a whole mapping lies behind the first `bytes` bytes.
    #[inline]
    pub(super) fn can_shrink_to(&self, bytes: usize) -> bool {
        self.mappings.last().is_some_and(|last| self.mapped - last.byte_len() >= bytes)
    }

    /// Ends the mappings that lie behind the first `bytes` bytes, which nobody uses any more, from the end on.
    #[inline]
    pub(super) fn shrink_to(&mut self, bytes: usize) -> Result<()> {
        while self.can_shrink_to(bytes) {
            let Some(last) = self.mappings.pop() else { break };
            let size = last.byte_len();
            if let Err(Returned { value: last, error }) = last.close() {
                self.mappings.push(last);
                return Err(error);
            }
            self.mapped -= size;
        }
        Ok(())
    }

    /// Gives the addresses back, behind which there is no memory any more.
    #[inline]
    pub(super) fn free_addresses(&mut self) -> Result<()> {
        self.range.free()
    }

    /// Keeps the memory and its addresses for as long as the process lives.
    #[inline]
    pub(super) fn leak(&mut self) {
        std::mem::forget(std::mem::take(&mut self.mappings));
        self.mapped = 0;
    }
}
