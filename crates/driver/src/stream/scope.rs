//! Captured streams, and streams created by a capture.

use std::sync::Arc;

use curium_sys::CUstreamCaptureStatus;

use crate::base::capture_guard::{self, NOT_WHILE_CAPTURING};
use crate::hazard::Scope;
use crate::{AsRawStream as _, Driver, Error, Result, Stream, call};
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

    /// Returns `true` if the stream was created by a capture, or if this thread is in a capture
    /// closure. Every operation asks this first.
    #[inline]
    pub(crate) fn is_in_capture(&self) -> bool {
        self.scope().is_some() || capture_guard::key() != 0
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

    /// Returns an argument error that names `operation` if the stream belongs to a capture in
    /// progress. For operations that would invalidate the capture, or use memory that its graph
    /// does not keep alive.
    #[inline]
    pub(crate) fn check_no_scope(&self, operation: &'static str) -> Result<()> {
        if self.scope().is_none() {
            Ok(())
        } else {
            self.check_ended(operation)
        }
    }

    /// Returns an argument error that names `operation`, which no graph can contain, if the stream
    /// belongs to a capture in progress, or if this thread is in a capture closure.
    #[cold]
    #[inline(never)]
    pub(crate) fn check_uncaptured(&self, operation: &'static str) -> Result<()> {
        self.check_no_scope(operation)?;
        self.check_recorded(operation, NOT_WHILE_CAPTURING)
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

    /// Returns an argument error that names `operation` if this thread is in a capture closure and
    /// the stream is not part of that capture: the work would run immediately and be missing from
    /// the graph. `instead` names an operation that can be captured.
    #[inline]
    pub(crate) fn check_recorded(&self, operation: &'static str, instead: &str) -> Result<()> {
        if capture_guard::key() == 0 {
            Ok(())
        } else {
            self.check_recording_scope(operation, instead)
        }
    }

    #[cold]
    #[inline(never)]
    fn check_recording_scope(&self, operation: &'static str, instead: &str) -> Result<()> {
        if self
            .scope()
            .is_some_and(|scope| capture_guard::is_recording(scope.identity()))
        {
            return Ok(());
        }
        let reason = format!(
            "this thread is capturing a graph, and {self:?} is not part of that capture: the work would run immediately and be missing from the \
             graph; {instead}"
        );
        Err(Error::argument(operation, reason))
    }

    #[cold]
    fn check_ended(&self, operation: &'static str) -> Result<()> {
        if self.open_scope().is_none() {
            return Ok(());
        }
        let reason = format!(
            "{self:?} is being captured, and a graph cannot contain this operation: it would invalidate the capture, or the graph would not \
             keep the operation's memory alive"
        );
        Err(Error::argument(operation, reason))
    }
}
