//! Captured streams, and streams created by a capture.

use std::sync::Arc;

use curium_sys::CUstreamCaptureStatus;

use crate::base::capture_guard;
use crate::hazard::Scope;
use crate::{AsRawStream as _, Driver, Result, Stream, call};
use crate::{Context, StreamFlags};

use super::raw::Ownership;

impl Stream {
    /// Creates a stream in `context` for a capture.
    #[inline]
    pub(crate) fn for_capture(context: &Context, scope: &Arc<Scope>) -> Result<Self> {
        let raw = context.entered(|driver| {
            let mut raw = std::ptr::null_mut();
            let flags = StreamFlags::NON_BLOCKING.bits();
            // SAFETY: `raw` is valid for writes, and the context is current.
            unsafe {
                call!(driver, cuStreamCreateWithPriority(&raw mut raw, flags, 0) creates raw)
            }?;
            Ok(raw)
        })?;
        Ok(Self::with_scope(
            context,
            raw,
            Ownership::Owned,
            Some(Arc::clone(scope)),
        ))
    }

    /// Returns the capture that the stream was created for, which may have ended.
    #[inline]
    pub(crate) fn scope(&self) -> Option<&Arc<Scope>> {
        self.shared.scope.as_ref()
    }

    /// Returns the identity for accesses that need no wait; 0 if accesses may belong to a graph.
    #[inline]
    pub(crate) fn free_identity(&self) -> u64 {
        self.shared.free_identity
    }

    /// Returns `true` if the stream belongs to `driver` and
    /// [is not in a capture](Self::is_in_capture), in one comparison.
    #[inline]
    pub(crate) fn executes_for(&self, driver: &Driver) -> bool {
        // Outside captures the key is 0; in a capture it is odd, which no address is.
        self.shared.running == driver.address() ^ capture_guard::key()
    }

    /// Returns the open capture that receives work enqueued on the stream, if any.
    #[inline]
    pub(crate) fn open_scope(&self) -> Option<&Arc<Scope>> {
        self.scope().filter(|scope| scope.is_open())
    }

    /// Returns `true` if the stream belongs to a [capture](crate::Graph::capture) in progress.
    #[inline]
    #[must_use]
    pub fn is_capture_active(&self) -> bool {
        self.open_scope().is_some()
    }

    /// Returns `true` if the stream was created by a [capture](crate::Graph::capture), which may
    /// have ended.
    #[inline]
    #[must_use]
    pub fn is_created_by_capture(&self) -> bool {
        self.scope().is_some()
    }

    /// Returns `true` if work enqueued on the stream is captured instead of executed.
    ///
    /// CUDA: `cuStreamIsCapturing`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuStreamIsCapturing")]
    #[doc(alias = "cudaStreamIsCapturing")]
    #[inline]
    pub fn is_capturing(&self) -> Result<bool> {
        let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: `status` is valid for writes, and the stream is live.
        unsafe {
            call!(
                self.driver(),
                cuStreamIsCapturing(self.as_raw(), &raw mut status)
            )
        }?;
        Ok(status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    }

    /// Returns the identifier of the stream's capture, if any. It is unique in the process.
    ///
    /// CUDA: `cuStreamIsCapturing`, `cuStreamGetCaptureInfo_v2`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuStreamGetCaptureInfo")]
    #[doc(alias = "cudaStreamGetCaptureInfo")]
    #[inline]
    pub fn capture_number(&self) -> Result<Option<u64>> {
        if !self.is_capturing()? {
            return Ok(None);
        }
        let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        let mut capture = 0;
        // SAFETY: `status` and `capture` are valid for writes, and the other outputs are null,
        // which the driver allows.
        unsafe {
            call!(
                self.driver(),
                cuStreamGetCaptureInfo_v2(
                    self.as_raw(),
                    &raw mut status,
                    &raw mut capture,
                    std::ptr::null_mut(),
                    std::ptr::null_mut(),
                    std::ptr::null_mut()
                )
            )
        }?;
        Ok(Some(capture))
    }
}
