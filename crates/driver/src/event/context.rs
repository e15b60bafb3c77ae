//! Events of a whole context.

use crate::base::capture_guard;
use crate::call;
use crate::context::Owned;
use crate::{Context, Event, Result};

impl Context {
    /// Records `event` after all work of this context that is currently enqueued on any stream. For a
    /// primary context that includes its green contexts, for a green one it does not include the others.
    ///
    /// Needs CUDA 12.5, or 12.4 for a green context. CUDA: `cuCtxRecordEvent`, `cuGreenCtxRecordEvent`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_HANDLE` if the event is of another context, `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED` while a stream of the
    /// context captures, an argument error if the event is of another driver.
    #[doc(alias = "cuCtxRecordEvent")]
    #[doc(alias = "cuGreenCtxRecordEvent")]
    #[inline]
    pub fn record_event(&self, event: &Event) -> Result<()> {
        self.driver().expect_same(event.driver(), "Context::record_event")?;
        capture_guard::refuse("Context::record_event")?;
        match &self.owned() {
            // SAFETY: the context and the event are live and belong to this driver.
            Owned::Green(green) => unsafe { call!(self.driver(), cuGreenCtxRecordEvent(green.raw(), event.as_raw())) },
            // SAFETY: the context and the event are live and belong to this driver.
            _ => unsafe { call!(self.driver(), cuCtxRecordEvent(self.as_raw(), event.as_raw())) },
        }
    }

    /// Makes all later work of this context, on whatever stream, wait for `event`, as it was recorded last. The host does not block. The
    /// event may be of another context.
    ///
    /// Needs CUDA 12.5, or 12.4 for a green context. CUDA: `cuCtxWaitEvent`, `cuGreenCtxWaitEvent`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED` while a stream of the context captures, an argument error if the event is of another
    /// driver.
    #[doc(alias = "cuCtxWaitEvent")]
    #[doc(alias = "cuGreenCtxWaitEvent")]
    #[inline]
    pub fn wait_event(&self, event: &Event) -> Result<()> {
        self.driver().expect_same(event.driver(), "Context::wait_event")?;
        capture_guard::refuse("Context::wait_event")?;
        match &self.owned() {
            // SAFETY: the context and the event are live and belong to this driver.
            Owned::Green(green) => unsafe { call!(self.driver(), cuGreenCtxWaitEvent(green.raw(), event.as_raw())) },
            // SAFETY: the context and the event are live and belong to this driver.
            _ => unsafe { call!(self.driver(), cuCtxWaitEvent(self.as_raw(), event.as_raw())) },
        }
    }
}
