//! Device memory shared between processes by legacy IPC handles.

use std::ffi::c_char;

use curium_sys::{CUdeviceptr, CUipcMem_flags, CUipcMemHandle, CUresult};

use crate::argument::Pointer;
use crate::call::Call;
use crate::memory::{Purpose, SharedAllocation};
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    /// Returns an IPC handle. Fails for stream-ordered memory, which has a separate type of handle.
    pub(crate) fn cuIpcGetMemHandle(
        &self,
        handle: Pointer<CUipcMemHandle>,
        address: CUdeviceptr,
    ) -> Result {
        let output = handle.required()?;
        if address == 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        self.current_owner()?;
        let allocation = self
            .memory()
            .find(address)
            .filter(|allocation| !allocation.is_retired);
        let allocation = allocation.filter(|allocation| allocation.purpose == Purpose::Device);
        let allocation = allocation.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        if self.memory().sharing().is_private(&allocation) {
            drop(self.lock().wait_for_device(allocation.owner.device)?);
        }
        let shared = self
            .memory()
            .sharing()
            .share(&allocation, self.thread().serial)
            .ok_or(CUresult::CUDA_ERROR_NOT_SUPPORTED)?;
        self.memory().record_sharing(allocation.base);
        output.write(CUipcMemHandle {
            reserved: shared.to_bytes().map(|byte| c_char::from_ne_bytes([byte])),
        })
    }

    /// Opens memory of another simulator. Each simulator counts as a process, which cannot open its
    /// own memory.
    pub(crate) fn cuIpcOpenMemHandle_v2(
        &self,
        address: Pointer<CUdeviceptr>,
        handle: CUipcMemHandle,
        flags: u32,
    ) -> Result {
        let output = address.required()?;
        let shared =
            SharedAllocation::from_bytes(&handle.reserved.map(|byte| byte.to_ne_bytes()[0]));
        // As on hardware, unknown flags are ignored.
        let shared = shared
            .filter(|_| flags & CUipcMem_flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS.0 != 0)
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let owner = self.current_owner()?;
        if Some(shared.origin) == self.memory().sharing().origin(self.thread().serial) {
            return Err(CUresult::CUDA_ERROR_INVALID_CONTEXT);
        }
        output.write(self.memory().sharing().open_foreign(shared, owner)?)
    }

    pub(crate) fn cuIpcOpenMemHandle(
        &self,
        address: Pointer<CUdeviceptr>,
        handle: CUipcMemHandle,
        flags: u32,
    ) -> Result {
        self.cuIpcOpenMemHandle_v2(address, handle, flags)
    }

    /// Waits for the device when the memory is closed as often as it was opened.
    pub(crate) fn cuIpcCloseMemHandle(&self, address: CUdeviceptr) -> Result {
        let allocation = self
            .memory()
            .find(address)
            .filter(|allocation| allocation.base == address && !allocation.is_retired);
        let allocation = allocation.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        if self.memory().sharing().close_foreign(address)? {
            let state = self.lock();
            self.memory().retire(address, |_| true)?;
            drop(state.wait_for_device(allocation.owner.device)?);
            self.memory().free(address);
        }
        Ok(())
    }
}
