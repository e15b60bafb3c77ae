//! Events in several processes: their handles, which only others than their own process may open, and none can so far.

use curium_sys::{CUevent, CUevent_st, CUipcEventHandle, CUresult};

use crate::argument::Pointer;
use crate::driver::event::INTERPROCESS;
use crate::driver::{Driver, Result};

/// What begins a handle; the process, the driver in it and the event follow.
const MARK: [u8; 8] = *b"simevent";

#[expect(non_snake_case, reason = "these are C's names")]
impl Driver {
    pub(crate) fn cuIpcGetEventHandle(&self, handle: Pointer<CUipcEventHandle>, event: Pointer<CUevent_st>) -> Result {
        let place = handle.required()?;
        self.require_current()?;
        let state = self.lock();
        let (_, found) = state.event(event)?;
        if found.flags & INTERPROCESS == 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_HANDLE);
        }
        let mut bytes = [0; 64];
        let parts = [self.origin(), event.address().to_le_bytes().to_vec()].concat();
        bytes[..parts.len()].copy_from_slice(&parts);
        place.write(CUipcEventHandle { reserved: bytes.map(u8::cast_signed) })
    }

    pub(crate) fn cuIpcOpenEventHandle(&self, event: Pointer<CUevent>, handle: CUipcEventHandle) -> Result {
        event.required()?;
        self.require_current()?;
        let bytes = handle.reserved.map(i8::cast_unsigned);
        if !bytes.starts_with(&MARK) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let is_own = bytes.starts_with(&self.origin());
        Err(if is_own { CUresult::CUDA_ERROR_INVALID_CONTEXT } else { CUresult::CUDA_ERROR_NOT_SUPPORTED })
    }
}

impl Driver {
    /// What the handles of this driver's events begin with.
    fn origin(&self) -> Vec<u8> {
        [&MARK[..], &std::process::id().to_le_bytes(), &self.serial.to_le_bytes()].concat()
    }
}
