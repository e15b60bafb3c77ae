//! The C functions for memory pools and stream-ordered allocation.

mod location;
mod sharing;

use std::ffi::c_void;
use std::sync::Arc;

use curium_sys::{
    CUdevice, CUdeviceptr, CUmemAllocationHandleType, CUmemAllocationType, CUmemPool_attribute,
    CUmemPoolHandle_st, CUmemPoolProps, CUmemoryPool, CUresult, CUstream_st, CudaVersion,
};

use crate::activity::MemoryChange;
use crate::argument::{ConstPointer, Pointer};
use crate::call::Call;
use crate::call::managed::as_invalid_value;
use crate::context::stream::Stream;
use crate::driver::locked::Locked;
use crate::driver::pool::PoolLocation;
use crate::driver::schedule::Work;
use crate::driver::virtual_memory::raw_location;
use crate::handle::Id;
use crate::memory::{Location, Owner, Pool, Purpose};
use crate::object::graph::content::Content;
use crate::object::graph::memory::Freed;
use crate::result::Result;

const SUPPORTED_HANDLE_TYPES: u32 =
    CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.0
        | CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_FABRIC.0;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuMemAllocAsync(
        &self,
        address: Pointer<CUdeviceptr>,
        size: usize,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        let mut state = self.lock();
        let stream = state.working_stream(stream)?;
        let owner = state.stream_owner(stream)?;
        let pool = self.memory().read().current_pools[owner.device];
        state.allocate_in_stream(stream, pool, address, size)
    }

    pub(crate) fn cuMemAllocFromPoolAsync(
        &self,
        address: Pointer<CUdeviceptr>,
        size: usize,
        pool: Pointer<CUmemPoolHandle_st>,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        let mut state = self.lock();
        let stream = state.working_stream(stream)?;
        let pool = self.pool(pool)?;
        state.allocate_in_stream(stream, pool, address, size)
    }

    pub(crate) fn cuMemFreeAsync(
        &self,
        address: CUdeviceptr,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        let mut state = self.lock();
        let stream = state.working_stream(stream)?;
        if address == 0 {
            return Ok(());
        }
        if let Some(graph) = state.captures.captured_graph(stream) {
            let content = if state.recapture_frees(stream, address) {
                Content::Free(address)
            } else {
                state.free_content(graph, address)?
            };
            return state.add_captured(stream, content);
        }
        if self.graph_memory().contains(address)
            && self.free_graph_memory(address)? == Freed::ForReuse
        {
            return Ok(());
        }
        self.memory().retire(address, |purpose| {
            purpose.is_pooled() || matches!(purpose, Purpose::Device | Purpose::Foreign)
        })?;
        state.report_memory(address, Some(stream), MemoryChange::Freed);
        let free = Work::Device(Box::new(move |driver| {
            driver.memory().record_free(address);
            driver.memory().free(address);
            Ok(())
        }));
        state.queue(stream, free);
        Ok(())
    }

    pub(crate) fn cuDeviceGetDefaultMemPool(
        &self,
        pool: Pointer<CUmemoryPool>,
        device: CUdevice,
    ) -> Result {
        let device = self.devices().device(device)?;
        pool.write(self.memory().read().default_pools[device].as_raw())
    }

    pub(crate) fn cuDeviceGetMemPool(
        &self,
        pool: Pointer<CUmemoryPool>,
        device: CUdevice,
    ) -> Result {
        let device = self.device_or_invalid_value(device)?;
        pool.write(self.memory().read().current_pools[device].as_raw())
    }

    pub(crate) fn cuDeviceSetMemPool(
        &self,
        device: CUdevice,
        pool: Pointer<CUmemPoolHandle_st>,
    ) -> Result {
        let device = self.device_or_invalid_value(device)?;
        let pool = self.pool(pool)?;
        self.memory()
            .pools()
            .set_current_pool(Some(Location::Device(device)), false, pool)
    }

    pub(crate) fn cuMemPoolCreate(
        &self,
        pool: Pointer<CUmemoryPool>,
        properties: ConstPointer<CUmemPoolProps>,
    ) -> Result {
        let output = pool.required()?;
        let properties = properties.read()?;
        let PoolLocation {
            location,
            is_managed,
        } = self
            .devices()
            .pool_location(&properties.location, properties.allocType)
            .map_err(as_invalid_value)?;
        let handle_types = properties.handleTypes.0;
        // As on hardware, managed memory and host memory without a NUMA node are not shared.
        let is_shareable = location != Some(Location::Host);
        let is_handle_type_invalid = handle_types & !SUPPORTED_HANDLE_TYPES != 0
            || (handle_types != 0 && (!is_shareable || is_managed));
        let has_reserved_bytes = properties.reserved.iter().any(|byte| *byte != 0);
        if is_handle_type_invalid || has_reserved_bytes {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        if handle_types & !self.config().handle_types() != 0 {
            return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
        }
        let pool = Pool {
            handle_types,
            max_size: properties.maxSize as u64,
            ..Pool::at(location, is_managed)
        };
        output.write(self.memory().write().pools.insert(pool).as_raw())
    }

    /// Destroys a pool. Memory that is still allocated from it stays valid.
    pub(crate) fn cuMemPoolDestroy(&self, pool: Pointer<CUmemPoolHandle_st>) -> Result {
        let pool = self.pool(pool)?;
        let mut records = self.memory().write();
        if records.pools.get(pool).is_none_or(|pool| pool.is_default) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        records.retire_pool(pool);
        Ok(())
    }

    pub(crate) fn cuMemPoolTrimTo(
        &self,
        pool: Pointer<CUmemPoolHandle_st>,
        min_bytes_to_keep: usize,
    ) -> Result {
        let pool = self.pool(pool)?;
        if let Some(pool) = self.memory().write().pools.get_mut(pool) {
            pool.trim(min_bytes_to_keep as u64);
        }
        Ok(())
    }

    pub(crate) fn cuMemPoolGetAttribute(
        &self,
        pool: Pointer<CUmemPoolHandle_st>,
        attribute: CUmemPool_attribute,
        value: Pointer<c_void>,
    ) -> Result {
        let pool = self.pool(pool)?;
        value.required()?;
        let records = self.memory().read();
        let pool = records
            .pools
            .get(pool)
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let mut reuse = pool.reuse;
        if let Some(flag) = reuse.flag_mut(attribute) {
            // SAFETY: for these attributes the caller passes a pointer to an `int`.
            return unsafe { value.cast::<i32>() }.write(*flag);
        }
        if let Some(property) = self.pool_property(pool, attribute) {
            // SAFETY: for these attributes the caller passes a pointer to an `int` or an
            // enumerator.
            return unsafe { value.cast::<u32>() }.write(property);
        }
        let number = match attribute {
            CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD => pool.threshold,
            CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT => pool.reserved,
            CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH => pool.reserved_high,
            CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT => pool.used,
            CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH => pool.used_high,
            CUmemPool_attribute::CU_MEMPOOL_ATTR_MAX_POOL_SIZE
                if self.supports_creation_attributes() =>
            {
                pool.max_size
            }
            _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        };
        // SAFETY: for these attributes the caller passes a pointer to a `cuuint64_t`.
        unsafe { value.cast::<u64>() }.write(number)
    }

    pub(crate) fn cuMemPoolSetAttribute(
        &self,
        pool: Pointer<CUmemPoolHandle_st>,
        attribute: CUmemPool_attribute,
        value: Pointer<c_void>,
    ) -> Result {
        let pool = self.pool(pool)?;
        let mut records = self.memory().write();
        let pool = records
            .pools
            .get_mut(pool)
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        if let Some(flag) = pool.reuse.flag_mut(attribute) {
            // SAFETY: for these attributes the caller passes an `int`.
            *flag = i32::from(unsafe { value.cast::<i32>() }.read()? != 0);
            return Ok(());
        }
        match attribute {
            CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD => {
                // SAFETY: for this attribute the caller passes a `cuuint64_t`.
                pool.threshold = unsafe { value.cast::<u64>() }.read()?;
            }
            CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH => {
                // SAFETY: for this attribute the caller passes a `cuuint64_t`.
                check_reset(unsafe { value.cast() })?;
                pool.reserved_high = pool.reserved;
            }
            CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH => {
                // SAFETY: for this attribute the caller passes a `cuuint64_t`.
                check_reset(unsafe { value.cast() })?;
                pool.used_high = pool.used;
            }
            _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        }
        Ok(())
    }
}

