//! Reserved addresses.

use std::fmt;
use std::sync::Arc;

use curium_driver::sys::CUdeviceptr;
use curium_driver::{DevicePointer, Driver, Error, Result, Returned, call, release};

use super::{Mapping, PhysicalMemory};

/// Addresses that belong to this process and have no memory behind them until some is [mapped](AddressRange::map).
pub struct AddressRange {
    reserved: Arc<Reserved>,
}

/// The reservation itself, which mappings share.
pub(super) struct Reserved {
    driver: Driver,
    address: CUdeviceptr,
    bytes: usize,
}

/// How addresses are reserved.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct ReserveOptions {
    /// What the first address is a multiple of: a power of two, or 0 for what the driver wants.
    pub alignment: usize,
    /// The first address, if it can be had; 0 for any. What was taken is [`AddressRange::as_pointer`].
    pub address: u64,
}

impl ReserveOptions {
    /// Any address, aligned as the driver wants.
    #[must_use]
    #[inline]
    pub const fn new() -> Self {
        Self { alignment: 0, address: 0 }
    }

    /// With a first address that is a multiple of `alignment`, a power of two.
    #[must_use]
    #[inline]
    pub const fn with_alignment(mut self, alignment: usize) -> Self {
        self.alignment = alignment;
        self
    }

    /// With this first address, if it can be had.
    #[must_use]
    #[inline]
    pub const fn with_address(mut self, address: u64) -> Self {
        self.address = address;
        self
    }
}

impl AddressRange {
    /// Reserves `bytes` addresses, a multiple of the [granularity](super::PhysicalOptions::granularity) of the memory that will be mapped
    /// there.
    ///
    /// CUDA: `cuMemAddressReserve`.
    ///
    /// # Errors
    ///
    /// An argument error if `bytes` is 0; `CUDA_ERROR_INVALID_VALUE` if it is no such multiple; `CUDA_ERROR_OUT_OF_MEMORY` if there are not
    /// so many addresses in a row.
    #[doc(alias = "cuMemAddressReserve")]
    #[inline]
    pub fn reserve(driver: &Driver, bytes: usize) -> Result<Self> {
        Self::reserve_with(driver, bytes, ReserveOptions::new())
    }

    /// [Reserves](AddressRange::reserve) `bytes` addresses with an alignment, or from a certain one on.
    ///
    /// CUDA: `cuMemAddressReserve`.
    ///
    /// # Errors
    ///
    /// As for [`AddressRange::reserve`], and an argument error if the alignment is not a power of two.
    #[inline]
    pub fn reserve_with(driver: &Driver, bytes: usize, options: ReserveOptions) -> Result<Self> {
        let ReserveOptions { alignment, address: hint } = options;
        if bytes == 0 {
            return Err(Error::argument("AddressRange::reserve", "zero length"));
        }
        if alignment != 0 && !alignment.is_power_of_two() {
            let reason = format!("alignment is not a power of two ({alignment})");
            return Err(Error::argument("AddressRange::reserve", reason));
        }
        let mut address = 0;
        // SAFETY: `address` is a valid place for the answer.
        let result =
            unsafe { call!(driver, cuMemAddressReserve(&raw mut address, bytes, alignment, hint, 0) creates address) };
        result.map_err(|error| error.about(format!("{bytes} bytes, aligned to {alignment}")))?;
        Ok(Self { reserved: Arc::new(Reserved { driver: driver.clone(), address, bytes }) })
    }

    /// The first address.
    #[must_use]
    #[inline]
    pub fn as_pointer(&self) -> DevicePointer<u8> {
        DevicePointer::from_raw(self.reserved.address)
    }

    /// How many addresses there are: bytes that can be mapped.
    #[must_use]
    #[inline]
    pub fn byte_len(&self) -> usize {
        self.reserved.bytes
    }

    /// The driver that reserved the addresses.
    #[must_use]
    #[inline]
    pub fn driver(&self) -> &Driver {
        &self.reserved.driver
    }

    /// Maps all of `memory` at the address `offset` bytes into the range, for nobody to use until [`Mapping::set_access`].
    ///
    /// CUDA: `cuMemMap`.
    ///
    /// # Errors
    ///
    /// An argument error if the memory does not fit behind `offset`; `CUDA_ERROR_INVALID_VALUE` if `offset` is no multiple of the
    /// granularity, or something is mapped there already.
    #[doc(alias = "cuMemMap")]
    #[inline]
    pub fn map(&self, offset: usize, memory: &PhysicalMemory) -> Result<Mapping> {
        let (bytes, range) = (memory.byte_len(), self.byte_len());
        self.driver().expect_same(memory.driver(), "AddressRange::map")?;
        if offset > range || range - offset < bytes {
            let reason = format!("{bytes} bytes at offset {offset} do not fit into a range of {range} bytes");
            return Err(Error::argument("AddressRange::map", reason));
        }
        Mapping::new(&self.reserved, self.reserved.address + offset as u64, memory)
    }

    /// Gives the addresses back, which [`Drop`] does as well, and says whether it succeeded.
    ///
    /// CUDA: `cuMemAddressFree`.
    ///
    /// # Errors
    ///
    /// Gives the range back if something is mapped in it, or if the driver refuses.
    #[doc(alias = "cuMemAddressFree")]
    #[inline]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.free().map_err(|error| Returned::new(self, error))
    }

    /// Gives the addresses back; what is left is to be dropped.
    #[inline]
    pub(crate) fn free(&mut self) -> Result<()> {
        let mappings = Arc::strong_count(&self.reserved) - 1;
        let reserved = Arc::get_mut(&mut self.reserved).ok_or_else(|| {
            Error::argument("AddressRange::close", format!("range is still in use ({mappings} mappings)"))
        })?;
        reserved.free()
    }
}

impl Reserved {
    #[inline]
    pub(super) fn driver(&self) -> &Driver {
        &self.driver
    }

    #[inline]
    fn free(&mut self) -> Result<()> {
        // SAFETY: the addresses are reserved, no mapping is left that would own this, and they are forgotten once they are free.
        unsafe { call!(&self.driver, cuMemAddressFree(self.address, self.bytes)) }?;
        self.address = 0;
        Ok(())
    }
}

impl AsRef<Driver> for AddressRange {
    #[inline]
    fn as_ref(&self) -> &Driver {
        self.driver()
    }
}

impl fmt::Debug for AddressRange {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "AddressRange({} bytes at {:?})", self.byte_len(), self.as_pointer())
    }
}

impl Drop for Reserved {
    #[inline]
    fn drop(&mut self) {
        if self.address != 0 {
            release(|| self.free());
        }
    }
}
