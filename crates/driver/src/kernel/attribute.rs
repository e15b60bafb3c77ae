//! Kernel attributes.

use std::borrow::Cow;

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
    /// Returns the maximum number of threads per block, given the resources that the kernel uses.
    max_threads_per_block: u32 = CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK as count;
    /// Returns the statically allocated shared memory per block in bytes, excluding dynamic shared
    /// memory.
    static_shared_bytes: usize = CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES as bytes;
    /// Returns the size of the user-declared constant memory in bytes.
    constant_bytes: usize = CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES as bytes;
    /// Returns the local memory per thread in bytes.
    local_bytes: usize = CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES as bytes;
    /// Returns the number of registers per thread.
    registers: u32 = CU_FUNC_ATTRIBUTE_NUM_REGS as count;
    /// Returns the PTX architecture that the kernel was compiled for.
    ptx_version: ComputeCapability = CU_FUNC_ATTRIBUTE_PTX_VERSION as capability;
    /// Returns the machine code architecture that the kernel was compiled for.
    binary_version: ComputeCapability = CU_FUNC_ATTRIBUTE_BINARY_VERSION as capability;
    /// Returns `true` if the kernel was compiled to cache global loads in the L1 cache.
    caches_loads: bool = CU_FUNC_ATTRIBUTE_CACHE_MODE_CA as flag;
    /// Returns the maximum dynamic shared memory of a launch in bytes.
    /// [`Kernel::set_max_dynamic_shared_bytes`] raises it.
    max_dynamic_shared_bytes: usize = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as bytes;
    /// Returns the preferred split between shared memory and L1 cache.
    preferred_carveout: Carveout = CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT as Carveout::from_raw;
    /// Returns `true` if a launch must set the cluster size. Since 11.8.
    cluster_size_must_be_set: bool = CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET as flag;
    /// Returns `true` if cluster sizes that are not supported by every device are allowed. Since
    /// 11.8.
    non_portable_cluster_size_allowed: bool = CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED as flag;
    /// Returns the scheduling policy for clusters. Since 11.8.
    cluster_scheduling: ClusterScheduling =
        CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE as ClusterScheduling::from_raw;
    /// Returns `true` if graph nodes of the kernel can be updated from the device.
    device_node_update_supported: bool = CU_FUNC_ATTRIBUTE_DEVICE_NODE_UPDATE_SUPPORTED as flag;
    /// Returns the policy for the maximum shared memory of a block.
    shared_memory_mode: SharedMemoryMode = CU_FUNC_ATTRIBUTE_SHARED_MEMORY_MODE as SharedMemoryMode::from_raw;
}

impl<S> Kernel<S> {
    /// Returns an attribute on `device`, in the unit that CUDA documents.
    ///
    /// CUDA: `cuKernelGetAttribute` or `cuFuncGetAttribute`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for an attribute that this driver does not support; an argument
    /// error if the kernel is bound to a context on another device.
    #[doc(alias = "cuKernelGetAttribute")]
    #[doc(alias = "cuFuncGetAttribute")]
    #[doc(alias = "cudaFuncGetAttributes")]
    pub fn attribute(&self, device: &Device, attribute: CUfunction_attribute) -> Result<i32> {
        self.inner().attribute(device, attribute)
    }

    /// Sets an attribute on `device`. For a library kernel, it applies to all contexts of the
    /// device.
    ///
    /// CUDA: `cuKernelSetAttribute` or `cuFuncSetAttribute`.
    ///
    /// # Safety
    ///
    /// Every later launch of the kernel on `device`, including those of a
    /// [`SafeKernel`](crate::SafeKernel), meets the requirements of [`Kernel::launch`] with this
    /// value.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the attribute or the value is not allowed; an argument error
    /// if the kernel is bound to a context on another device.
    #[doc(alias = "cuKernelSetAttribute")]
    #[doc(alias = "cuFuncSetAttribute")]
    #[doc(alias = "cudaFuncSetAttribute")]
    pub unsafe fn set_attribute(
        &self,
        device: &Device,
        attribute: CUfunction_attribute,
        value: i32,
    ) -> Result<()> {
        self.inner().set_attribute(device, attribute, value)
    }

    /// Sets the maximum dynamic shared memory of a launch in bytes. Required to opt in to more than
    /// 48 KiB.
    ///
    /// CUDA: `cuKernelSetAttribute` or `cuFuncSetAttribute`.
    ///
    /// # Errors
    ///
    /// As for [`Kernel::set_attribute`], if the sum with the static shared memory exceeds the limit
    /// of a block.
    pub fn set_max_dynamic_shared_bytes(&self, device: &Device, bytes: u32) -> Result<()> {
        let value = i32::try_from(bytes).unwrap_or(i32::MAX);
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        self.inner().set_attribute(device, attribute, value)
    }

