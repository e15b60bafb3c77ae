//! Interprocess events.

use curium_driver::sys::{CUipcEventHandle, CUipcEventHandle_st};
use curium_driver::{Context, Event, Result, call};

curium_driver::shared_handle! {
    /// An interprocess handle of an event: plain bytes that any channel between the two processes
    /// can carry.
    ///
    /// The event must have been created with
    /// [`EventFlags::INTERPROCESS`](curium_driver::EventFlags::INTERPROCESS).
    pub struct IpcEventHandle of CUipcEventHandle;
}

impl IpcEventHandle {
    /// Returns a handle with which another process can [open](IpcEventHandle::open) `event`, for as
    /// long as the event exists.
    ///
    /// CUDA: `cuIpcGetEventHandle`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_HANDLE` if the event was created without
    /// [`EventFlags::INTERPROCESS`](curium_driver::EventFlags::INTERPROCESS);
    /// `CUDA_ERROR_NOT_SUPPORTED` on systems without interprocess events.
    #[doc(alias = "cuIpcGetEventHandle")]
    #[doc(alias = "cudaIpcGetEventHandle")]
    pub fn from_event(event: &Event) -> Result<Self> {
        let mut handle = CUipcEventHandle::default();
        event.context().entered(|driver| {
            // SAFETY: `handle` is valid for writes, the event is live, and its context is current.
            unsafe { call!(driver, cuIpcGetEventHandle(&raw mut handle, event.as_raw())) }
        })?;
        Ok(Self(handle.reserved.map(|byte| byte.to_ne_bytes()[0])))
    }

    /// Opens an event of another process in `context`. It can be recorded, waited for and queried
    /// like any other event.
    ///
    /// CUDA: `cuIpcOpenEventHandle`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_CONTEXT` in the process that created the event;
    /// `CUDA_ERROR_NOT_SUPPORTED` on systems without interprocess events. The simulator does not
    /// open events of other processes.
    #[doc(alias = "cuIpcOpenEventHandle")]
    #[doc(alias = "cudaIpcOpenEventHandle")]
    pub fn open(self, context: &Context) -> Result<Event> {
        let handle = CUipcEventHandle_st {
            reserved: self.0.map(|byte| std::ffi::c_char::from_ne_bytes([byte])),
        };
        let raw = context.entered(|driver| {
            let mut raw = std::ptr::null_mut();
            // SAFETY: `raw` is valid for writes, the context is current, and the driver checks the
            // bytes of the handle.
            unsafe { call!(driver, cuIpcOpenEventHandle(&raw mut raw, handle) creates raw) }?;
            Ok(raw)
        })?;
        // SAFETY: the driver has just opened the event in this context, and no other code has its
        // handle.
        Ok(unsafe { Event::from_raw(context, raw) })
    }
}
