//! Memory that is shared between processes: its location, and the memory that was opened.

use curium_sys::CUresult;

use crate::handle::Id;
use crate::memory::virtual_memory::io_error_code;
use crate::memory::{
    Allocation, Backing, ForeignMemory, LABEL_WORDS, Label, Memory, Owner, Purpose, Records,
};
use crate::result::Result;

/// A simulator whose device memory other processes open.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Origin {
    pub(crate) process: u32,
    /// The descriptor of the file with all its device memory.
    pub(crate) descriptor: i32,
    /// Distinguishes simulators of one process.
    pub(crate) serial: u64,
}

/// The location of memory for other processes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct SharedAllocation {
    pub(crate) origin: Origin,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) device: usize,
    /// The number of the memory's pool in its own process; 0 without a pool.
    pub(crate) pool: u64,
}

/// The first word of a handle.
const MAGIC: u64 = u64::from_le_bytes(*b"curiumip");

impl SharedAllocation {
    /// Encodes the location as the bytes of a handle.
    pub(crate) fn to_bytes(self) -> [u8; 64] {
        let Self {
            origin,
            offset,
            size,
            device,
            pool,
        } = self;
        let process =
            u64::from(origin.process) | u64::from(origin.descriptor.cast_unsigned()) << 32;
        let words = [
            MAGIC,
            process,
            origin.serial,
            offset,
            size,
            device as u64,
            pool,
            0,
        ];
        let mut bytes = [0; 64];
        bytes
            .as_chunks_mut()
            .0
            .iter_mut()
            .zip(words)
            .for_each(|(bytes, word)| *bytes = word.to_le_bytes());
        bytes
    }

    /// Decodes the bytes of a handle.
    pub(crate) fn from_bytes(bytes: &[u8; 64]) -> Option<Self> {
        let mut words = [0; 8];
        words
            .iter_mut()
            .zip(bytes.as_chunks().0)
            .for_each(|(word, bytes)| *word = u64::from_le_bytes(*bytes));
        let [MAGIC, process, serial, offset, size, device, pool, 0] = words else {
            return None;
        };
        let descriptor = ((process >> 32) as u32).cast_signed();
        let origin = Origin {
            process: process as u32,
            descriptor,
            serial,
        };
        Some(Self {
            origin,
            offset,
            size,
            device: usize::try_from(device).ok()?,
            pool,
        })
    }
}

/// The memory that this process shares with others, or has opened from them.
#[derive(Clone, Copy)]
pub(crate) struct Sharing<'a> {
    pub(super) memory: &'a Memory,
}

impl Sharing<'_> {
    /// Returns the origin of the simulator with this serial number, if its memory can be shared.
    pub(crate) fn origin(&self, serial: u64) -> Option<Origin> {
        let descriptor = self.memory.space.descriptor()?;
        Some(Origin {
            process: std::process::id(),
            descriptor,
            serial,
        })
    }

    /// Returns `true` if [`Self::share`] would move the bytes of an allocation. The caller first
    /// waits for all work that accesses them.
    pub(crate) fn is_private(&self, allocation: &Allocation) -> bool {
        self.memory.space.owns(allocation.base)
            && self
                .memory
                .space
                .is_private(allocation.base, allocation.size)
    }

    /// Makes an allocation accessible to other processes, and returns its location for them.
    pub(crate) fn share(&self, allocation: &Allocation, serial: u64) -> Option<SharedAllocation> {
        let offset = self.memory.space.offset(allocation.base)?;
        self.memory
            .space
            .share(allocation.base, allocation.size)
            .ok()?;
        let pool = Records::allocation_pool(allocation).map_or(0, Id::number);
        let device = allocation.owner.device;
        Some(SharedAllocation {
            origin: self.origin(serial)?,
            offset,
            size: allocation.size,
            device,
            pool,
        })
    }

    /// Opens memory of another process, or increments its count, and returns its address.
    pub(crate) fn open_foreign(&self, shared: SharedAllocation, owner: Owner) -> Result<u64> {
        let mut records = self.memory.write();
        if let Some((address, memory)) = records
            .foreign
            .iter_mut()
            .find(|(_, memory)| memory.shared() == shared)
        {
            memory.openings += 1;
            return Ok(*address);
        }
        let memory = ForeignMemory::open(shared).map_err(|error| io_error_code(&error))?;
        let address = memory.address();
        records.insert(address, shared.size, memory.host(), owner, Purpose::Foreign);
        records.foreign.insert(address, memory);
        Ok(address)
    }

    /// Decrements the count of memory of another process. Returns `true` if it must be freed now.
    pub(crate) fn close_foreign(&self, address: u64) -> Result<bool> {
        let mut records = self.memory.write();
        let memory = records
            .foreign
            .get_mut(&address)
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        memory.openings -= 1;
        Ok(memory.openings == 0)
    }
}

impl Sharing<'_> {
    /// Exports a location as a file descriptor for other processes. The caller closes it.
    pub(crate) fn publish(&self, shared: &SharedAllocation) -> Result<i32> {
        let mut words = [0; LABEL_WORDS];
        words
            .iter_mut()
            .zip(shared.to_bytes().as_chunks().0)
            .for_each(|(word, bytes)| *word = u64::from_le_bytes(*bytes));
        let label = Label { size: PAGE, words };
        Backing::new(label, true)
            .and_then(|backing| backing.export())
            .map_err(|error| io_error_code(&error))
    }

    /// Returns the location that a file descriptor refers to, if it refers to one.
    pub(crate) fn published(&self, descriptor: i32) -> Option<SharedAllocation> {
        let (_, label) = Backing::import(descriptor)?;
        let mut bytes = [0; 64];
        bytes
            .as_chunks_mut()
            .0
            .iter_mut()
            .zip(label.words)
            .for_each(|(bytes, word)| *bytes = word.to_le_bytes());
        SharedAllocation::from_bytes(&bytes)
    }
}

/// The size of a file that contains only its label.
const PAGE: u64 = 4096;
