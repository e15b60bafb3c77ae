//! Memory of several devices behind one address: what is written there goes to all of them.

use std::fmt;

use curium_driver::sys::{CUmemGenericAllocationHandle, CUmulticastGranularity_flags, CUmulticastObjectProp};
use curium_driver::{Device, Driver, Error, Function, MemoryHandleTypes, Result, Returned, call, release};

use crate::virtual_memory::{Granularity, PhysicalMemory};

/// What a multicast object is asked for with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct MulticastOptions {
    /// How many devices take part.
    pub devices: u32,
    /// The bytes that each device binds at most.
    pub bytes: usize,
    /// The kinds of handle that the object may be shared by.
    pub handle_types: MemoryHandleTypes,
}

/// Memory of several devices that are linked by a switch, written to and reduced over at once. Devices are
/// [added](MulticastObject::add_device) first, and then memory of each is [bound](MulticastObject::bind). Kernels reach all of it at once
/// where the object is mapped, [as memory](MulticastObject::as_memory).
///
/// Only machines whose devices are linked by a switch have it: elsewhere, making one is an error. Needs a driver for CUDA 12.1.
#[derive(Clone)]
pub struct MulticastObject {
    /// The driver counts holds on objects and on memory alike, and maps and exports both by the same calls.
    memory: PhysicalMemory,
}

/// Memory of one device that is bound to a multicast object, which it keeps, until this value is dropped. That waits for nothing: work that
/// still uses the object then fails, and its context with it.
pub struct MulticastBinding {
    object: MulticastObject,
    device: Device,
    offset: usize,
    memory: PhysicalMemory,
    is_bound: bool,
}

impl MulticastOptions {
    /// For so many devices, each with at most `bytes` bytes.
    #[must_use]
    #[inline]
    pub const fn new(devices: u32, bytes: usize) -> Self {
        Self { devices, bytes, handle_types: MemoryHandleTypes::empty() }
    }

    /// That may be shared by these kinds of handle.
    #[must_use]
    #[inline]
    pub const fn with_handle_types(mut self, types: MemoryHandleTypes) -> Self {
        self.handle_types = types;
        self
    }

    /// What sizes and offsets are multiples of, in bytes.
    ///
    /// CUDA: `cuMulticastGetGranularity`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_SUPPORTED` where there is no multicast.
    #[doc(alias = "cuMulticastGetGranularity")]
    #[inline]
    pub fn granularity(&self, driver: &Driver, granularity: Granularity) -> Result<usize> {
        let option = match granularity {
            Granularity::Minimum => CUmulticastGranularity_flags::CU_MULTICAST_GRANULARITY_MINIMUM,
            Granularity::Recommended => CUmulticastGranularity_flags::CU_MULTICAST_GRANULARITY_RECOMMENDED,
        };
        let (raw, mut bytes) = (self.to_raw(), 0);
        // SAFETY: `bytes` and `raw` are valid places.
        unsafe { call!(driver, cuMulticastGetGranularity(&raw mut bytes, &raw const raw, option)) }?;
        Ok(bytes)
    }

    #[inline]
    fn to_raw(self) -> CUmulticastObjectProp {
        CUmulticastObjectProp {
            numDevices: self.devices,
            size: self.bytes,
            handleTypes: self.handle_types.bits().into(),
            ..CUmulticastObjectProp::default()
        }
    }
}

impl MulticastObject {
    /// An object as `options` say, without devices.
    ///
    /// CUDA: `cuMulticastCreate`.
    ///
    /// # Errors
    ///
    /// An argument error for no device or no byte; `CUDA_ERROR_NOT_SUPPORTED` where there is no multicast, as on the simulator.
    #[doc(alias = "cuMulticastCreate")]
    #[inline]
    pub fn new(driver: &Driver, options: &MulticastOptions) -> Result<Self> {
        let (devices, bytes) = (options.devices, options.bytes);
        if devices == 0 || bytes == 0 {
            let reason = format!("{bytes} bytes of {devices} devices");
            return Err(Error::argument("MulticastObject::new", reason));
        }
        let (properties, mut raw) = (options.to_raw(), 0);
        // SAFETY: `raw` and `properties` are valid places.
        let result = unsafe { call!(driver, cuMulticastCreate(&raw mut raw, &raw const properties) creates raw) };
        result.map_err(|error| error.about(format!("{bytes} bytes of {devices} devices")))?;
        Ok(Self { memory: PhysicalMemory::owning(driver, raw, bytes) })
    }

    /// The object that `memory` is, which another process exported and this one imported as memory. For other memory every operation is
    /// an error.
    #[must_use]
    #[inline]
    pub const fn from_memory(memory: PhysicalMemory) -> Self {
        Self { memory }
    }

    /// The object as memory, to be [mapped](crate::AddressRange::map) and exported: what is written where it is mapped goes to all that is
    /// bound.
    #[must_use]
    #[inline]
    pub const fn as_memory(&self) -> &PhysicalMemory {
        &self.memory
    }

