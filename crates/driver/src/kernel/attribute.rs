//! The attributes of a kernel.

use curium_sys::CUfunction_attribute;

use super::{Carveout, ClusterScheduling, Inner, Kernel, Owner, SharedMemoryMode};
use crate::call;
use crate::{CacheConfig, ComputeCapability, Device, Dimensions, Error, Result};

macro_rules! attributes {
    ($($(#[$doc:meta])* $name:ident: $ty:ty = $attribute:ident as $convert:expr;)*) => {
        impl<S> Kernel<S> {
            $(
                $(#[$doc])*
                ///
                #[doc = concat!("CUDA: `cuKernelGetAttribute` or `cuFuncGetAttribute` of `", stringify!($attribute), "`.")]
                ///
                /// # Errors
                ///
                /// As for [`Kernel::attribute`].
                #[inline]
                pub fn $name(&self, device: &Device) -> Result<$ty> {
                    let value = self.attribute(device, CUfunction_attribute::$attribute)?;
                    let convert: fn(i32) -> $ty = $convert;
                    Ok(convert(value))
                }
            )*
        }
    };
}

attributes! {
    /// The threads that a block may have at most, given what the kernel takes.
    max_threads_per_block: u32 = CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK as count;
    /// The shared memory in bytes that the kernel declares by itself; dynamic shared memory comes on top.
    static_shared_bytes: usize = CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES as bytes;
    /// The constant memory in bytes that the kernel declares.
    constant_bytes: usize = CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES as bytes;
    /// The local memory in bytes that each thread takes.
    local_bytes: usize = CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES as bytes;
    /// The registers that each thread takes.
    registers: u32 = CU_FUNC_ATTRIBUTE_NUM_REGS as count;
    /// The architecture that the kernel's PTX was compiled for.
    ptx_version: ComputeCapability = CU_FUNC_ATTRIBUTE_PTX_VERSION as capability;
    /// The architecture that the kernel's machine code was compiled for.
    binary_version: ComputeCapability = CU_FUNC_ATTRIBUTE_BINARY_VERSION as capability;
    /// `true` if the kernel was compiled to cache loads of global memory in the L1 cache.
    caches_loads: bool = CU_FUNC_ATTRIBUTE_CACHE_MODE_CA as flag;
    /// The dynamic shared memory in bytes that a launch may ask for. [`Kernel::set_max_dynamic_shared_bytes`] raises it.
    max_dynamic_shared_bytes: usize = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as bytes;
    /// The division between shared memory and L1 cache while the kernel runs.
    preferred_carveout: Carveout = CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT as Carveout::from_raw;
    /// `true` if a launch must say how large its clusters are. Since 11.8.
    cluster_size_must_be_set: bool = CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET as flag;
    /// `true` if clusters larger than every device can run are allowed. Since 11.8.
    non_portable_cluster_size_allowed: bool = CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED as flag;
    /// The scheduling policy for clusters. Since 11.8.
    cluster_scheduling: ClusterScheduling =
        CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE as ClusterScheduling::from_raw;
    /// `true` if graph nodes of the kernel can be changed by other kernels.
    device_node_update_supported: bool = CU_FUNC_ATTRIBUTE_DEVICE_NODE_UPDATE_SUPPORTED as flag;
    /// The limit of a block's shared memory.
    shared_memory_mode: SharedMemoryMode = CU_FUNC_ATTRIBUTE_SHARED_MEMORY_MODE as SharedMemoryMode::from_raw;
}

impl<S> Kernel<S> {
    /// One attribute on `device`, in the unit that CUDA documents for it.
    ///
    /// CUDA: `cuKernelGetAttribute` or `cuFuncGetAttribute`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for an attribute that this driver does not know; an argument error if the kernel is bound to a
    /// context on another device.
    #[doc(alias = "cuKernelGetAttribute")]
    #[doc(alias = "cuFuncGetAttribute")]
    #[inline]
    pub fn attribute(&self, device: &Device, attribute: CUfunction_attribute) -> Result<i32> {
        self.inner().attribute(device, attribute)
    }

    /// Sets one attribute on `device`, for all of its contexts if the kernel is one of a library.
    ///
    /// CUDA: `cuKernelSetAttribute` or `cuFuncSetAttribute`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the attribute cannot be set, or not to this value; an argument error if the kernel is bound to a
    /// context on another device.
    #[doc(alias = "cuKernelSetAttribute")]
    #[doc(alias = "cuFuncSetAttribute")]
    #[inline]
    pub fn set_attribute(&self, device: &Device, attribute: CUfunction_attribute, value: i32) -> Result<()> {
        self.inner().set_attribute(device, attribute, value)
    }

    /// Sets how much dynamic shared memory in bytes a launch may ask for. More than 48 KiB must be asked for so.
    ///
    /// CUDA: `cuKernelSetAttribute` or `cuFuncSetAttribute`.
    ///
    /// # Errors
    ///
    /// As for [`Kernel::set_attribute`], if with the kernel's own shared memory this is more than a block can have.
    #[inline]
    pub fn set_max_dynamic_shared_bytes(&self, device: &Device, bytes: u32) -> Result<()> {
        let value = i32::try_from(bytes).unwrap_or(i32::MAX);
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        self.set_attribute(device, attribute, value)
    }

    /// Sets how shared memory and L1 cache are divided while the kernel runs. The driver may choose another division that it needs.
    ///
    /// CUDA: `cuKernelSetAttribute` or `cuFuncSetAttribute`.
    ///
    /// # Errors
    ///
    /// As for [`Kernel::set_attribute`], if the part is above 100 percent.
    #[inline]
    pub fn set_preferred_carveout(&self, device: &Device, carveout: Carveout) -> Result<()> {
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
        self.set_attribute(device, attribute, carveout.as_raw())
    }

    /// Returns the size of clusters in blocks that the kernel was compiled for, or that was set; `None` if there is none. Since 11.8.
    ///
    /// CUDA: `cuKernelGetAttribute` or `cuFuncGetAttribute`, three times.
    ///
    /// # Errors
    ///
    /// As for [`Kernel::attribute`].
    #[doc(alias = "CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH")]
    #[inline]
    pub fn required_cluster(&self, device: &Device) -> Result<Option<Dimensions>> {
        let part = |attribute| self.attribute(device, attribute).map(count);
        let cluster = Dimensions {
            x: part(CUfunction_attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH)?,
            y: part(CUfunction_attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT)?,
            z: part(CUfunction_attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH)?,
        };
        Ok((cluster.total() > 0).then_some(cluster))
    }

    /// Sets the size of clusters in blocks that every launch has, if the kernel was not compiled for one. Since 11.8.
    ///
    /// CUDA: `cuKernelSetAttribute` or `cuFuncSetAttribute`, three times.
    ///
    /// # Errors
    ///
    /// As for [`Kernel::set_attribute`], if the kernel was compiled for another size.
    #[inline]
    pub fn set_required_cluster(&self, device: &Device, cluster: impl Into<Dimensions>) -> Result<()> {
        let cluster = cluster.into();
        for (attribute, value) in [
            (CUfunction_attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, cluster.x),
            (CUfunction_attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, cluster.y),
            (CUfunction_attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, cluster.z),
        ] {
            self.set_attribute(device, attribute, i32::try_from(value).unwrap_or(i32::MAX))?;
        }
        Ok(())
    }

    /// Sets whether clusters larger than every device can run are allowed. Since 11.8.
    ///
    /// CUDA: `cuKernelSetAttribute` or `cuFuncSetAttribute`.
    ///
    /// # Errors
    ///
    /// As for [`Kernel::set_attribute`].
    #[inline]
    pub fn set_non_portable_cluster_size_allowed(&self, device: &Device, allowed: bool) -> Result<()> {
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
        self.set_attribute(device, attribute, i32::from(allowed))
    }

    /// Sets how clusters are spread over the device. Since 11.8.
    ///
    /// CUDA: `cuKernelSetAttribute` or `cuFuncSetAttribute`.
    ///
    /// # Errors
    ///
    /// As for [`Kernel::set_attribute`].
    #[inline]
    pub fn set_cluster_scheduling(&self, device: &Device, scheduling: ClusterScheduling) -> Result<()> {
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
        self.set_attribute(device, attribute, scheduling.as_raw().0.cast_signed())
    }

    /// Sets what the memory of L1 cache and shared memory is preferred for while the kernel runs on `device`.
    ///
    /// CUDA: `cuKernelSetCacheConfig` or `cuFuncSetCacheConfig`.
    ///
    /// # Errors
    ///
    /// An argument error if the kernel is bound to a context on another device.
    #[doc(alias = "cuKernelSetCacheConfig")]
    #[doc(alias = "cuFuncSetCacheConfig")]
    #[inline]
    pub fn set_cache_config(&self, device: &Device, config: CacheConfig) -> Result<()> {
        let kernel = self.inner();
        kernel.expect_device("Kernel::set_cache_config", device)?;
        let (raw, driver, raw_config) = (kernel.raw.raw(), &kernel.driver, config.as_raw());
        match kernel.owner {
            // SAFETY: the kernel is live and one of a library, and the device is of its driver.
            Owner::Library(_) => unsafe {
                call!(driver, cuKernelSetCacheConfig(raw.cast(), raw_config, device.as_raw()))
            },
            // SAFETY: the function is live.
            Owner::Module(_) | Owner::LibraryIn(..) => unsafe { call!(driver, cuFuncSetCacheConfig(raw, raw_config)) },
        }
        .map_err(|error| error.about(format!("{config:?} of kernel `{}`", kernel.name)))
    }

    /// Sets how much shared memory a block may ask for.
    ///
    /// CUDA: `cuKernelSetAttribute` or `cuFuncSetAttribute`.
    ///
    /// # Errors
    ///
    /// As for [`Kernel::set_attribute`]; older drivers do not know the attribute.
    #[inline]
    pub fn set_shared_memory_mode(&self, device: &Device, mode: SharedMemoryMode) -> Result<()> {
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_MEMORY_MODE;
        self.set_attribute(device, attribute, mode.as_raw().0.cast_signed())
    }
}

impl Inner {
    #[inline]
    pub(crate) fn attribute(&self, device: &Device, attribute: CUfunction_attribute) -> Result<i32> {
        self.expect_device("Kernel::attribute", device)?;
        let mut value = 0;
        let (raw, driver, place) = (self.raw.raw(), &self.driver, &raw mut value);
        match self.owner {
            // SAFETY: the kernel is live and one of a library, the device is of its driver, and `place` is valid for writes.
            Owner::Library(_) => unsafe {
                call!(driver, cuKernelGetAttribute(place, attribute, raw.cast(), device.as_raw()))
            },
            // SAFETY: the function is live, and `place` is valid for writes.
            Owner::Module(_) | Owner::LibraryIn(..) => unsafe {
                call!(driver, cuFuncGetAttribute(place, attribute, raw))
            },
        }
        .map_err(|error| error.about(format!("attribute {} of kernel `{}`", attribute.0, self.name)))?;
        Ok(value)
    }

    #[inline]
    fn set_attribute(&self, device: &Device, attribute: CUfunction_attribute, value: i32) -> Result<()> {
        self.expect_device("Kernel::set_attribute", device)?;
        let (raw, driver) = (self.raw.raw(), &self.driver);
        match self.owner {
            // SAFETY: the kernel is live and one of a library, and the device is of its driver.
            Owner::Library(_) => unsafe {
                call!(driver, cuKernelSetAttribute(attribute, value, raw.cast(), device.as_raw()))
            },
            // SAFETY: the function is live.
            Owner::Module(_) | Owner::LibraryIn(..) => unsafe {
                call!(driver, cuFuncSetAttribute(raw, attribute, value))
            },
        }
        .map_err(|error| error.about(format!("attribute {} of kernel `{}` to be {value}", attribute.0, self.name)))
    }

    /// Returns an error if the kernel is bound to a context on another device than `device`.
    #[inline]
    fn expect_device(&self, operation: &'static str, device: &Device) -> Result<()> {
        self.driver.expect_same(device.driver(), operation)?;
        let own = match &self.owner {
            Owner::Library(_) => return Ok(()),
            Owner::Module(module) => module.context().device(),
            Owner::LibraryIn(_, context) => context.device(),
        };
        if own.as_raw() == device.as_raw() {
            return Ok(());
        }
        let (own, device) = (own.as_raw(), device.as_raw());
        Err(Error::argument(operation, format!("kernel `{}` is on device {own}, not {device}", self.name)))
    }
}

#[inline]
fn count(value: i32) -> u32 {
    value.try_into().unwrap_or_default()
}

#[inline]
fn bytes(value: i32) -> usize {
    value.try_into().unwrap_or_default()
}

#[inline]
fn flag(value: i32) -> bool {
    value != 0
}

/// Returns the architecture that the driver writes as ten times the generation and the variant.
#[inline]
fn capability(value: i32) -> ComputeCapability {
    ComputeCapability { major: count(value) / 10, minor: count(value) % 10 }
}