    /// Sets the preferred split between shared memory and L1 cache. The driver may choose another
    /// split if the kernel requires it.
    ///
    /// CUDA: `cuKernelSetAttribute` or `cuFuncSetAttribute`.
    ///
    /// # Errors
    ///
    /// As for [`Kernel::set_attribute`], if the percentage is above 100.
    pub fn set_preferred_carveout(&self, device: &Device, carveout: Carveout) -> Result<()> {
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
        self.inner()
            .set_attribute(device, attribute, carveout.as_raw())
    }

    /// Returns the required cluster size in blocks, set at compile time or with
    /// [`Kernel::set_required_cluster`]; `None` if there is none. Since 11.8.
    ///
    /// CUDA: `cuKernelGetAttribute` or `cuFuncGetAttribute`, three times.
    ///
    /// # Errors
    ///
    /// As for [`Kernel::attribute`].
    #[doc(alias = "CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH")]
    pub fn required_cluster(&self, device: &Device) -> Result<Option<Dimensions>> {
        use CUfunction_attribute as Attribute;
        let x = self.attribute(device, Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH)?;
        let y = self.attribute(device, Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT)?;
        let z = self.attribute(device, Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH)?;
        let cluster = Dimensions {
            x: count(x),
            y: count(y),
            z: count(z),
        };
        Ok((cluster.total() > 0).then_some(cluster))
    }

    /// Sets the required cluster size in blocks, if it was not set at compile time. Since 11.8.
    ///
    /// CUDA: `cuKernelSetAttribute` or `cuFuncSetAttribute`, three times.
    ///
    /// # Safety
    ///
    /// As for [`Kernel::set_attribute`].
    ///
    /// # Errors
    ///
    /// As for [`Kernel::set_attribute`], if the kernel was compiled for another cluster size.
    pub unsafe fn set_required_cluster(
        &self,
        device: &Device,
        cluster: impl Into<Dimensions>,
    ) -> Result<()> {
        let cluster = cluster.into();
        for (attribute, value) in [
            (
                CUfunction_attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
                cluster.x,
            ),
            (
                CUfunction_attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
                cluster.y,
            ),
            (
                CUfunction_attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH,
                cluster.z,
            ),
        ] {
            self.inner().set_attribute(
                device,
                attribute,
                i32::try_from(value).unwrap_or(i32::MAX),
            )?;
        }
        Ok(())
    }

    /// Allows or forbids cluster sizes that are not supported by every device. Since 11.8.
    ///
    /// CUDA: `cuKernelSetAttribute` or `cuFuncSetAttribute`.
    ///
    /// # Errors
    ///
    /// As for [`Kernel::set_attribute`].
    pub fn set_non_portable_cluster_size_allowed(
        &self,
        device: &Device,
        allowed: bool,
    ) -> Result<()> {
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
        self.inner()
            .set_attribute(device, attribute, i32::from(allowed))
    }

    /// Sets the scheduling policy for clusters. Since 11.8.
    ///
    /// CUDA: `cuKernelSetAttribute` or `cuFuncSetAttribute`.
    ///
    /// # Errors
    ///
    /// As for [`Kernel::set_attribute`].
    pub fn set_cluster_scheduling(
        &self,
        device: &Device,
        scheduling: ClusterScheduling,
    ) -> Result<()> {
        let attribute =
            CUfunction_attribute::CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
        self.inner()
            .set_attribute(device, attribute, scheduling.as_raw().0.cast_signed())
    }

    /// Sets the preferred cache configuration of the kernel on `device`.
    ///
    /// CUDA: `cuKernelSetCacheConfig` or `cuFuncSetCacheConfig`.
    ///
    /// # Errors
    ///
    /// An argument error if the kernel is bound to a context on another device.
    #[doc(alias = "cuKernelSetCacheConfig")]
    #[doc(alias = "cuFuncSetCacheConfig")]
    #[doc(alias = "cudaFuncSetCacheConfig")]
    pub fn set_cache_config(&self, device: &Device, config: CacheConfig) -> Result<()> {
        let kernel = self.inner().bound_on("Kernel::set_cache_config", device)?;
        let raw = kernel.raw.raw();
        let driver = &kernel.driver;
        let raw_config = config.as_raw();
        match kernel.owner {
            // SAFETY: the kernel is live and belongs to a library, and the device belongs to its
            // driver.
            Owner::Library(_) => unsafe {
                call!(
                    driver,
                    cuKernelSetCacheConfig(raw.cast(), raw_config, device.as_raw())
                )
            },
            // SAFETY: the function is live.
            Owner::Module(_) | Owner::LibraryIn(..) => unsafe {
                call!(driver, cuFuncSetCacheConfig(raw, raw_config))
            },
        }
        .map_err(|error| error.about(format!("{config:?} of kernel `{}`", kernel.name)))
    }