    /// Adds a device. All devices are added before memory of any is bound.
    ///
    /// CUDA: `cuMulticastAddDevice`.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[doc(alias = "cuMulticastAddDevice")]
    #[inline]
    pub fn add_device(&self, device: &Device) -> Result<()> {
        self.driver().expect_same(device.driver(), "MulticastObject::add_device")?;
        // SAFETY: the object is live, and the device is only looked up.
        unsafe { call!(self.driver(), cuMulticastAddDevice(self.as_raw(), device.as_raw())) }
    }

    /// Binds all of `memory`, which is on `device`, at `offset` bytes of the object.
    ///
    /// CUDA: `cuMulticastBindMem_v2` (since 13.1), before that `cuMulticastBindMem`.
    ///
    /// # Errors
    ///
    /// An argument error if the memory does not fit behind `offset`, and for a device or memory of another driver; whatever the driver
    /// returns.
    #[doc(alias = "cuMulticastBindMem")]
    #[inline]
    pub fn bind(&self, device: &Device, offset: usize, memory: &PhysicalMemory) -> Result<MulticastBinding> {
        self.driver().expect_same(memory.driver(), "MulticastObject::bind")?;
        self.driver().expect_same(device.driver(), "MulticastObject::bind")?;
        let (bytes, total) = (memory.byte_len(), self.byte_len());
        if offset.checked_add(bytes).is_none_or(|end| end > total) {
            let reason = format!("{bytes} bytes at offset {offset} do not fit into {total} bytes");
            return Err(Error::argument("MulticastObject::bind", reason));
        }
        let (driver, raw, handle, number) = (self.driver(), self.as_raw(), memory.as_raw(), device.as_raw());
        if driver.has(Function::cuMulticastBindMem_v2) {
            // SAFETY: the object and the memory are live, both for as long as the binding, which owns them.
            unsafe { call!(driver, cuMulticastBindMem_v2(raw, number, offset, handle, 0, bytes, 0)) }?;
        } else {
            // SAFETY: as above.
            unsafe { call!(driver, cuMulticastBindMem(raw, offset, handle, 0, bytes, 0)) }?;
        }
        let (object, device, memory) = (self.clone(), device.clone(), memory.clone());
        Ok(MulticastBinding { object, device, offset, memory, is_bound: true })
    }

    /// The bytes that each device binds at most.
    #[must_use]
    #[inline]
    pub fn byte_len(&self) -> usize {
        self.memory.byte_len()
    }

    /// The driver.
    #[must_use]
    #[inline]
    pub fn driver(&self) -> &Driver {
        self.memory.driver()
    }

    /// The driver's handle, which stays this value's.
    #[must_use]
    #[inline]
    pub fn as_raw(&self) -> CUmemGenericAllocationHandle {
        self.memory.as_raw()
    }

    /// Gives this hold on the object back, which [`Drop`] does as well, and says whether it succeeded.
    ///
    /// CUDA: `cuMemRelease`.
    ///
    /// # Errors
    ///
    /// Gives the object back if clones, bindings or mappings of it still exist, or if the driver refuses.
    #[inline]
    pub fn close(self) -> Result<(), Returned<Self>> {
        self.memory.close().map_err(|returned| returned.map(|memory| Self { memory }))
    }
}

impl MulticastBinding {
    /// The memory that is bound.
    #[must_use]
    #[inline]
    pub fn memory(&self) -> &PhysicalMemory {
        &self.memory
    }

    /// Ends the binding, which [`Drop`] does as well, and says whether it succeeded.
    ///
    /// CUDA: `cuMulticastUnbind`.
    ///
    /// # Errors
    ///
    /// Gives the binding back if the driver refuses.
    #[doc(alias = "cuMulticastUnbind")]
    #[inline]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.unbind().map_err(|error| Returned::new(self, error))
    }

    #[inline]
    fn unbind(&mut self) -> Result<()> {
        let (raw, device) = (self.object.as_raw(), self.device.as_raw());
        let (offset, bytes) = (self.offset, self.memory.byte_len());
        // SAFETY: the memory is bound there, and the binding is forgotten once it has ended.
        unsafe { call!(self.object.driver(), cuMulticastUnbind(raw, device, offset, bytes)) }?;
        self.is_bound = false;
        Ok(())
    }
}

impl fmt::Debug for MulticastObject {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "MulticastObject({} bytes, handle {:#x})", self.byte_len(), self.as_raw())
    }
}

impl fmt::Debug for MulticastBinding {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "MulticastBinding({:?} at {} of {:?})", self.memory, self.offset, self.object)
    }
}

impl Drop for MulticastBinding {
    #[inline]
    fn drop(&mut self) {
        if self.is_bound {
            release(|| self.unbind());
        }
    }
}
