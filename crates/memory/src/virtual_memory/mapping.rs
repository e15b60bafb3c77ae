//! Physical memory behind reserved addresses.

use std::fmt;
use std::sync::Arc;

use curium_driver::extend::release;
use curium_driver::sys::{CUdeviceptr, CUmemAccess_flags, CUmemAccessDesc};
use curium_driver::{DevicePointer, Driver, Error, Result, Returned, call};

use super::PhysicalMemory;
use super::address_range::Reserved;
use crate::{MemoryAccess, MemoryLocation};

/// [`PhysicalMemory`] behind a part of an [`AddressRange`](super::AddressRange), until this value is dropped.
///
/// Unmapping waits for nothing: work that still uses the addresses then fails, and its context with it. Wait for it first, or use the
/// memory by a [`ForeignBuffer`](crate::ForeignBuffer), which does.
pub struct Mapping {
    address: CUdeviceptr,
    memory: PhysicalMemory,
    reserved: Arc<Reserved>,
}

impl Mapping {
    #[inline]
    pub(super) fn new(reserved: &Arc<Reserved>, address: CUdeviceptr, memory: &PhysicalMemory) -> Result<Self> {
        let bytes = memory.byte_len();
        // SAFETY: the addresses are reserved and the memory is live, both for as long as the mapping exists, which owns them.
        let result = unsafe { call!(reserved.driver(), cuMemMap(address, bytes, 0, memory.as_raw(), 0)) };
        result.map_err(|error| error.about(format!("{bytes} bytes at {address:#x}")))?;
        Ok(Self { address, memory: memory.clone(), reserved: Arc::clone(reserved) })
    }

    /// The address of the first byte.
    #[must_use]
    #[inline]
    pub fn as_pointer(&self) -> DevicePointer<u8> {
        DevicePointer::from_raw(self.address)
    }

    /// The size in bytes.
    #[must_use]
    #[inline]
    pub fn byte_len(&self) -> usize {
        self.memory.byte_len()
    }

    /// The memory that is mapped.
    #[must_use]
    #[inline]
    pub fn memory(&self) -> &PhysicalMemory {
        &self.memory
    }

    /// The driver.
    #[must_use]
    #[inline]
    pub fn driver(&self) -> &Driver {
        self.reserved.driver()
    }

    /// Says what one location may do with the memory at these addresses.
    ///
    /// CUDA: `cuMemSetAccess`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` or `CUDA_ERROR_INVALID_DEVICE` for a location that cannot have such access: another device without a
    /// link to the memory's, or the host for memory of a device.
    #[inline]
    pub fn set_access(&self, location: impl Into<MemoryLocation>, access: MemoryAccess) -> Result<()> {
        self.set_accesses(&[(location.into(), access)])
    }

    /// Says what several locations may do with the memory at these addresses. Locations that are not named keep what they have.
    ///
    /// CUDA: `cuMemSetAccess`.
    ///
    /// # Errors
    ///
    /// As for [`Mapping::set_access`], and an argument error without any location.
    #[doc(alias = "cuMemSetAccess")]
    #[inline]
    pub fn set_accesses(&self, accesses: &[(MemoryLocation, MemoryAccess)]) -> Result<()> {
        if accesses.is_empty() {
            return Err(Error::argument("Mapping::set_accesses", "no locations"));
        }
        let describe = |(location, access): &(MemoryLocation, MemoryAccess)| CUmemAccessDesc {
            location: location.to_raw(),
            flags: access.to_raw(),
        };
        let raw: Vec<CUmemAccessDesc> = accesses.iter().map(describe).collect();
        // SAFETY: the mapping is live with this size, and `raw` has as many descriptions as are passed.
        let result =
            unsafe { call!(self.driver(), cuMemSetAccess(self.address, self.byte_len(), raw.as_ptr(), raw.len())) };
        result.map_err(|error| {
            let names: Vec<String> =
                accesses.iter().map(|(location, access)| format!("{access} by {location}")).collect();
            error.about(names.join(", "))
        })
    }

    /// What a location may do with the memory at these addresses.
    ///
    /// CUDA: `cuMemGetAccess`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` or `CUDA_ERROR_INVALID_DEVICE` for a location that there is not.
    #[doc(alias = "cuMemGetAccess")]
    #[inline]
    pub fn access(&self, location: impl Into<MemoryLocation>) -> Result<MemoryAccess> {
        let location = location.into();
        let (raw, mut flags) = (location.to_raw(), 0_u64);
        // SAFETY: `flags` and `raw` are valid places, and the mapping is live.
        let result = unsafe { call!(self.driver(), cuMemGetAccess(&raw mut flags, &raw const raw, self.address)) };
        result.map_err(|error| error.about(location.to_string()))?;
        Ok(MemoryAccess::from_raw(CUmemAccess_flags(flags as u32)))
    }

    /// Ends the mapping, which [`Drop`] does as well, and says whether it succeeded. The memory lives on with its other owners.
    ///
    /// CUDA: `cuMemUnmap`.
    ///
    /// # Errors
    ///
    /// Gives the mapping back if the driver refuses.
    #[doc(alias = "cuMemUnmap")]
    #[inline]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.unmap().map_err(|error| Returned::new(self, error))
    }

    #[inline]
    fn unmap(&mut self) -> Result<()> {
        let (address, bytes) = (self.address, self.byte_len());
        // SAFETY: the mapping is live with this size, and is forgotten once it has ended.
        unsafe { call!(self.driver(), cuMemUnmap(address, bytes)) }?;
        self.address = 0;
        Ok(())
    }
}

impl AsRef<Driver> for Mapping {
    #[inline]
    fn as_ref(&self) -> &Driver {
        self.driver()
    }
}

impl fmt::Debug for Mapping {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Mapping({} bytes at {:?})", self.byte_len(), self.as_pointer())
    }
}

impl Drop for Mapping {
    #[inline]
    fn drop(&mut self) {
        if self.address != 0 {
            release(|| self.unmap());
        }
    }
}
