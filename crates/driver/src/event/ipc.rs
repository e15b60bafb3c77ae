//! Interprocess events.

use curium_sys::{CUipcEventHandle, CUipcEventHandle_st};

use crate::call;
use crate::{Context, Event, Result};

crate::shared_handle! {
    /// An interprocess handle of an event: plain bytes that any channel between the two processes can carry.
    pub struct IpcEventHandle of CUipcEventHandle;
}

impl Event {
    /// Returns a handle with which another process can [open](Event::open_ipc) this event, for as long as this value
    /// exists.
    ///
    /// CUDA: `cuIpcGetEventHandle`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_HANDLE` if the event was created without
    /// [`EventFlags::INTERPROCESS`](crate::EventFlags::INTERPROCESS); `CUDA_ERROR_NOT_SUPPORTED` on systems without
    /// interprocess events.
    #[doc(alias = "cuIpcGetEventHandle")]
    #[doc(alias = "cudaIpcGetEventHandle")]
    pub fn ipc_handle(&self) -> Result<IpcEventHandle> {
        let mut handle = CUipcEventHandle::default();
        self.context().entered(|driver| {
            // SAFETY: `handle` is valid for writes, the event is live, and its context is current.
            unsafe { call!(driver, cuIpcGetEventHandle(&raw mut handle, self.as_raw())) }
        })?;
        Ok(IpcEventHandle(
            handle.reserved.map(|byte| byte.to_ne_bytes()[0]),
        ))
    }

    /// Opens an event of another process in `context`. It can be recorded, waited for and queried like any other event.
    ///
    /// CUDA: `cuIpcOpenEventHandle`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_CONTEXT` in the process that created the event; `CUDA_ERROR_NOT_SUPPORTED` on systems
    /// without interprocess events. The simulator does not open events of other processes.
    #[doc(alias = "cuIpcOpenEventHandle")]
    #[doc(alias = "cudaIpcOpenEventHandle")]
    pub fn open_ipc(context: &Context, handle: IpcEventHandle) -> Result<Self> {
        let handle = CUipcEventHandle_st {
            reserved: handle.0.map(|byte| std::ffi::c_char::from_ne_bytes([byte])),
        };
        let raw = context.entered(|driver| {
            let mut raw = std::ptr::null_mut();
            // SAFETY: `raw` is valid for writes, the context is current, and the driver checks the bytes of the handle.
            unsafe { call!(driver, cuIpcOpenEventHandle(&raw mut raw, handle) creates raw) }?;
            Ok(raw)
        })?;
        Ok(Self::owning(context, raw))
    }
}
