//! Mappings.

use std::fmt;
use std::sync::Arc;

use curium_driver::extend::release;
use curium_driver::sys::{CUdeviceptr, CUmemAccess_flags, CUmemAccessDesc};
use curium_driver::{DevicePointer, Driver, Error, Result, Returned, call};

use super::PhysicalMemory;
use super::address_range::Reserved;
use crate::{MemoryAccess, MemoryLocation};

/// A mapping of [`PhysicalMemory`] in an [`AddressRange`](super::AddressRange), which is unmapped
/// on drop.
///
/// Unmapping does not wait: work that still accesses the addresses fails, and the context is lost.
/// Synchronize first, or use the memory through a [`BorrowedBuffer`](crate::BorrowedBuffer), which
/// waits.
pub struct Mapping {
    address: CUdeviceptr,
    memory: PhysicalMemory,
    reserved: Arc<Reserved>,
}

impl Mapping {
    pub(super) fn new(
        reserved: &Arc<Reserved>,
        address: CUdeviceptr,
        memory: &PhysicalMemory,
    ) -> Result<Self> {
        let bytes = memory.byte_len();
        // SAFETY: the mapping owns the reservation and the memory, so both outlive it.
        let result = unsafe {
            call!(
                reserved.driver(),
                cuMemMap(address, bytes, 0, memory.as_raw(), 0)
            )
        };
        result.map_err(|error| error.about(format!("{bytes} bytes at {address:#x}")))?;
        Ok(Self {
            address,
            memory: memory.clone(),
            reserved: Arc::clone(reserved),
        })
    }

    /// Returns the address of the first byte.
    #[must_use]
    pub fn as_pointer(&self) -> DevicePointer<u8> {
        DevicePointer::from_raw(self.address)
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.memory.byte_len()
    }

    /// Returns the mapped memory.
    #[must_use]
    pub fn memory(&self) -> &PhysicalMemory {
        &self.memory
    }

    /// Returns the driver.
    #[must_use]
    pub fn driver(&self) -> &Driver {
        self.reserved.driver()
    }

    /// Sets the access rights of a location.
    ///
    /// CUDA: `cuMemSetAccess`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` or `CUDA_ERROR_INVALID_DEVICE` for a location that does not
    /// support this access: a device without peer access, or the host for device memory.
    pub fn set_access(
        &self,
        location: impl Into<MemoryLocation>,
        access: MemoryAccess,
    ) -> Result<()> {
        self.set_accesses(&[(location.into(), access)])
    }

    /// Sets the access rights of several locations. Other locations keep their rights.
    ///
    /// CUDA: `cuMemSetAccess`.
    ///
    /// # Errors
    ///
    /// As for [`Mapping::set_access`]; an argument error if `accesses` is empty.
    #[doc(alias = "cuMemSetAccess")]
    pub fn set_accesses(&self, accesses: &[(MemoryLocation, MemoryAccess)]) -> Result<()> {
        if accesses.is_empty() {
            return Err(Error::argument("Mapping::set_accesses", "no locations"));
        }
        let raw: Vec<_> = accesses
            .iter()
            .map(|(location, access)| CUmemAccessDesc {
                location: location.to_raw(),
                flags: access.to_raw(),
            })
            .collect();
        // SAFETY: the mapping is live with this size, and `raw` has the given number of
        // descriptors.
        let result = unsafe {
            call!(
                self.driver(),
                cuMemSetAccess(self.address, self.byte_len(), raw.as_ptr(), raw.len())
            )
        };
        result.map_err(|error| {
            let names: Vec<String> = accesses
                .iter()
                .map(|(location, access)| format!("{access} by {location}"))
                .collect();
            error.about(names.join(", "))
        })
    }

    /// Returns the access rights of a location.
    ///
    /// CUDA: `cuMemGetAccess`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` or `CUDA_ERROR_INVALID_DEVICE` for a location that does not
    /// exist.
    #[doc(alias = "cuMemGetAccess")]
    pub fn access(&self, location: impl Into<MemoryLocation>) -> Result<MemoryAccess> {
        let location = location.into();
        let raw = location.to_raw();
        let mut flags = 0_u64;
        // SAFETY: `flags` and `raw` are valid pointers, and the mapping is live.
        let result = unsafe {
            call!(
                self.driver(),
                cuMemGetAccess(&raw mut flags, &raw const raw, self.address)
            )
        };
        result.map_err(|error| error.about(location.to_string()))?;
        Ok(MemoryAccess::from_raw(CUmemAccess_flags(flags as u32)))
    }

    /// Unmaps the memory, as [`Drop`] does, and returns any error. Other owners keep the memory
    /// alive.
    ///
    /// CUDA: `cuMemUnmap`.
    ///
    /// # Errors
    ///
    /// Returns the mapping together with the error if the driver fails.
    #[doc(alias = "cuMemUnmap")]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.unmap().map_err(|error| Returned::new(self, error))
    }

    fn unmap(&mut self) -> Result<()> {
        let address = self.address;
        let bytes = self.byte_len();
        // SAFETY: the mapping is live with this size, and it is not used after this call.
        unsafe { call!(self.driver(), cuMemUnmap(address, bytes)) }?;
        self.address = 0;
        Ok(())
    }
}

impl AsRef<Driver> for Mapping {
    fn as_ref(&self) -> &Driver {
        self.driver()
    }
}

impl fmt::Debug for Mapping {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "Mapping({} bytes at {:?})",
            self.byte_len(),
            self.as_pointer()
        )
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.address != 0 {
            release(|| self.unmap());
        }
    }
}