impl Call<'_> {
    /// Returns the device of a current pool; the functions of current pools have a code of their
    /// own for an unknown one.
    fn device_or_invalid_value(&self, device: CUdevice) -> Result<usize> {
        self.devices()
            .device(device)
            .map_err(|_| CUresult::CUDA_ERROR_INVALID_VALUE)
    }

    /// Returns `true` if the driver supports the attributes for the creation parameters of a pool,
    /// which CUDA 13.1 introduced.
    fn supports_creation_attributes(&self) -> bool {
        self.config().driver_version >= CudaVersion::new(13, 1)
    }

    /// Returns a 32-bit attribute for the creation parameters of a pool.
    fn pool_property(&self, pool: &Pool, attribute: CUmemPool_attribute) -> Option<u32> {
        if !self.supports_creation_attributes() {
            return None;
        }
        let location = pool.location.map(raw_location);
        match attribute {
            CUmemPool_attribute::CU_MEMPOOL_ATTR_ALLOCATION_TYPE => {
                let kind = if pool.is_managed {
                    CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_MANAGED
                } else {
                    CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED
                };
                Some(kind.0)
            }
            CUmemPool_attribute::CU_MEMPOOL_ATTR_EXPORT_HANDLE_TYPES => Some(pool.handle_types),
            CUmemPool_attribute::CU_MEMPOOL_ATTR_LOCATION_TYPE => {
                Some(location.map_or(0, |raw| raw.type_.0))
            }
            CUmemPool_attribute::CU_MEMPOOL_ATTR_LOCATION_ID => {
                // SAFETY: the union's first member is a number, which `raw_location` has written.
                Some(
                    location
                        .map_or(0, |raw| unsafe { raw.__bindgen_anon_1.id })
                        .cast_unsigned(),
                )
            }
            CUmemPool_attribute::CU_MEMPOOL_ATTR_HW_DECOMPRESS_ENABLED => Some(0),
            _ => None,
        }
    }
}

