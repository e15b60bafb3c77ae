//! Multicast objects: one address for memory of several devices.

use std::fmt;

use curium_driver::extend::release;
use curium_driver::sys::{
    CUmemGenericAllocationHandle, CUmulticastGranularity_flags, CUmulticastObjectProp,
};
use curium_driver::{Device, Driver, Error, Function, MemoryHandleTypes, Result, Returned, call};

use crate::virtual_memory::{Granularity, PhysicalMemory};

/// Options of a multicast object.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct MulticastOptions {
    /// The number of devices.
    pub devices: u32,
    /// The size in bytes of the memory that each device binds.
    pub bytes: usize,
    /// The handle types that the object can be exported as.
    pub handle_types: MemoryHandleTypes,
}

/// A multicast object: a write goes to the memory of several devices, and a read can reduce over
/// them. [Add](MulticastObject::add_device) the devices first, then [bind](MulticastObject::bind)
/// memory of each device. Kernels access the object through a mapping of
/// [its memory](MulticastObject::as_memory).
///
/// Requires devices connected by NVSwitch and a driver for CUDA 12.1. Otherwise creating an object
/// is an error.
#[derive(Clone)]
pub struct MulticastObject {
    /// The driver manages objects and memory alike: the same calls retain, map and export both.
    memory: PhysicalMemory,
}

/// Memory of one device, bound to a multicast object until this value is dropped. Dropping it does
/// not wait: work that still uses the object then fails, and the context is lost.
pub struct MulticastBinding {
    object: MulticastObject,
    device: Device,
    offset: usize,
    memory: PhysicalMemory,
    is_bound: bool,
}

impl MulticastOptions {
    /// Creates options for `devices` devices with at most `bytes` bytes each.
    #[must_use]
    pub const fn new(devices: u32, bytes: usize) -> Self {
        Self {
            devices,
            bytes,
            handle_types: MemoryHandleTypes::empty(),
        }
    }

    /// Sets the handle types for sharing with other processes.
    #[must_use]
    pub const fn with_handle_types(mut self, types: MemoryHandleTypes) -> Self {
        self.handle_types = types;
        self
    }

    /// Returns the granularity of sizes and offsets in bytes.
    ///
    /// CUDA: `cuMulticastGetGranularity`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_SUPPORTED` without multicast support.
    #[doc(alias = "cuMulticastGetGranularity")]
    pub fn granularity(&self, driver: &Driver, granularity: Granularity) -> Result<usize> {
        let option = match granularity {
            Granularity::Minimum => CUmulticastGranularity_flags::CU_MULTICAST_GRANULARITY_MINIMUM,
            Granularity::Recommended => {
                CUmulticastGranularity_flags::CU_MULTICAST_GRANULARITY_RECOMMENDED
            }
        };
        let raw = self.to_raw();
        let mut bytes = 0;
        // SAFETY: `bytes` and `raw` are valid pointers.
        unsafe {
            call!(
                driver,
                cuMulticastGetGranularity(&raw mut bytes, &raw const raw, option)
            )
        }?;
        Ok(bytes)
    }

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
    /// Creates a multicast object without devices.
    ///
    /// CUDA: `cuMulticastCreate`.
    ///
    /// # Errors
    ///
    /// An argument error for 0 devices or 0 bytes; `CUDA_ERROR_NOT_SUPPORTED` without multicast
    /// support, as on the simulator.
    #[doc(alias = "cuMulticastCreate")]
    pub fn new(driver: &Driver, options: &MulticastOptions) -> Result<Self> {
        let devices = options.devices;
        let bytes = options.bytes;
        if devices == 0 || bytes == 0 {
            let reason = format!("{bytes} bytes of {devices} devices");
            return Err(Error::argument("MulticastObject::new", reason));
        }
        let properties = options.to_raw();
        let mut raw = 0;
        // SAFETY: `raw` and `properties` are valid pointers.
        let result = unsafe {
            call!(driver, cuMulticastCreate(&raw mut raw, &raw const properties) creates raw)
        };
        result.map_err(|error| error.about(format!("{bytes} bytes of {devices} devices")))?;
        Ok(Self {
            memory: PhysicalMemory::owning(driver, raw, bytes),
        })
    }

    /// Converts imported memory that is a multicast object. If it is not, every operation fails.
    #[must_use]
    pub const fn from_memory(memory: PhysicalMemory) -> Self {
        Self { memory }
    }

    /// Returns the object as memory that can be [mapped](crate::AddressRange::map) and exported.
    /// Writes to the mapping go to all bound memory.
    #[must_use]
    pub const fn as_memory(&self) -> &PhysicalMemory {
        &self.memory
    }

