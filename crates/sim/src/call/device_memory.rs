//! Device memory.

use std::ffi::c_void;

use curium_sys::{CUdeviceptr, CUmemRangeHandleType, CUresult};

use crate::activity::{MemoryChange, is_observed};
use crate::argument::Pointer;
use crate::call::Call;
use crate::memory::{Owner, Purpose};
use crate::object::graph::memory::Freed;
use crate::result::Result;

/// The alignment of the rows of pitched memory, in bytes.
const PITCH: u64 = 512;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuMemAlloc_v2(&self, address: Pointer<CUdeviceptr>, size: usize) -> Result {
        let owner = self.current_owner()?;
        let output = address.required()?;
        if size == 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let memory = self
            .memory()
            .allocate_on_device(size as u64, owner, Purpose::Device)?;
        self.report_new_memory(memory);
        output.write(memory)
    }

    pub(crate) fn cuMemAllocPitch_v2(
        &self,
        address: Pointer<CUdeviceptr>,
        pitch: Pointer<usize>,
        width: usize,
        height: usize,
        element: u32,
    ) -> Result {
        self.require_current()?;
        let output = pitch.required()?;
        if !matches!(element, 4 | 8 | 16) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let row = (width as u64)
            .checked_next_multiple_of(PITCH)
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let size = row
            .checked_mul(height as u64)
            .ok_or(CUresult::CUDA_ERROR_OUT_OF_MEMORY)?;
        self.cuMemAlloc_v2(address, size as usize)?;
        output.write(row as usize)
    }

    /// Waits for the device, as on hardware.
    pub(crate) fn cuMemFree_v2(&self, address: CUdeviceptr) -> Result {
        if address == 0 {
            return Ok(());
        }
        let allocation = self
            .memory()
            .find(address)
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let state = self.lock();
        state.contexts.check_device(allocation.owner.device)?;
        if self.graph_memory().contains(address)
            && self.free_graph_memory(address)? == Freed::ForReuse
        {
            return state.wait_for_device(allocation.owner.device).map(|_| ());
        }
        self.memory().retire(address, |purpose| {
            purpose.is_pooled()
                || matches!(
                    purpose,
                    Purpose::Device | Purpose::Managed | Purpose::Foreign
                )
        })?;
        let state = state.wait_for_device(allocation.owner.device)?;
        state.contexts.check_device(allocation.owner.device)?;
        state.report_memory(address, None, MemoryChange::Freed);
        self.memory().free(address);
        Ok(())
    }

    pub(crate) fn cuMemGetInfo_v2(&self, free: Pointer<usize>, total: Pointer<usize>) -> Result {
        let device = self.current_owner()?.device;
        free.write_if_not_null(self.memory().free_bytes(device) as usize);
        total.write_if_not_null(self.config().memory_budget as usize);
        Ok(())
    }

    pub(crate) fn cuMemGetAddressRange_v2(
        &self,
        base: Pointer<CUdeviceptr>,
        size: Pointer<usize>,
        address: CUdeviceptr,
    ) -> Result {
        self.current_owner()?;
        let allocation = self
            .memory()
            .find(address)
            .filter(|allocation| !allocation.is_retired);
        let allocation = allocation.ok_or(CUresult::CUDA_ERROR_NOT_FOUND)?;
        let is_queried = !base.is_null() || !size.is_null();
        // As on hardware, ranges of host pools are unknown.
        if is_queried && matches!(allocation.purpose, Purpose::HostPool(_)) {
            return Err(CUresult::CUDA_ERROR_NOT_FOUND);
        }
        base.write_if_not_null(allocation.base);
        size.write_if_not_null(allocation.size as usize);
        Ok(())
    }
}

impl Call<'_> {
    /// Reports that the allocation at `address` was made by a call that uses no stream, if
    /// activities are observed.
    pub(crate) fn report_new_memory(&self, address: u64) {
        if is_observed() {
            self.lock()
                .report_memory(address, None, MemoryChange::Allocated);
        }
    }

    /// Fails: no other driver of this machine imports such descriptors. The arguments are checked
    /// first, as on hardware.
    #[expect(non_snake_case, reason = "the method has the name of the C function")]
    pub(crate) fn cuMemGetHandleForAddressRange(
        &self,
        handle: Pointer<c_void>,
        address: CUdeviceptr,
        size: usize,
        kind: CUmemRangeHandleType,
        _flags: u64,
    ) -> Result {
        const PAGE: u64 = 4096;
        handle.required()?;
        let is_paged = address.is_multiple_of(PAGE) && (size as u64).is_multiple_of(PAGE);
        let is_valid = kind == CUmemRangeHandleType::CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD
            && is_paged
            && size != 0
            && self.memory().contains(address, size as u64);
        if is_valid {
            Err(CUresult::CUDA_ERROR_NOT_SUPPORTED)
        } else {
            Err(CUresult::CUDA_ERROR_INVALID_VALUE)
        }
    }

    /// Returns the current context, which must be valid, as an owner of memory.
    pub(crate) fn current_owner(&self) -> Result<Owner> {
        let (state, context) = self.enter_current()?;
        let context = state.contexts.owning_context(context);
        Ok(Owner {
            context,
            device: state.contexts.valid_context(context)?.device(),
        })
    }
}
