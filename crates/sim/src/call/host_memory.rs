//! Pinned, registered and managed memory.

use std::ffi::c_void;

use curium_sys::{
    CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_WRITECOMBINED,
    CU_MEMHOSTREGISTER_DEVICEMAP, CU_MEMHOSTREGISTER_PORTABLE, CU_MEMHOSTREGISTER_READ_ONLY,
    CUdeviceptr, CUresult,
};

use crate::activity::MemoryChange;
use crate::argument::Pointer;
use crate::call::Call;
use crate::host_pointer::HostPtr;
use crate::memory::Purpose;
use crate::result::Result;

/// The end of the addresses that a process can have.
const ADDRESS_SPACE: u64 = 1 << 47;

const ALLOC_FLAGS: u32 =
    CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;

/// Memory of other devices, for which there is a flag, does not exist here.
const REGISTER_FLAGS: u32 =
    CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY;

/// `CU_MEM_ATTACH_GLOBAL` and `CU_MEM_ATTACH_HOST`.
const ATTACH_FLAGS: [u32; 2] = [1, 2];

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuMemAllocHost_v2(&self, memory: Pointer<*mut c_void>, size: usize) -> Result {
        self.cuMemHostAlloc(memory, size, 0)
    }

    pub(crate) fn cuMemHostAlloc(
        &self,
        memory: Pointer<*mut c_void>,
        size: usize,
        flags: u32,
    ) -> Result {
        let owner = self.current_owner()?;
        let output = memory.required()?;
        if flags & !ALLOC_FLAGS != 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        if size == 0 {
            return output.write(std::ptr::null_mut());
        }
        // With unified addressing every allocation is mapped.
        let purpose = Purpose::Pinned {
            flags: flags | CU_MEMHOSTALLOC_DEVICEMAP,
        };
        let memory = self
            .memory()
            .allocate_on_host(size as u64, owner, purpose)?;
        let address = memory.0.addr() as u64;
        self.report_new_memory(address);
        output.write(memory.0.cast())
    }

    /// Waits for the device, as on hardware.
    pub(crate) fn cuMemFreeHost(&self, memory: Pointer<c_void>) -> Result {
        if memory.is_null() {
            return Ok(());
        }
        let address = memory.address();
        let allocation = self
            .memory()
            .find(address)
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let state = self.lock();
        state.contexts.check_device(allocation.owner.device)?;
        self.memory()
            .retire(address, |purpose| matches!(purpose, Purpose::Pinned { .. }))?;
        let state = state.wait_for_device(allocation.owner.device)?;
        state.contexts.check_device(allocation.owner.device)?;
        state.report_memory(address, None, MemoryChange::Freed);
        self.memory().free(address);
        Ok(())
    }

    pub(crate) fn cuMemHostGetDevicePointer_v2(
        &self,
        address: Pointer<CUdeviceptr>,
        memory: Pointer<c_void>,
        flags: u32,
    ) -> Result {
        let output = address.required()?;
        self.current_owner()?;
        self.host_allocation(memory)?;
        if flags != 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        output.write(memory.address())
    }

    pub(crate) fn cuMemHostGetFlags(&self, flags: Pointer<u32>, memory: Pointer<c_void>) -> Result {
        let output = flags.required()?;
        self.current_owner()?;
        output.write(self.host_allocation(memory)?)
    }

    pub(crate) fn cuMemHostRegister_v2(
        &self,
        memory: Pointer<c_void>,
        size: usize,
        flags: u32,
    ) -> Result {
        let memory = memory.required()?;
        let owner = self.current_owner()?;
        if size == 0 || flags & !REGISTER_FLAGS != 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let end = memory.address().checked_add(size as u64);
        if end.is_some_and(|end| end > ADDRESS_SPACE) {
            return Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        }
        let flags = flags | CU_MEMHOSTREGISTER_DEVICEMAP;
        self.memory()
            .register(HostPtr(memory.as_ptr().cast()), size as u64, owner, flags)
    }

    pub(crate) fn cuMemHostUnregister(&self, memory: Pointer<c_void>) -> Result {
        let address = memory.required()?.address();
        let allocation = self
            .memory()
            .find(address)
            .ok_or(CUresult::CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED)?;
        self.current_owner()?;
        match allocation.purpose {
            Purpose::Registered { .. } => {}
            Purpose::Pinned { .. } => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
            _ => return Err(CUresult::CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED),
        }
        let state = self.lock();
        self.memory().retire(address, |_| true)?;
        drop(state.wait_for_device(allocation.owner.device)?);
        self.memory().free(address);
        Ok(())
    }

    pub(crate) fn cuMemAllocManaged(
        &self,
        address: Pointer<CUdeviceptr>,
        size: usize,
        flags: u32,
    ) -> Result {
        let output = address.required()?;
        if size == 0 || !ATTACH_FLAGS.contains(&flags) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let owner = self.current_owner()?;
        self.lock().check_potentially_unsafe_call()?;
        let memory = self
            .memory()
            .allocate_on_host(size as u64, owner, Purpose::Managed)?
            .expose();
        self.report_new_memory(memory);
        output.write(memory)
    }
}

impl Call<'_> {
    /// Returns the flags of the pinned or registered memory that a pointer points into.
    fn host_allocation(&self, memory: Pointer<c_void>) -> Result<u32> {
        match self
            .memory()
            .find(memory.address())
            .map(|allocation| allocation.purpose)
        {
            Some(Purpose::Pinned { flags } | Purpose::Registered { flags }) => Ok(flags),
            _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        }
    }
}