    /// Sets the policy for the maximum shared memory of a block.
    ///
    /// CUDA: `cuKernelSetAttribute` or `cuFuncSetAttribute`.
    ///
    /// # Errors
    ///
    /// As for [`Kernel::set_attribute`]; older drivers do not support the attribute.
    pub fn set_shared_memory_mode(&self, device: &Device, mode: SharedMemoryMode) -> Result<()> {
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_MEMORY_MODE;
        self.inner()
            .set_attribute(device, attribute, mode.as_raw().0.cast_signed())
    }
}

impl Inner {
    pub(crate) fn attribute(
        &self,
        device: &Device,
        attribute: CUfunction_attribute,
    ) -> Result<i32> {
        let kernel = self.bound_on("Kernel::attribute", device)?;
        let mut value = 0;
        let raw = kernel.raw.raw();
        let driver = &kernel.driver;
        match kernel.owner {
            // SAFETY: the kernel is live and belongs to a library, the device belongs to its
            // driver, and `value` is valid for writes.
            Owner::Library(_) => unsafe {
                call!(
                    driver,
                    cuKernelGetAttribute(&raw mut value, attribute, raw.cast(), device.as_raw())
                )
            },
            // SAFETY: the function is live, and `value` is valid for writes.
            Owner::Module(_) | Owner::LibraryIn(..) => unsafe {
                call!(driver, cuFuncGetAttribute(&raw mut value, attribute, raw))
            },
        }
        .map_err(|error| {
            error.about(format!(
                "attribute {} of kernel `{}`",
                attribute.0, self.name
            ))
        })?;
        Ok(value)
    }

    fn set_attribute(
        &self,
        device: &Device,
        attribute: CUfunction_attribute,
        value: i32,
    ) -> Result<()> {
        let kernel = self.bound_on("Kernel::set_attribute", device)?;
        let raw = kernel.raw.raw();
        let driver = &kernel.driver;
        match kernel.owner {
            // SAFETY: the kernel is live and belongs to a library, and the device belongs to its
            // driver.
            Owner::Library(_) => unsafe {
                call!(
                    driver,
                    cuKernelSetAttribute(attribute, value, raw.cast(), device.as_raw())
                )
            },
            // SAFETY: the function is live.
            Owner::Module(_) | Owner::LibraryIn(..) => unsafe {
                call!(driver, cuFuncSetAttribute(raw, attribute, value))
            },
        }
        .map_err(|error| {
            error.about(format!(
                "attribute {} of kernel `{}` to be {value}",
                attribute.0, self.name
            ))
        })
    }

    /// Returns an error if the kernel is bound to a context on another device than `device`.
    /// Returns the kernel for use on `device`: bound to the primary context if the driver has no
    /// libraries.
    fn bound_on(&self, operation: &'static str, device: &Device) -> Result<Cow<'_, Self>> {
        self.check_device(operation, device)?;
        if !self.is_unbound() {
            return Ok(Cow::Borrowed(self));
        }
        self.bound_to(operation, &device.primary_context()?)
            .map(Cow::Owned)
    }

    fn check_device(&self, operation: &'static str, device: &Device) -> Result<()> {
        self.driver.check_same(device.driver(), operation)?;
        let kernel_device = match &self.owner {
            Owner::Library(_) => return Ok(()),
            Owner::Module(module) => module.context().device(),
            Owner::LibraryIn(_, context) => context.device(),
        };
        if kernel_device.as_raw() == device.as_raw() {
            return Ok(());
        }
        let reason = format!(
            "kernel `{}` is on device {}, not {}",
            self.name,
            kernel_device.as_raw(),
            device.as_raw()
        );
        Err(Error::argument(operation, reason))
    }
}

fn count(value: i32) -> u32 {
    value.try_into().unwrap_or_default()
}

fn bytes(value: i32) -> usize {
    value.try_into().unwrap_or_default()
}

fn flag(value: i32) -> bool {
    value != 0
}

/// Converts an architecture that is encoded as ten times the major version plus the minor version.
fn capability(value: i32) -> ComputeCapability {
    ComputeCapability {
        major: count(value) / 10,
        minor: count(value) % 10,
    }
}
