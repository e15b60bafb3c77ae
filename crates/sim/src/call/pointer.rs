//! Pointer attributes.

use std::ffi::c_void;

use curium_sys::{
    CUcontext, CUdeviceptr, CUmemoryPool, CUmemorytype, CUpointer_attribute, CUresult, CudaVersion,
};

use crate::argument::{ConstPointer, Pointer, elements};
use crate::call::Call;
use crate::handle::Id;
use crate::memory::{Allocation, Capability, Purpose, Records};
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuPointerGetAttribute(
        &self,
        value: Pointer<c_void>,
        attribute: CUpointer_attribute,
        address: CUdeviceptr,
    ) -> Result {
        let value = value.required()?;
        let allocation = self
            .allocation_at(address)
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        self.write_attribute(value, attribute, Some(&allocation), address)
    }

    /// Writes the attributes of an address. For an unknown address, the values are zero.
    pub(crate) fn cuPointerGetAttributes(
        &self,
        count: u32,
        attributes: Pointer<CUpointer_attribute>,
        values: Pointer<*mut c_void>,
        address: CUdeviceptr,
    ) -> Result {
        if count == 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: by the contract of the C function, the array has `count` attributes.
        let attributes = unsafe { elements(attributes.as_ptr().cast_const(), count as usize) }?;
        // SAFETY: by the contract of the C function, the array has `count` pointers to values.
        let values = unsafe { elements(values.as_ptr().cast_const(), count as usize) }?;
        let allocation = self.allocation_at(address);
        for (attribute, value) in attributes.iter().zip(values) {
            // SAFETY: each pointer is to a value of its attribute's type.
            let value = unsafe { Pointer::from_raw(*value) };
            let value = value.required()?;
            // Attributes that a kind of memory lacks are zero here, and an error only in the other
            // function.
            let is_unseen = allocation
                .as_ref()
                .is_some_and(|allocation| !allocation.purpose.is_on_host());
            let is_in_host_pool = allocation
                .as_ref()
                .is_some_and(|allocation| matches!(allocation.purpose, Purpose::HostPool(_)));
            match *attribute {
                CUpointer_attribute::CU_POINTER_ATTRIBUTE_HOST_POINTER if is_unseen => {
                    write_as(value, 0_u64)?;
                }
                CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_POINTER
                | CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE
                    if is_in_host_pool =>
                {
                    write_as(value, 0_u64)?;
                }
                attribute => {
                    self.write_attribute(value, attribute, allocation.as_ref(), address)?;
                }
            }
        }
        Ok(())
    }

    /// Sets an attribute of memory. As on hardware, memory of pools does not support it.
    pub(crate) fn cuPointerSetAttribute(
        &self,
        value: ConstPointer<c_void>,
        attribute: CUpointer_attribute,
        address: CUdeviceptr,
    ) -> Result {
        if attribute != CUpointer_attribute::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || value.is_null() {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: the value of this attribute is a number, and the pointer is not null.
        let value = unsafe { value.as_ptr().cast::<u32>().read_unaligned() };
        self.memory().set_synchronous(address, value != 0)
    }
}

impl Call<'_> {
    fn allocation_at(&self, address: CUdeviceptr) -> Option<Allocation> {
        self.memory()
            .find(address)
            .filter(|allocation| !allocation.is_retired)
    }

    /// Writes the value of one attribute, in the type that it has.
    fn write_attribute(
        &self,
        value: Pointer<c_void>,
        attribute: CUpointer_attribute,
        allocation: Option<&Allocation>,
        address: CUdeviceptr,
    ) -> Result {
        use CUpointer_attribute as Attribute;

        if since(attribute).is_some_and(|version| self.config().driver_version < version) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        match attribute {
            Attribute::CU_POINTER_ATTRIBUTE_ACCESS_FLAGS => {
                write_as(value, self.capability(allocation)?.rights)
            }
            Attribute::CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES => {
                write_as(value, u64::from(self.capability(allocation)?.handle_types))
            }
            Attribute::CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE => {
                write_as(value, u32::from(self.capability(allocation)?.is_opened))
            }
            Attribute::CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE => {
                write_as(value, u32::from(self.capability(allocation)?.is_on_bus))
            }
            Attribute::CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE => write_as(
                value,
                u32::from(self.capability(allocation)?.is_decompressed),
            ),
            Attribute::CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR => {
                write_as(value, allocation.map_or(0, |allocation| allocation.base))
            }
            Attribute::CU_POINTER_ATTRIBUTE_MAPPING_SIZE => write_as(
                value,
                allocation.map_or(0, |allocation| allocation.size as usize),
            ),
            // Each allocation is a separate block here.
            Attribute::CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID => {
                write_as(value, allocation.map_or(0, |allocation| allocation.id))
            }
            attribute => write_allocation_attribute(value, attribute, allocation, address),
        }
    }

    /// Returns the ways in which memory can be shared, for the device of the current context.
    fn capability(&self, allocation: Option<&Allocation>) -> Result<Capability> {
        let Some(allocation) = allocation else {
            return Ok(Capability::default());
        };
        let device = match self.current() {
            Ok(current) => self.lock().contexts.live_context(current)?.device(),
            Err(_) => allocation.owner.device,
        };
        Ok(self.memory().capability(allocation, device))
    }
}

