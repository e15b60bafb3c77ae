//! Virtual memory management: reserved addresses, physical memory, mappings and their access
//! rights.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use curium_ptx::exec::Written;
use curium_sys::CUresult;

use crate::handle::{Id, Kind, Object, Table};
use crate::live::LiveObject;
use crate::memory::{
    Allocation, Backing, LABEL_WORDS, Label, Memory, Owner, Purpose, Records, Reservation,
};
use crate::origin::Origin;
use crate::result::Result;

/// The granularity of sizes and addresses.
pub(crate) const GRANULARITY: u64 = 2 << 20;

/// All virtual memory of a driver.
pub(crate) struct VirtualMemory {
    reservations: BTreeMap<u64, (Reservation, Origin)>,
    physical: Table<Physical>,
    mapped: BTreeMap<u64, Mapped>,
    /// Backing without an owner, which running work may still use.
    retired: Vec<Backing>,
}

/// A physical allocation. It lives while it has a handle or a mapping.
pub(crate) struct Physical {
    backing: Backing,
    size: u64,
    properties: Properties,
    is_imported: bool,
    handles: u32,
    mappings: u32,
    /// The record of its written bytes, if every write is observed.
    written: Option<Arc<Written>>,
}

impl Object for Physical {
    type Raw = u8;
    const KIND: Kind = Kind::Physical;
}

/// The properties of a physical allocation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Properties {
    pub(crate) location: Location,
    /// The mask of the handle types that may be exported.
    pub(crate) handle_types: u32,
    pub(crate) compression: u8,
    pub(crate) gpu_direct: u8,
    pub(crate) usage: u16,
}

/// The location of memory, or of its accessor.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Location {
    Device(usize),
    Host,
    HostNuma(i32),
}

/// The flag of read access. The next bit is write access.
pub(crate) const READ: u32 = 1;
pub(crate) const WRITE: u32 = 2;

/// A mapping of physical memory.
struct Mapped {
    physical: Id<Physical>,
    access: Vec<(Location, u32)>,
}

impl VirtualMemory {
    pub(crate) fn new() -> Self {
        Self {
            reservations: BTreeMap::new(),
            physical: Table::new(),
            mapped: BTreeMap::new(),
            retired: Vec::new(),
        }
    }

    /// Returns the numbers of reservations, physical allocations and mappings.
    pub(crate) fn counts(&self) -> [u64; 3] {
        [
            self.reservations.len(),
            self.physical.iter().count(),
            self.mapped.len(),
        ]
        .map(|count| count as u64)
    }

    /// Returns the live reservations and physical allocations. Mappings are allocations.
    pub(super) fn live_objects(&self) -> Vec<LiveObject> {
        let ranges = self
            .reservations
            .iter()
            .map(|(address, (reservation, origin))| {
                LiveObject::new("address range", *address, origin).with_size(reservation.size())
            });
        let pieces = self.physical.iter().filter_map(|(id, physical)| {
            let origin = self.physical.origin(id)?;
            Some(
                LiveObject::new("physical allocation", id.number(), origin)
                    .with_size(physical.size),
            )
        });
        ranges.chain(pieces).collect()
    }

    /// Returns `true` if an address is in a reservation.
    pub(crate) fn is_reserved(&self, address: u64) -> bool {
        self.reservation(address, 1).is_some()
    }

    /// Returns the reservation that contains a range.
    fn reservation(&self, address: u64, size: u64) -> Option<&Reservation> {
        let (_, (reservation, _)) = self.reservations.range(..=address).next_back()?;
        let end = reservation.address() + reservation.size();
        address
            .checked_add(size)
            .is_some_and(|last| last <= end)
            .then_some(reservation)
    }

    /// Returns `true` if a device, or any device if `None`, has these rights to a mapping.
    fn allows(&self, base: u64, device: Option<usize>, rights: u32) -> bool {
        let Some(mapped) = self.mapped.get(&base) else {
            return false;
        };
        mapped.access.iter().any(|(location, access)| {
            let Location::Device(accessor) = location else {
                return false;
            };
            device.is_none_or(|device| device == *accessor) && access & rights == rights
        })
    }

    /// Returns the mappings of a range without gaps, each with its start.
    fn mappings_in(
        &self,
        address: u64,
        size: u64,
        allocations: &BTreeMap<u64, Allocation>,
    ) -> Result<Vec<u64>> {
        let end = address
            .checked_add(size)
            .filter(|end| *end > address)
            .ok_or(INVALID)?;
        let mut bases = Vec::new();
        let mut next = address;
        while next < end {
            let mapping = self
                .mapped
                .contains_key(&next)
                .then(|| allocations.get(&next))
                .flatten();
            bases.push(next);
            next = mapping.ok_or(INVALID)?.end();
        }
        if next == end { Ok(bases) } else { Err(INVALID) }
    }
}

