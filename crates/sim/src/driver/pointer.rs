//! Pointer attributes.

use std::ffi::c_void;

use curium_sys::{
    CUcontext, CUdeviceptr, CUmemoryPool, CUmemorytype, CUpointer_attribute, CUresult, CudaVersion,
};

use crate::argument::{ConstPointer, Pointer, elements};
use crate::driver::{Driver, Result};
use crate::handle::Id;
use crate::memory::{Allocation, Capability, Purpose, Records};

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Driver {
    pub(crate) fn cuPointerGetAttribute(
        &self,
        value: Pointer<c_void>,
        attribute: CUpointer_attribute,
        address: CUdeviceptr,
    ) -> Result {
        let value = value.required()?;
        let found = self
            .allocation_at(address)
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        self.put_attribute(value, attribute, Some(&found), address)
    }

    /// Writes the attributes of an address. For an unknown address, the values are zero.
    pub(crate) fn cuPointerGetAttributes(
        &self,
        count: u32,
        attributes: Pointer<CUpointer_attribute>,
        values: Pointer<*mut c_void>,
        address: CUdeviceptr,
    ) -> Result {
        // SAFETY: the caller passes `count` attributes.
        let attributes = unsafe { elements(attributes.as_ptr().cast_const(), count as usize) }?;
        // SAFETY: the caller passes `count` pointers to values.
        let values = unsafe { elements(values.as_ptr().cast_const(), count as usize) }?;
        let found = self.allocation_at(address);
        for (attribute, value) in attributes.iter().zip(values) {
            // SAFETY: each pointer is to a value of its attribute's type.
            let value = unsafe { Pointer::from_raw(*value) };
            let value = value.required()?;
            // Attributes that a kind of memory lacks are zero here, and an error only in the other function.
            let is_unseen = found
                .as_ref()
                .is_some_and(|found| !found.purpose.is_on_host());
            match *attribute {
                CUpointer_attribute::CU_POINTER_ATTRIBUTE_HOST_POINTER if is_unseen => {
                    put_as(value, 0_u64)?;
                }
                attribute => self.put_attribute(value, attribute, found.as_ref(), address)?,
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

impl Driver {
    fn allocation_at(&self, address: CUdeviceptr) -> Option<Allocation> {
        self.memory()
            .find(address)
            .filter(|found| !found.is_retired)
    }

    /// Writes the value of one attribute, in the type that it has.
    fn put_attribute(
        &self,
        value: Pointer<c_void>,
        attribute: CUpointer_attribute,
        found: Option<&Allocation>,
        address: CUdeviceptr,
    ) -> Result {
        use CUpointer_attribute as Attribute;

        if since(attribute).is_some_and(|version| self.config().driver_version < version) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let capability = || self.capability(found);
        match attribute {
            Attribute::CU_POINTER_ATTRIBUTE_ACCESS_FLAGS => put_as(value, capability()?.rights),
            Attribute::CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES => {
                put_as(value, u64::from(capability()?.handle_types))
            }
            Attribute::CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE => {
                put_as(value, u32::from(capability()?.is_opened))
            }
            Attribute::CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE => {
                put_as(value, u32::from(capability()?.is_on_bus))
            }
            Attribute::CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE => {
                put_as(value, u32::from(capability()?.is_decompressed))
            }
            Attribute::CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR => {
                put_as(value, found.map_or(0, |found| found.base))
            }
            Attribute::CU_POINTER_ATTRIBUTE_MAPPING_SIZE => {
                put_as(value, found.map_or(0, |found| found.size as usize))
            }
            // Each allocation is a separate block here.
            Attribute::CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID => {
                put_as(value, found.map_or(0, |found| found.id))
            }
            attribute => put(value, attribute, found, address),
        }
    }

    /// Returns the ways in which memory can be shared, for the device of the current context.
    fn capability(&self, found: Option<&Allocation>) -> Result<Capability> {
        let Some(found) = found else {
            return Ok(Capability::default());
        };
        let device = match self.current() {
            Ok(current) => self.lock().context(current)?.device,
            Err(_) => found.owner.device,
        };
        Ok(self.memory().capability(found, device))
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
fn put(
    value: Pointer<c_void>,
    attribute: CUpointer_attribute,
    found: Option<&Allocation>,
    address: CUdeviceptr,
) -> Result {
    use CUpointer_attribute as Attribute;

    let is_on_host = found.is_some_and(|found| found.purpose.is_on_host());
    let is_managed = found.is_some_and(|found| found.purpose.is_managed());
    match attribute {
        Attribute::CU_POINTER_ATTRIBUTE_CONTEXT => {
            // Memory of a pool belongs to no context.
            let found = found.filter(|found| !found.purpose.is_of_pool());
            let context: CUcontext =
                found.map_or(std::ptr::null_mut(), |found| found.owner.context.as_raw());
            put_as(value, context)
        }
        Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE => put_as(value, memory_type(found)),
        Attribute::CU_POINTER_ATTRIBUTE_DEVICE_POINTER => {
            put_as(value, found.map_or(0, |_| address))
        }
        Attribute::CU_POINTER_ATTRIBUTE_HOST_POINTER if found.is_some() && !is_on_host => {
            Err(CUresult::CUDA_ERROR_INVALID_VALUE)
        }
        Attribute::CU_POINTER_ATTRIBUTE_HOST_POINTER => put_as(value, found.map_or(0, |_| address)),
        Attribute::CU_POINTER_ATTRIBUTE_BUFFER_ID => {
            put_as(value, found.map_or(0, |found| found.id))
        }
        Attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED => put_as(value, u32::from(is_managed)),
        Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL => {
            put_as(value, found.map_or(0, |found| found.owner.device as i32))
        }
        Attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR => {
            put_as(value, found.map_or(0, |found| found.base))
        }
        Attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE => {
            put_as(value, found.map_or(0, |found| found.size as usize))
        }
        Attribute::CU_POINTER_ATTRIBUTE_MAPPED => put_as(value, u32::from(found.is_some())),
        Attribute::CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE => put_as(value, pool_of(found)),
        Attribute::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS => put_as(
            value,
            u32::from(found.is_some_and(|found| found.is_synchronous)),
        ),
        _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
    }
}

fn put_as<T>(value: Pointer<c_void>, of: T) -> Result {
    // SAFETY: the caller of the C function passes a pointer to the attribute's type, which is `T`.
    unsafe { value.cast::<T>() }.write(of)
}

fn memory_type(found: Option<&Allocation>) -> u32 {
    match found.map(|found| found.purpose) {
        None => 0,
        Some(Purpose::Pinned { .. } | Purpose::Registered { .. } | Purpose::HostPool(_)) => {
            CUmemorytype::CU_MEMORYTYPE_HOST.0
        }
        Some(_) => CUmemorytype::CU_MEMORYTYPE_DEVICE.0,
    }
}

fn pool_of(found: Option<&Allocation>) -> CUmemoryPool {
    found
        .and_then(Records::pool_of)
        .map_or(std::ptr::null_mut(), Id::as_raw)
}
