//! The captures that a potentially unsafe call invalidates.

use curium_sys::CUstreamCaptureMode;

use crate::object::capture::Capture;

impl Capture {
    /// Returns `true` if this mode forbids potentially unsafe calls of a thread.
    pub(crate) fn forbids_unsafe(&self, mode: CUstreamCaptureMode, thread: u64) -> bool {
        let is_own = self.thread == thread && !self.is_relaxed();
        match mode {
            CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED => false,
            CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL => is_own,
            _ => is_own || self.mode == CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL,
        }
    }
}
