//! Memory pools and stream-ordered allocation.

mod location;
mod sharing;

use std::ffi::c_void;
use std::sync::Arc;

use curium_sys::{
    CUdevice, CUdeviceptr, CUmemAllocationHandleType, CUmemAllocationType, CUmemLocation,
    CUmemLocationType, CUmemPool_attribute, CUmemPoolHandle_st, CUmemPoolProps, CUmemoryPool,
    CUresult, CUstream_st, CudaVersion,
};

use crate::activity::MemoryChange;
use crate::argument::{ConstPointer, Pointer};
use crate::call::Call;
use crate::call::virtual_memory::raw_location;
use crate::context::stream::Stream;
use crate::driver::schedule::Work;
use crate::driver::state::State;
use crate::handle::Id;
use crate::memory::{Location, Owner, Pool, Purpose};
use crate::object::graph::content::Content;
use crate::object::graph::memory::Freed;
use crate::result::Result;

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
        let stream = self.working_stream(&mut state, stream)?;
        let owner = self.stream_owner(&state, stream)?;
        let pool = self.memory().read().current_pools[owner.device];
        self.allocate_in_stream(&mut state, stream, pool, address, size)
    }

    pub(crate) fn cuMemAllocFromPoolAsync(
        &self,
        address: Pointer<CUdeviceptr>,
        size: usize,
        pool: Pointer<CUmemPoolHandle_st>,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        let mut state = self.lock();
        let stream = self.working_stream(&mut state, stream)?;
        let pool = self.pool(pool)?;
        self.allocate_in_stream(&mut state, stream, pool, address, size)
    }

    pub(crate) fn cuMemFreeAsync(
        &self,
        address: CUdeviceptr,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        let mut state = self.lock();
        let stream = self.working_stream(&mut state, stream)?;
        if address == 0 {
            return Ok(());
        }
        if let Some(graph) = state.captured_graph(stream) {
            let content = match state.is_freed_again(stream, address) {
                true => Content::Free(address),
                false => self.free_content(&state, graph, address)?,
            };
            return state.add_captured(stream, content);
        }
        if self.is_graph_memory(address) && self.free_graph_memory(address)? == Freed::ForReuse {
            return Ok(());
        }
        self.memory().retire(address, |purpose| {
            purpose.is_pooled() || matches!(purpose, Purpose::Device | Purpose::Foreign)
        })?;
        self.report_memory(&state, address, Some(stream), MemoryChange::Freed);
        let free = Work::Device(Box::new(move |driver| {
            driver.memory().record_free(address);
            driver.memory().free(address);
            Ok(())
        }));
        self.queue(&mut state, stream, free);
        Ok(())
    }

    pub(crate) fn cuDeviceGetDefaultMemPool(
        &self,
        pool: Pointer<CUmemoryPool>,
        device: CUdevice,
    ) -> Result {
        let device = self.device(device)?;
        pool.write(self.memory().read().default_pools[device].as_raw())
    }

    pub(crate) fn cuDeviceGetMemPool(
        &self,
        pool: Pointer<CUmemoryPool>,
        device: CUdevice,
    ) -> Result {
        let device = self.pool_device(device)?;
        pool.write(self.memory().read().current_pools[device].as_raw())
    }

    pub(crate) fn cuDeviceSetMemPool(
        &self,
        device: CUdevice,
        pool: Pointer<CUmemPoolHandle_st>,
    ) -> Result {
        let device = self.pool_device(device)?;
        let id = self.pool(pool)?;
        self.memory()
            .set_current_pool(Some(Location::Device(device)), false, id)
    }

    pub(crate) fn cuMemPoolCreate(
        &self,
        pool: Pointer<CUmemoryPool>,
        properties: ConstPointer<CUmemPoolProps>,
    ) -> Result {
        let output = pool.required()?;
        let properties = properties.read()?;
        let (location, is_managed) = self.pool_place(&properties.location, properties.allocType)?;
        const KNOWN: u32 = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.0
            | CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_FABRIC.0;
        let handle_types = properties.handleTypes.0;
        // As on hardware, host memory without a NUMA node is not shared.
        let is_shareable = location != Some(Location::Host);
        let is_reserved_used = properties.reserved.iter().any(|byte| *byte != 0);
        if handle_types & !KNOWN != 0 || handle_types != 0 && !is_shareable || is_reserved_used {
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
        let id = self.pool(pool)?;
        let mut records = self.memory().write();
        if records.pools.get(id).is_none_or(|pool| pool.is_default) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        records.retire_pool(id);
        Ok(())
    }

    pub(crate) fn cuMemPoolTrimTo(&self, pool: Pointer<CUmemPoolHandle_st>, keep: usize) -> Result {
        let id = self.pool(pool)?;
        if let Some(pool) = self.memory().write().pools.get_mut(id) {
            pool.trim(keep as u64);
        }
        Ok(())
    }

    pub(crate) fn cuMemPoolGetAttribute(
        &self,
        pool: Pointer<CUmemPoolHandle_st>,
        attribute: CUmemPool_attribute,
        value: Pointer<c_void>,
    ) -> Result {
        let id = self.pool(pool)?;
        value.required()?;
        let records = self.memory().read();
        let pool = records
            .pools
            .get(id)
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        if let Some(flag) = reuse_flag(attribute) {
            // SAFETY: for these attributes the caller passes a pointer to an `int`.
            return unsafe { value.cast::<i32>() }.write(pool.reuse[flag]);
        }
        if let Some(property) = self.pool_property(pool, attribute) {
            // SAFETY: for these attributes the caller passes a pointer to an `int` or an enumerator.
            return unsafe { value.cast::<u32>() }.write(property);
        }
        let number = match attribute {
            CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD => pool.threshold,
            CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT => pool.reserved,
            CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH => pool.reserved_high,
            CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT => pool.used,
            CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH => pool.used_high,
            CUmemPool_attribute::CU_MEMPOOL_ATTR_MAX_POOL_SIZE if self.tells_properties() => {
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
        let id = self.pool(pool)?;
        let mut records = self.memory().write();
        let pool = records
            .pools
            .get_mut(id)
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        if let Some(flag) = reuse_flag(attribute) {
            // SAFETY: for these attributes the caller passes an `int`.
            pool.reuse[flag] = i32::from(unsafe { value.cast::<i32>() }.read()? != 0);
            return Ok(());
        }
        if !matches!(
            attribute,
            CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
                | CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH
                | CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH
        ) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: for these attributes the caller passes a `cuuint64_t`.
        let value = unsafe { value.cast::<u64>() }.read()?;
        match attribute {
            CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD => pool.threshold = value,
            // The high-water marks can only be reset.
            _ if value != 0 => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
            CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH => {
                pool.reserved_high = pool.reserved;
            }
            _ => pool.used_high = pool.used,
        }
        Ok(())
    }
}

impl Call<'_> {
    /// Returns the device of a current pool; the functions of current pools have a code of their own for an unknown one.
    fn pool_device(&self, device: CUdevice) -> Result<usize> {
        self.device(device)
            .or(Err(CUresult::CUDA_ERROR_INVALID_VALUE))
    }

    /// Returns the context of a stream as an owner of memory.
    fn stream_owner(&self, state: &State, stream: Id<Stream>) -> Result<Owner> {
        let context = state.owning_context(self.stream_context(state, stream)?);
        Ok(Owner {
            context,
            device: state.valid_context(context)?.device,
        })
    }

    /// Returns `true` if the driver supports the attributes for the creation parameters of a pool, which CUDA 13.1 introduced.
    fn tells_properties(&self) -> bool {
        self.config().driver_version >= CudaVersion::new(13, 1)
    }

    /// Returns a 32-bit attribute for the creation parameters of a pool.
    fn pool_property(&self, pool: &Pool, attribute: CUmemPool_attribute) -> Option<u32> {
        if !self.tells_properties() {
            return None;
        }
        let location = pool.location.map(raw_location);
        match attribute {
            CUmemPool_attribute::CU_MEMPOOL_ATTR_ALLOCATION_TYPE => {
                Some(1 + u32::from(pool.is_managed))
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

    /// Returns the location of the memory of a pool, and `true` for managed memory. Managed memory may have no location.
    pub(crate) fn pool_place(
        &self,
        location: &CUmemLocation,
        kind: CUmemAllocationType,
    ) -> Result<(Option<Location>, bool)> {
        let is_managed = match kind {
            CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED => false,
            CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_MANAGED => true,
            _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        };
        if is_managed && location.type_ == CUmemLocationType::CU_MEM_LOCATION_TYPE_NONE {
            return Ok((None, true));
        }
        Ok((Some(self.location(location)?), is_managed))
    }

    /// Allocates memory immediately; the caller orders its use. During a capture, the memory belongs to the graph.
    fn allocate_in_stream(
        &self,
        state: &mut State,
        stream: Id<Stream>,
        pool: Id<Pool>,
        address: Pointer<CUdeviceptr>,
        size: usize,
    ) -> Result {
        let output = address.required()?;
        if size == 0 {
            return output.write(0);
        }
        let owner = self.stream_owner(state, stream)?;
        if state.is_capturing(stream) {
            // Memory of a graph cannot be exported.
            if self.memory().is_exportable(pool) {
                return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
            }
            let allocation = match state.recaptured_allocation(stream, size) {
                Some(allocation) => allocation,
                None => self.graph_allocation(owner, pool, size)?,
            };
            output.write(allocation.address())?;
            return state.add_captured(stream, Content::Allocate(allocation));
        }
        // A pool that grows allocates from the device.
        if self.memory().needs_growth(pool, size as u64) {
            self.permit_unsafe(state)?;
        }
        let memory = self.memory().allocate_in_pool(pool, size as u64, owner)?;
        self.memory().note_stream(memory, stream.number());
        self.mark_allocation(state, stream, memory);
        self.report_memory(state, memory, Some(stream), MemoryChange::Allocated);
        output.write(memory)
    }

    /// Orders later uses of new memory after its allocation, if race checks are on.
    fn mark_allocation(&self, state: &mut State, stream: Id<Stream>, memory: CUdeviceptr) {
        let Some(races) = state.schedule.races().map(Arc::clone) else {
            return;
        };
        let ticket = self.queue(state, stream, Work::Device(Box::new(|_| Ok(()))));
        if let Some(party) = ticket.and_then(|ticket| races.enroll(ticket, "allocation")) {
            self.memory().renew(memory, party);
        }
    }
}

/// Returns the index of a reuse flag among the three.
fn reuse_flag(attribute: CUmemPool_attribute) -> Option<usize> {
    match attribute {
        CUmemPool_attribute::CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES => Some(0),
        CUmemPool_attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC => Some(1),
        CUmemPool_attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES => Some(2),
        _ => None,
    }
}
