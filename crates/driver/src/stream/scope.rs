//! Captured streams, and streams created by a capture.

use std::sync::Arc;

use curium_sys::CUstreamCaptureStatus;

use crate::base::capture_guard::{self, NOT_WHILE_CAPTURING};
use crate::hazard::Scope;
#[cfg(feature = "graphs")]
use crate::{Context, StreamFlags};
use crate::{Driver, Error, Result, Stream, call};

#[cfg(feature = "graphs")]
use super::foreign::Ownership;

impl Stream {
    /// Returns a stream for a capture in `context`.
    #[cfg(feature = "graphs")]
    #[inline]
    pub(crate) fn of_scope(context: &Context, scope: &Arc<Scope>) -> Result<Self> {
        let raw = context.entered(|driver| {
            let (mut raw, flags) = (std::ptr::null_mut(), StreamFlags::NON_BLOCKING.bits());
            // SAFETY: `raw` is valid for writes, and the context is current.
            unsafe { call!(driver, cuStreamCreateWithPriority(&raw mut raw, flags, 0) creates raw) }?;
            Ok(raw)
        })?;
        Ok(Self::with_scope(context, raw, Ownership::Owned, Some(Arc::clone(scope))))
    }

    /// Returns the capture that the stream was made for, which may have ended.
    #[inline]
    pub(crate) fn scope(&self) -> Option<&Arc<Scope>> {
        self.shared.scope.as_ref()
    }

    /// Returns the identity for uses of memory that wait for nothing; 0 where uses may be those of a graph.
    #[inline]
    pub(crate) fn free_identity(&self) -> u64 {
        self.shared.free_identity
    }

    /// Returns `true` if work of `driver` can be enqueued on the stream, and is run then: the driver is the stream's, which was made for no
    /// capture, and this thread captures nothing.
    #[inline]
    pub(crate) fn runs_work_of(&self, driver: &Driver) -> bool {
        // Outside of captures the key is 0, and in one it is odd, which no address is.
        self.shared.running == driver.address() ^ capture_guard::key()
    }

    /// Returns the capture that work enqueued on the stream goes to, if it was made for one that is open.
    #[inline]
    pub(crate) fn open_scope(&self) -> Option<&Arc<Scope>> {
        self.scope().filter(|scope| scope.is_open())
    }

    /// Returns `true` if the stream belongs to a [capture](crate::Graph::capture) that is open.
    #[inline]
    #[must_use]
    pub fn is_capture_active(&self) -> bool {
        self.open_scope().is_some()
    }

    /// Returns `true` if the stream was created by a [capture](crate::Graph::capture), which may have ended.
    #[inline]
    #[must_use]
    pub fn is_created_by_capture(&self) -> bool {
        self.scope().is_some()
    }

    /// Returns an argument error of `operation`, which would end a capture or use what no graph keeps, if the stream is of an open capture
    /// scope.
    #[inline]
    pub(crate) fn expect_no_scope(&self, operation: &'static str) -> Result<()> {
        if self.scope().is_none() { Ok(()) } else { self.expect_ended(operation) }
    }

    /// Returns an error of `operation`, whose work no graph can contain, if the stream belongs to an open capture or this thread captures.
    ///
    /// # Errors
    ///
    /// An argument error that names `operation`.
    #[inline]
    pub fn expect_running(&self, operation: &'static str) -> Result<()> {
        self.expect_no_scope(operation)?;
        self.expect_captured(operation, NOT_WHILE_CAPTURING)
    }

    /// Returns `true` if work enqueued on the stream is being captured instead of run.
    ///
    /// CUDA: `cuStreamIsCapturing`.
    ///
    /// # Errors
    ///
    /// An error of the driver.
    #[doc(alias = "cuStreamIsCapturing")]
    #[inline]
    pub fn is_capturing(&self) -> Result<bool> {
        let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: `status` is valid for writes, and the stream is live.
        unsafe { call!(self.driver(), cuStreamIsCapturing(self.as_raw(), &raw mut status)) }?;
        Ok(status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    }

    /// Returns the number of the capture that work enqueued on the stream goes to, if any: no two captures of a process have the same.
    ///
    /// CUDA: `cuStreamIsCapturing`, `cuStreamGetCaptureInfo_v2`.
    ///
    /// # Errors
    ///
    /// An error of the driver.
    #[doc(alias = "cuStreamGetCaptureInfo")]
    #[inline]
    pub fn capture_number(&self) -> Result<Option<u64>> {
        if !self.is_capturing()? {
            return Ok(None);
        }
        let (mut status, mut capture) = (CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE, 0);
        let (no_graph, no_nodes, no_count) = (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
        let (status_place, place) = (&raw mut status, &raw mut capture);
        // SAFETY: `status` and `capture` are valid for writes, and what is null is not asked for.
        unsafe {
            call!(
                self.driver(),
                cuStreamGetCaptureInfo_v2(self.as_raw(), status_place, place, no_graph, no_nodes, no_count)
            )
        }?;
        Ok(Some(capture))
    }

    /// Returns an error of `operation` if this thread is capturing a graph that the stream is not part of.
    ///
    /// Work that it enqueued would run now and be missing from the graph. `instead` names an operation that can be captured. Every
    /// operation that enqueues work calls this first. It reads one word outside of captures.
    ///
    /// # Errors
    ///
    /// An argument error that names `operation`.
    #[inline]
    pub fn expect_captured(&self, operation: &'static str, instead: &str) -> Result<()> {
        if capture_guard::key() == 0 { Ok(()) } else { self.expect_captured_now(operation, instead) }
    }

    /// Returns an error of `operation`, which no graph can contain, if any code captures the stream or this thread captures.
    ///
    /// `instead` names an operation that can be captured.
    ///
    /// CUDA: `cuStreamIsCapturing`.
    ///
    /// # Errors
    ///
    /// An argument error that names `operation`, or an error of the driver.
    #[inline]
    pub fn refuse_capture(&self, operation: &'static str, instead: &str) -> Result<()> {
        self.expect_captured(operation, instead)?;
        if self.is_capturing()? { Err(capture_guard::refused_on_captured(operation, instead)) } else { Ok(()) }
    }

    #[cold]
    #[inline(never)]
    fn expect_captured_now(&self, operation: &'static str, instead: &str) -> Result<()> {
        if self.scope().is_some_and(|scope| capture_guard::is_recording(scope.identity())) {
            return Ok(());
        }
        let reason = format!(
            "this thread is capturing a graph, and {self:?} is not part of that capture, so that the work would run now and be missing from the \
             graph; {instead}"
        );
        Err(Error::argument(operation, reason))
    }

    #[cold]
    fn expect_ended(&self, operation: &'static str) -> Result<()> {
        if self.open_scope().is_none() {
            return Ok(());
        }
        let reason = format!(
            "{self:?} is being captured, and this cannot be a part of a graph: it would end the capture, or not be kept"
        );
        Err(Error::argument(operation, reason))
    }
}