/// Virtual memory management: reserved addresses, physical memory, and the mappings between them.
#[derive(Clone, Copy)]
pub(crate) struct Mappings<'a> {
    pub(super) memory: &'a Memory,
}

impl Mappings<'_> {
    /// Reserves addresses.
    pub(crate) fn reserve(&self, size: u64, alignment: u64, hint: u64) -> Result<u64> {
        let reservation = Reservation::new(size, alignment.max(GRANULARITY), hint)
            .map_err(|error| io_error_code(&error))?;
        let address = reservation.address();
        self.memory
            .write()
            .virtual_memory
            .reservations
            .insert(address, (reservation, Origin::here()));
        Ok(address)
    }

    /// Frees a whole reservation without mappings.
    pub(crate) fn free_reservation(&self, address: u64, size: u64) -> Result {
        let memory = &mut self.memory.write().virtual_memory;
        let is_whole = memory
            .reservations
            .get(&address)
            .is_some_and(|(reservation, _)| reservation.size() == size);
        let is_used = memory
            .mapped
            .range(address..address.saturating_add(size))
            .next()
            .is_some();
        if !is_whole || is_used {
            return Err(INVALID);
        }
        memory.reservations.remove(&address);
        Ok(())
    }

    /// Creates physical memory with one handle.
    pub(crate) fn create_physical(
        &self,
        size: u64,
        properties: Properties,
    ) -> Result<Id<Physical>> {
        let mut records = self.memory.write();
        if let Location::Device(device) = properties.location {
            let available = self.memory.budget.saturating_sub(records.taken(device));
            if size > available {
                return Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
            }
        }
        let keep_file =
            properties.handle_types != 0 || !matches!(properties.location, Location::Device(_));
        let label = Label {
            size,
            words: properties.to_words(),
        };
        let backing = Backing::new(label, keep_file).map_err(|error| io_error_code(&error))?;
        if let Location::Device(device) = properties.location {
            records.used[device] += size;
        }
        // Other processes can write to memory that is exported.
        let written = records.fresh(size, &Purpose::Device).filter(|_| !keep_file);
        let physical = Physical {
            backing,
            size,
            properties,
            is_imported: false,
            handles: 1,
            mappings: 0,
            written,
        };
        Ok(records.virtual_memory.physical.insert(physical))
    }

    /// Returns a descriptor of physical memory. The caller closes it.
    pub(crate) fn export_physical(&self, id: Id<Physical>, handle_type: u32) -> Result<i32> {
        let records = self.memory.read();
        let physical = records
            .virtual_memory
            .physical
            .get(id)
            .filter(|physical| physical.handles != 0);
        let physical = physical.ok_or(INVALID)?;
        if physical.properties.handle_types & handle_type == 0 {
            return Err(INVALID);
        }
        physical
            .backing
            .export()
            .map_err(|error| io_error_code(&error))
    }

    /// Returns the physical memory of a descriptor with one handle, if its properties are suitable.
    pub(crate) fn import_physical(
        &self,
        descriptor: i32,
        suits: impl Fn(&Properties) -> bool,
    ) -> Result<Id<Physical>> {
        let (backing, label) = Backing::import(descriptor).ok_or(INVALID)?;
        let properties = Properties::from_words(label.words)
            .filter(|properties| suits(properties))
            .ok_or(INVALID)?;
        let physical = Physical {
            backing,
            size: label.size,
            properties,
            is_imported: true,
            handles: 1,
            mappings: 0,
            written: None,
        };
        Ok(self.memory.write().virtual_memory.physical.insert(physical))
    }

    /// Returns an additional handle of the physical memory at an address.
    pub(crate) fn retain_physical(&self, address: u64) -> Result<Id<Physical>> {
        let mut records = self.memory.write();
        let Some(&Allocation {
            purpose: Purpose::Mapped(id),
            ..
        }) = records.find(address)
        else {
            return Err(INVALID);
        };
        let physical = records.virtual_memory.physical.get_mut(id).ok_or(INVALID)?;
        physical.handles += 1;
        Ok(id)
    }

    /// Releases one handle.
    pub(crate) fn release_physical(&self, id: Id<Physical>) -> Result {
        let mut records = self.memory.write();
        let physical = records
            .virtual_memory
            .physical
            .get_mut(id)
            .filter(|physical| physical.handles != 0);
        physical.ok_or(INVALID)?.handles -= 1;
        records.drop_physical_if_unused(id);
        Ok(())
    }

    pub(crate) fn physical_properties(&self, id: Id<Physical>) -> Result<Properties> {
        let records = self.memory.read();
        let physical = records
            .virtual_memory
            .physical
            .get(id)
            .filter(|physical| physical.handles != 0);
        physical.map(|physical| physical.properties).ok_or(INVALID)
    }

    pub(crate) fn physical_size(&self, id: Id<Physical>) -> Result<u64> {
        self.memory
            .read()
            .virtual_memory
            .physical
            .get(id)
            .map(|physical| physical.size)
            .ok_or(INVALID)
    }

    /// Maps the start of physical memory at reserved addresses, without access rights.
    pub(crate) fn map(&self, address: u64, size: u64, id: Id<Physical>) -> Result {
        let mut records = self.memory.write();
        let before = records
            .allocations
            .range(..address.saturating_add(size))
            .next_back();
        let is_free = before.is_none_or(|(_, before)| before.end() <= address);
        let memory = &mut records.virtual_memory;
        let is_free = is_free && memory.reservation(address, size).is_some();
        let physical = memory
            .physical
            .get_mut(id)
            .filter(|physical| physical.handles != 0 && physical.size >= size);
        let physical = physical.filter(|_| is_free).ok_or(INVALID)?;
        physical.mappings += 1;
        let host = physical.backing.host();
        let location = physical.properties.location;
        let written = physical.written.clone();
        memory.mapped.insert(
            address,
            Mapped {
                physical: id,
                access: Vec::new(),
            },
        );
        let device = if let Location::Device(device) = location {
            device
        } else {
            0
        };
        // Mapped memory belongs to no context.
        let owner = Owner {
            context: Id::from_number(0),
            device,
        };
        records.insert(address, size, host, owner, Purpose::Mapped(id));
        if let Some(allocation) = records.allocations.get_mut(&address) {
            allocation.written = written;
        }
        Ok(())
    }

    /// Returns `true` if an address is reserved and nothing is mapped there.
    pub(crate) fn is_unmapped(&self, address: u64) -> bool {
        let records = self.memory.read();
        let is_reserved = records.virtual_memory.reservation(address, 1).is_some();
        is_reserved && records.find(address).is_none()
    }

    /// Removes all mappings of a range, none of which extends beyond it.
    pub(crate) fn unmap(&self, address: u64, size: u64) -> Result {
        let mut records = self.memory.write();
        let records = &mut *records;
        for base in records
            .virtual_memory
            .mappings_in(address, size, &records.allocations)?
        {
            let allocation = records.allocations.remove(&base).ok_or(INVALID)?;
            let mapped = records.virtual_memory.mapped.remove(&base).ok_or(INVALID)?;
            if mapped
                .access
                .iter()
                .any(|(location, _)| !matches!(location, Location::Device(_)))
                && let Some(reservation) = records.virtual_memory.reservation(base, allocation.size)
            {
                reservation
                    .hide(base, allocation.size)
                    .map_err(|error| io_error_code(&error))?;
            }
            if let Some(physical) = records.virtual_memory.physical.get_mut(mapped.physical) {
                physical.mappings -= 1;
            }
            records.drop_physical_if_unused(mapped.physical);
        }
        Ok(())
    }

    /// Sets the rights of locations to all mappings of a range.
    pub(crate) fn set_access(&self, address: u64, size: u64, rights: &[(Location, u32)]) -> Result {
        let mut records = self.memory.write();
        let records = &mut *records;
        let bases = records
            .virtual_memory
            .mappings_in(address, size, &records.allocations)?;
        for &(location, _) in rights {
            if matches!(location, Location::Device(_)) {
                continue;
            }
            for base in &bases {
                let properties = records.mapping_properties(*base).ok_or(INVALID)?;
                if matches!(properties.location, Location::Device(_)) {
                    return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
                }
            }
        }
        for base in bases {
            for (location, flags) in rights {
                records.set_mapping_access(base, *location, *flags)?;
            }
        }
        Ok(())
    }

    /// Returns the rights of a location to the mapping at an address.
    pub(crate) fn access(&self, address: u64, location: Location) -> Result<u32> {
        let records = self.memory.read();
        let mapped = records
            .find(address)
            .filter(|allocation| matches!(allocation.purpose, Purpose::Mapped(_)))
            .and_then(|allocation| records.virtual_memory.mapped.get(&allocation.base))
            .ok_or(INVALID)?;
        let entry = mapped
            .access
            .iter()
            .find(|(accessor, _)| *accessor == location);
        Ok(entry.map_or(0, |(_, flags)| *flags))
    }

    /// Releases memory without an owner. Must be called only when no work is running.
    pub(crate) fn drop_retired(&self) {
        let retired = std::mem::take(&mut self.memory.write().virtual_memory.retired);
        drop(retired);
    }
}