/// Returns the CUDA version that introduced an attribute, if that is newer than the oldest one.
fn since(attribute: CUpointer_attribute) -> Option<CudaVersion> {
    match attribute {
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_MAPPING_SIZE
        | CUpointer_attribute::CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR
        | CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID => {
            Some(CudaVersion::new(12, 0))
        }
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE => {
            Some(CudaVersion::new(12, 8))
        }
        _ => None,
    }
}

/// Writes an attribute that depends only on the allocation.
fn write_allocation_attribute(
    value: Pointer<c_void>,
    attribute: CUpointer_attribute,
    allocation: Option<&Allocation>,
    address: CUdeviceptr,
) -> Result {
    use CUpointer_attribute as Attribute;

    let is_on_host = allocation.is_some_and(|allocation| allocation.purpose.is_on_host());
    let is_managed = allocation.is_some_and(|allocation| allocation.purpose.is_managed());
    match attribute {
        Attribute::CU_POINTER_ATTRIBUTE_CONTEXT => {
            // Memory of a pool belongs to no context.
            let allocation = allocation.filter(|allocation| !allocation.purpose.is_pooled());
            let context: CUcontext = allocation.map_or(std::ptr::null_mut(), |allocation| {
                allocation.owner.context.as_raw()
            });
            write_as(value, context)
        }
        Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE => write_as(value, memory_type(allocation)),
        // As on hardware, memory of host pools has no address of the device and no handle.
        Attribute::CU_POINTER_ATTRIBUTE_DEVICE_POINTER
        | Attribute::CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE
            if allocation
                .is_some_and(|allocation| matches!(allocation.purpose, Purpose::HostPool(_))) =>
        {
            Err(CUresult::CUDA_ERROR_INVALID_VALUE)
        }
        Attribute::CU_POINTER_ATTRIBUTE_DEVICE_POINTER => {
            write_as(value, allocation.map_or(0, |_| address))
        }
        Attribute::CU_POINTER_ATTRIBUTE_HOST_POINTER if allocation.is_some() && !is_on_host => {
            Err(CUresult::CUDA_ERROR_INVALID_VALUE)
        }
        Attribute::CU_POINTER_ATTRIBUTE_HOST_POINTER => {
            write_as(value, allocation.map_or(0, |_| address))
        }
        Attribute::CU_POINTER_ATTRIBUTE_BUFFER_ID => {
            write_as(value, allocation.map_or(0, |allocation| allocation.id))
        }
        Attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED => write_as(value, u32::from(is_managed)),
        Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL => write_as(
            value,
            allocation.map_or(0, |allocation| allocation.owner.device as i32),
        ),
        Attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR => {
            write_as(value, allocation.map_or(0, |allocation| allocation.base))
        }
        Attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE => write_as(
            value,
            allocation.map_or(0, |allocation| allocation.size as usize),
        ),
        Attribute::CU_POINTER_ATTRIBUTE_MAPPED => write_as(value, u32::from(allocation.is_some())),
        Attribute::CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE => write_as(value, pool_handle(allocation)),
        Attribute::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS => write_as(
            value,
            u32::from(allocation.is_some_and(|allocation| allocation.is_synchronous)),
        ),
        _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
    }
}

fn write_as<T>(output: Pointer<c_void>, value: T) -> Result {
    // SAFETY: the caller of the C function passes a pointer to the attribute's type, which is `T`.
    unsafe { output.cast::<T>() }.write(value)
}

fn memory_type(allocation: Option<&Allocation>) -> u32 {
    match allocation.map(|allocation| allocation.purpose) {
        None => 0,
        Some(Purpose::Pinned { .. } | Purpose::Registered { .. } | Purpose::HostPool(_)) => {
            CUmemorytype::CU_MEMORYTYPE_HOST.0
        }
        Some(_) => CUmemorytype::CU_MEMORYTYPE_DEVICE.0,
    }
}

fn pool_handle(allocation: Option<&Allocation>) -> CUmemoryPool {
    allocation
        .and_then(Records::allocation_pool)
        .map_or(std::ptr::null_mut(), Id::as_raw)
}
