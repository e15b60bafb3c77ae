//! Reserved virtual address ranges.

use std::fmt;
use std::sync::Arc;

use curium_driver::extend::release;
use curium_driver::sys::CUdeviceptr;
use curium_driver::{DevicePointer, Driver, Error, Result, Returned, call};

use super::{Mapping, PhysicalMemory};

/// A reserved virtual address range, inaccessible until memory is [mapped](AddressRange::map).
pub struct AddressRange {
    reserved: Arc<Reserved>,
}

/// The reservation, which mappings share.
pub(super) struct Reserved {
    driver: Driver,
    address: CUdeviceptr,
    bytes: usize,
}

/// Options of an address reservation.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct ReserveOptions {
    /// The alignment of the first address: a power of two, or 0 for the driver's default.
    pub alignment: usize,
    /// The requested first address, or 0 for any address. The driver may choose another one; see
    /// [`AddressRange::as_pointer`].
    pub address: u64,
}

impl ReserveOptions {
    /// Creates the default options: any address with the default alignment.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            alignment: 0,
            address: 0,
        }
    }

    /// Sets the alignment of the first address, a power of two.
    #[must_use]
    pub const fn with_alignment(mut self, alignment: usize) -> Self {
        self.alignment = alignment;
        self
    }

    /// Requests a first address.
    #[must_use]
    pub const fn with_address(mut self, address: u64) -> Self {
        self.address = address;
        self
    }
}

impl AddressRange {
    /// Reserves `bytes` bytes of address space: a multiple of the
    /// [granularity](super::PhysicalOptions::granularity) of the memory to be mapped.
    ///
    /// CUDA: `cuMemAddressReserve`.
    ///
    /// # Errors
    ///
    /// An argument error if `bytes` is 0; `CUDA_ERROR_INVALID_VALUE` if it is not a multiple of the
    /// granularity; `CUDA_ERROR_OUT_OF_MEMORY` if the address space is exhausted.
    #[doc(alias = "cuMemAddressReserve")]
    pub fn reserve(driver: &Driver, bytes: usize) -> Result<Self> {
        Self::reserve_with(driver, bytes, ReserveOptions::new())
            .map_err(|error| error.during("AddressRange::reserve"))
    }

    /// Reserves `bytes` bytes of address space with options, like [`AddressRange::reserve`].
    ///
    /// CUDA: `cuMemAddressReserve`.
    ///
    /// # Errors
    ///
    /// As for [`AddressRange::reserve`], and an argument error if the alignment is not a power of
    /// two.
    pub fn reserve_with(driver: &Driver, bytes: usize, options: ReserveOptions) -> Result<Self> {
        let ReserveOptions {
            alignment,
            address: hint,
        } = options;
        if bytes == 0 {
            return Err(Error::argument("AddressRange::reserve_with", "zero length"));
        }
        if alignment != 0 && !alignment.is_power_of_two() {
            let reason = format!("alignment is not a power of two ({alignment})");
            return Err(Error::argument("AddressRange::reserve_with", reason));
        }
        let mut address = 0;
        // SAFETY: `address` is a valid pointer.
        let result = unsafe {
            call!(driver, cuMemAddressReserve(&raw mut address, bytes, alignment, hint, 0) creates address)
        };
        result.map_err(|error| error.about(format!("{bytes} bytes, aligned to {alignment}")))?;
        Ok(Self {
            reserved: Arc::new(Reserved {
                driver: driver.clone(),
                address,
                bytes,
            }),
        })
    }

    /// Returns the first address.
    #[must_use]
    pub fn as_pointer(&self) -> DevicePointer<u8> {
        DevicePointer::from_raw(self.reserved.address)
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.reserved.bytes
    }

    /// Returns the driver.
    #[must_use]
    pub fn driver(&self) -> &Driver {
        &self.reserved.driver
    }

    /// Maps all of `memory` at `offset` bytes. The mapping is inaccessible until
    /// [`Mapping::set_access`].
    ///
    /// CUDA: `cuMemMap`.
    ///
    /// # Errors
    ///
    /// An argument error if the memory does not fit at `offset`; `CUDA_ERROR_INVALID_VALUE` if
    /// `offset` is not a multiple of the granularity or already mapped.
    #[doc(alias = "cuMemMap")]
    pub fn map(&self, offset: usize, memory: &PhysicalMemory) -> Result<Mapping> {
        let bytes = memory.byte_len();
        let range = self.byte_len();
        self.driver()
            .check_same(memory.driver(), "AddressRange::map")?;
        if offset > range || range - offset < bytes {
            let reason = format!(
                "{bytes} bytes at offset {offset} do not fit into a range of {range} bytes"
            );
            return Err(Error::argument("AddressRange::map", reason));
        }
        Mapping::new(
            &self.reserved,
            self.reserved.address + offset as u64,
            memory,
        )
    }

    /// Frees the reservation, as [`Drop`] does, and returns any error.
    ///
    /// CUDA: `cuMemAddressFree`.
    ///
    /// # Errors
    ///
    /// Returns the range together with the error if memory is mapped in it or the driver call
    /// fails.
    #[doc(alias = "cuMemAddressFree")]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.free().map_err(|error| Returned::new(self, error))
    }

    /// Frees the reservation.
    pub(crate) fn free(&mut self) -> Result<()> {
        let mappings = Arc::strong_count(&self.reserved) - 1;
        let reserved = Arc::get_mut(&mut self.reserved).ok_or_else(|| {
            Error::argument(
                "AddressRange::close",
                format!("range is still in use ({mappings} mappings)"),
            )
        })?;
        reserved.free()
    }
}

impl Reserved {
    pub(super) fn driver(&self) -> &Driver {
        &self.driver
    }

    fn free(&mut self) -> Result<()> {
        // SAFETY: the addresses are reserved, no mapping is left, and the reservation is not used
        // after this call.
        unsafe { call!(&self.driver, cuMemAddressFree(self.address, self.bytes)) }?;
        self.address = 0;
        Ok(())
    }
}

impl AsRef<Driver> for AddressRange {
    fn as_ref(&self) -> &Driver {
        self.driver()
    }
}

impl fmt::Debug for AddressRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "AddressRange({} bytes at {:?})",
            self.byte_len(),
            self.as_pointer()
        )
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if self.address != 0 {
            release(|| self.free());
        }
    }
}