impl Records {
    /// Returns `true` if a device, or any device if `None`, has these rights to an allocation.
    pub(crate) fn allows(
        &self,
        allocation: &Allocation,
        device: Option<usize>,
        rights: u32,
    ) -> bool {
        match allocation.purpose {
            Purpose::Mapped(_) => self.virtual_memory.allows(allocation.base, device, rights),
            Purpose::Pool(pool) => {
                device.is_none_or(|device| self.pool_allows(pool, device, rights))
            }
            // A copy or fill needs a device with rights, since the device performs it.
            Purpose::HostPool(pool) => match device {
                Some(device) => self.pool_allows(pool, device, rights),
                None => self.is_host_pool_accessible(pool, rights),
            },
            _ => true,
        }
    }

    /// Returns the properties of the memory that is mapped at an address.
    pub(super) fn mapping_properties(&self, base: u64) -> Option<Properties> {
        let mapped = self.virtual_memory.mapped.get(&base)?;
        self.virtual_memory
            .physical
            .get(mapped.physical)
            .map(|physical| physical.properties)
    }

    fn set_mapping_access(&mut self, base: u64, location: Location, flags: u32) -> Result {
        let size = self.allocations.get(&base).ok_or(INVALID)?.size;
        if !matches!(location, Location::Device(_)) {
            self.show_to_host(base, size, flags)?;
        }
        let mapped = self.virtual_memory.mapped.get_mut(&base).ok_or(INVALID)?;
        mapped.access.retain(|(accessor, _)| *accessor != location);
        if flags != 0 {
            mapped.access.push((location, flags));
        }
        Ok(())
    }

