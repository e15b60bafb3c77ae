//! Device memory shared between processes by legacy IPC handles.

use std::ffi::c_char;

use curium_sys::{CUdeviceptr, CUipcMem_flags, CUipcMemHandle, CUresult};

use crate::argument::Pointer;
use crate::driver::{Driver, Result};
use crate::memory::{Place, Purpose};

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Driver {
    /// Returns an IPC handle. Fails for stream-ordered memory, which has a separate type of handle.
    pub(crate) fn cuIpcGetMemHandle(
        &self,
        handle: Pointer<CUipcMemHandle>,
        address: CUdeviceptr,
    ) -> Result {
        let place = handle.required()?;
        self.current_owner()?;
        let found = self
            .memory()
            .find(address)
            .filter(|found| !found.is_retired);
        let found = found.filter(|found| found.purpose == Purpose::Device);
        let found = found.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        if self.memory().is_private(&found) {
            drop(self.wait_for_device(self.lock(), found.owner.device)?);
        }
        let at = self
            .memory()
            .place_of(&found, self.serial)
            .ok_or(CUresult::CUDA_ERROR_NOT_SUPPORTED)?;
        self.memory().note_shared(found.base);
        place.write(CUipcMemHandle {
            reserved: at.to_bytes().map(|byte| c_char::from_ne_bytes([byte])),
        })
    }

    /// Opens memory of another simulator. Each simulator counts as a process, which cannot open its own memory.
    pub(crate) fn cuIpcOpenMemHandle_v2(
        &self,
        address: Pointer<CUdeviceptr>,
        handle: CUipcMemHandle,
        flags: u32,
    ) -> Result {
        let place = address.required()?;
        let owner = self.current_owner()?;
        let at = Place::from_bytes(&handle.reserved.map(|byte| byte.to_ne_bytes()[0]));
        let at = at.filter(|_| flags == CUipcMem_flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS.0);
        let at = at.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        if Some(at.origin) == self.memory().origin(self.serial) {
            return Err(CUresult::CUDA_ERROR_INVALID_CONTEXT);
        }
        place.write(self.memory().open_foreign(at, owner)?)
    }

    /// Waits for the device when the memory is closed as often as it was opened.
    pub(crate) fn cuIpcCloseMemHandle(&self, address: CUdeviceptr) -> Result {
        let found = self
            .memory()
            .find(address)
            .filter(|found| found.base == address && !found.is_retired);
        let found = found.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        if self.memory().close_foreign(address)? {
            let state = self.lock();
            self.memory().retire(address, |_| true)?;
            drop(self.wait_for_device(state, found.owner.device)?);
            self.memory().free(address);
        }
        Ok(())
    }
}