impl Locked<'_> {
    /// Returns the context of a stream as an owner of memory.
    fn stream_owner(&self, stream: Id<Stream>) -> Result<Owner> {
        let context = self
            .contexts
            .owning_context(self.contexts.stream_context(stream)?);
        Ok(Owner {
            context,
            device: self.contexts.valid_context(context)?.device(),
        })
    }

    /// Allocates memory immediately; the caller orders its use. During a capture, the memory
    /// belongs to the graph.
    fn allocate_in_stream(
        &mut self,
        stream: Id<Stream>,
        pool: Id<Pool>,
        address: Pointer<CUdeviceptr>,
        size: usize,
    ) -> Result {
        let driver = self.driver();
        let output = address.required()?;
        if size == 0 {
            return output.write(0);
        }
        let owner = self.stream_owner(stream)?;
        if self.captures.is_capturing(stream) {
            if !driver.memory().pools().allows_graph_memory(pool) {
                return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
            }
            let allocation = match self.recaptured_allocation(stream, size) {
                Some(allocation) => allocation,
                None => driver.graph_allocation(owner, pool, size)?,
            };
            output.write(allocation.address())?;
            return self.add_captured(stream, Content::Allocate(allocation));
        }
        // A pool that grows allocates from the device.
        if driver.memory().pools().needs_growth(pool, size as u64) {
            self.check_potentially_unsafe_call()?;
        }
        let memory = driver
            .memory()
            .pools()
            .allocate_in_pool(pool, size as u64, owner)?;
        driver.memory().record_stream(memory, stream.number());
        self.order_uses_after_allocation(stream, memory);
        self.report_memory(memory, Some(stream), MemoryChange::Allocated);
        output.write(memory)
    }

    /// Orders later uses of new memory after its allocation, if race checks are on.
    fn order_uses_after_allocation(&mut self, stream: Id<Stream>, memory: CUdeviceptr) {
        let driver = self.driver();
        let Some(races) = self.schedule.races().map(Arc::clone) else {
            return;
        };
        let ticket = self.queue(stream, Work::Device(Box::new(|_| Ok(()))));
        if let Some(party) = ticket.and_then(|ticket| races.enroll(ticket, "allocation")) {
            driver.memory().renew(memory, party);
        }
    }
}

/// Checks that the new value of a high-water mark is 0: it can only be reset.
fn check_reset(value: Pointer<u64>) -> Result {
    if value.read()? == 0 {
        Ok(())
    } else {
        Err(CUresult::CUDA_ERROR_INVALID_VALUE)
    }
}