    fn show_to_host(&self, base: u64, size: u64, flags: u32) -> Result {
        let memory = &self.virtual_memory;
        let reservation = memory.reservation(base, size).ok_or(INVALID)?;
        let mapped = memory.mapped.get(&base).ok_or(INVALID)?;
        let physical = memory.physical.get(mapped.physical).ok_or(INVALID)?;
        let shown = match flags {
            0 => reservation.hide(base, size),
            flags => reservation.show(base, size, &physical.backing, flags & WRITE != 0),
        };
        shown.map_err(|error| io_error_code(&error))
    }

    fn drop_physical_if_unused(&mut self, id: Id<Physical>) {
        let memory = &mut self.virtual_memory;
        if memory
            .physical
            .get(id)
            .is_none_or(|physical| physical.handles != 0 || physical.mappings != 0)
        {
            return;
        }
        let Some(physical) = memory.physical.remove(id) else {
            return;
        };
        if let (Location::Device(device), false) =
            (physical.properties.location, physical.is_imported)
        {
            self.used[device] -= physical.size;
        }
        self.virtual_memory.retired.push(physical.backing);
    }
}

impl Properties {
    fn to_words(self) -> [u64; LABEL_WORDS] {
        let (kind, id) = match self.location {
            Location::Device(device) => (1, device as u64),
            Location::Host => (2, 0),
            Location::HostNuma(node) => (3, u64::from(node.unsigned_abs())),
        };
        let flags = [
            u64::from(self.compression),
            u64::from(self.gpu_direct),
            u64::from(self.usage),
        ];
        [
            kind,
            id,
            self.handle_types.into(),
            flags[0] | flags[1] << 8 | flags[2] << 16,
            0,
            0,
            0,
            0,
        ]
    }

    fn from_words([kind, id, handle_types, flags, ..]: [u64; LABEL_WORDS]) -> Option<Self> {
        let location = match kind {
            1 => Location::Device(usize::try_from(id).ok()?),
            2 => Location::Host,
            3 => Location::HostNuma(i32::try_from(id).ok()?),
            _ => return None,
        };
        Some(Self {
            location,
            handle_types: u32::try_from(handle_types).ok()?,
            compression: flags as u8,
            gpu_direct: (flags >> 8) as u8,
            usage: (flags >> 16) as u16,
        })
    }
}

const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;

/// Returns the code for an error of the system.
pub(super) fn io_error_code(error: &io::Error) -> CUresult {
    match error.kind() {
        io::ErrorKind::Unsupported => CUresult::CUDA_ERROR_NOT_SUPPORTED,
        io::ErrorKind::OutOfMemory => CUresult::CUDA_ERROR_OUT_OF_MEMORY,
        _ => CUresult::CUDA_ERROR_OPERATING_SYSTEM,
    }
}
