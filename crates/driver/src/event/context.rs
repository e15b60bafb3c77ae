//! Events of all work in a context.

use crate::base::capture_guard;
use crate::call;
use crate::context::Owned;
use crate::{Context, Event, Result};

impl Context {
    /// Records `event` after all work currently enqueued on any stream of this context. A primary
    /// context includes its green contexts; a green context does not include other green contexts.
    ///
    /// Requires CUDA 12.5, or 12.4 for a green context. CUDA: `cuCtxRecordEvent`,
    /// `cuGreenCtxRecordEvent`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_HANDLE` if the event belongs to another context,
    /// `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED` while a stream of the context is being captured, an
    /// argument error if the event belongs to another driver.
    #[doc(alias = "cuCtxRecordEvent")]
    #[doc(alias = "cuGreenCtxRecordEvent")]
    pub fn record_event(&self, event: &Event) -> Result<()> {
        self.driver()
            .check_same(event.driver(), "Context::record_event")?;
        capture_guard::refuse("Context::record_event")?;
        match &self.owned() {
            // SAFETY: the context and the event are live and belong to this driver.
            Owned::Green(green) => unsafe {
                call!(
                    self.driver(),
                    cuGreenCtxRecordEvent(green.raw(), event.as_raw())
                )
            },
            // SAFETY: the context and the event are live and belong to this driver.
            _ => unsafe {
                call!(
                    self.driver(),
                    cuCtxRecordEvent(self.as_raw(), event.as_raw())
                )
            },
        }
    }

    /// Makes all future work on any stream of this context wait for the most recent record of
    /// `event`, which may belong to another context. The host does not block.
    ///
    /// Requires CUDA 12.5, or 12.4 for a green context. CUDA: `cuCtxWaitEvent`,
    /// `cuGreenCtxWaitEvent`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED` while a stream of the context is being captured, an
    /// argument error if the event belongs to another driver.
    #[doc(alias = "cuCtxWaitEvent")]
    #[doc(alias = "cuGreenCtxWaitEvent")]
    pub fn wait_event(&self, event: &Event) -> Result<()> {
        self.driver()
            .check_same(event.driver(), "Context::wait_event")?;
        capture_guard::refuse("Context::wait_event")?;
        match &self.owned() {
            // SAFETY: the context and the event are live and belong to this driver.
            Owned::Green(green) => unsafe {
                call!(
                    self.driver(),
                    cuGreenCtxWaitEvent(green.raw(), event.as_raw())
                )
            },
            // SAFETY: the context and the event are live and belong to this driver.
            _ => unsafe { call!(self.driver(), cuCtxWaitEvent(self.as_raw(), event.as_raw())) },
        }
    }
}