    /// Adds a device. All devices must be added before any memory is bound.
    ///
    /// CUDA: `cuMulticastAddDevice`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuMulticastAddDevice")]
    pub fn add_device(&self, device: &Device) -> Result<()> {
        self.driver()
            .check_same(device.driver(), "MulticastObject::add_device")?;
        // SAFETY: the object is live, and the driver validates the device.
        unsafe {
            call!(
                self.driver(),
                cuMulticastAddDevice(self.as_raw(), device.as_raw())
            )
        }
    }

    /// Binds all of `memory`, which must be on `device`, at `offset` bytes of the object.
    ///
    /// CUDA: `cuMulticastBindMem_v2` (since 13.1), before that `cuMulticastBindMem`.
    ///
    /// # Errors
    ///
    /// An argument error if the memory does not fit at `offset`, or for a device or memory of
    /// another driver; any error returned by the driver.
    #[doc(alias = "cuMulticastBindMem")]
    pub fn bind(
        &self,
        device: &Device,
        offset: usize,
        memory: &PhysicalMemory,
    ) -> Result<MulticastBinding> {
        self.driver()
            .check_same(memory.driver(), "MulticastObject::bind")?;
        self.driver()
            .check_same(device.driver(), "MulticastObject::bind")?;
        let bytes = memory.byte_len();
        let total = self.byte_len();
        if offset.checked_add(bytes).is_none_or(|end| end > total) {
            let reason = format!("{bytes} bytes at offset {offset} do not fit into {total} bytes");
            return Err(Error::argument("MulticastObject::bind", reason));
        }
        let driver = self.driver();
        let raw = self.as_raw();
        let handle = memory.as_raw();
        let number = device.as_raw();
        if driver.has(Function::cuMulticastBindMem_v2) {
            // SAFETY: the binding owns the object and the memory, so both outlive it.
            unsafe {
                call!(
                    driver,
                    cuMulticastBindMem_v2(raw, number, offset, handle, 0, bytes, 0)
                )
            }?;
        } else {
            // SAFETY: the binding owns the object and the memory, so both outlive it.
            unsafe { call!(driver, cuMulticastBindMem(raw, offset, handle, 0, bytes, 0)) }?;
        }
        let object = self.clone();
        let device = device.clone();
        let memory = memory.clone();
        Ok(MulticastBinding {
            object,
            device,
            offset,
            memory,
            is_bound: true,
        })
    }

    /// Returns the size in bytes of the memory that each device binds.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.memory.byte_len()
    }

    /// Returns the driver.
    #[must_use]
    pub fn driver(&self) -> &Driver {
        self.memory.driver()
    }

    /// Returns the raw handle without giving up ownership.
    #[must_use]
    pub fn as_raw(&self) -> CUmemGenericAllocationHandle {
        self.memory.as_raw()
    }

    /// Releases this reference to the object, as [`Drop`] does, and returns any error.
    ///
    /// CUDA: `cuMemRelease`.
    ///
    /// # Errors
    ///
    /// Returns the object together with the error if clones, bindings or mappings of it exist or
    /// the driver fails.
    pub fn close(self) -> Result<(), Returned<Self>> {
        self.memory
            .close()
            .map_err(|returned| returned.map(|memory| Self { memory }))
    }
}

impl MulticastBinding {
    /// Returns the bound memory.
    #[must_use]
    pub fn memory(&self) -> &PhysicalMemory {
        &self.memory
    }

    /// Unbinds the memory, as [`Drop`] does, and returns any error.
    ///
    /// CUDA: `cuMulticastUnbind`.
    ///
    /// # Errors
    ///
    /// Returns the binding together with the error if the driver fails.
    #[doc(alias = "cuMulticastUnbind")]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.unbind().map_err(|error| Returned::new(self, error))
    }

    fn unbind(&mut self) -> Result<()> {
        let raw = self.object.as_raw();
        let device = self.device.as_raw();
        let offset = self.offset;
        let bytes = self.memory.byte_len();
        // SAFETY: the memory is bound there, and the binding is not used after this call.
        unsafe {
            call!(
                self.object.driver(),
                cuMulticastUnbind(raw, device, offset, bytes)
            )
        }?;
        self.is_bound = false;
        Ok(())
    }
}

impl fmt::Debug for MulticastObject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "MulticastObject({} bytes, handle {:#x})",
            self.byte_len(),
            self.as_raw()
        )
    }
}

impl fmt::Debug for MulticastBinding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "MulticastBinding({:?} at {} of {:?})",
            self.memory, self.offset, self.object
        )
    }
}

impl Drop for MulticastBinding {
    fn drop(&mut self) {
        if self.is_bound {
            release(|| self.unbind());
        }
    }
}
