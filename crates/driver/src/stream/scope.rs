//! Streams that are captured, and those that were made for it.

use std::any::Any;
use std::sync::Arc;

use curium_sys::{CUdeviceptr, CUstreamCaptureStatus};

use crate::hazard::Scope;
#[cfg(feature = "graphs")]
use crate::{Context, StreamFlags};
use crate::{Driver, Error, Result, Stream, call};

#[cfg(feature = "graphs")]
use super::foreign::Ownership;

impl Stream {
    /// A stream for a capture in `context`.
    #[cfg(feature = "graphs")]
    #[inline]
    pub(crate) fn of_scope(context: &Context, scope: &Arc<Scope>) -> Result<Self> {
        let raw = context.entered(|driver| {
            let (mut raw, flags) = (std::ptr::null_mut(), StreamFlags::NON_BLOCKING.bits());
            // SAFETY: `raw` is a valid place for the answer, and the context is current.
            unsafe { call!(driver, cuStreamCreateWithPriority(&raw mut raw, flags, 0)) }?;
            Ok(raw)
        })?;
        Ok(Self::with_scope(context, raw, Ownership::Owned, Some(Arc::clone(scope))))
    }

    /// The capture that the stream was made for, which may have ended.
    #[inline]
    pub(crate) fn scope(&self) -> Option<&Arc<Scope>> {
        self.shared.scope.as_ref()
    }

    /// The identity for uses of memory that wait for nothing; 0 where uses may be those of a graph.
    #[inline]
    pub(crate) fn free_identity(&self) -> u64 {
        self.shared.free_identity
    }

    /// Whether work of `driver` can be put on the stream, and is run then: the driver is the stream's, which was made for no capture.
    #[inline]
    pub(crate) fn runs_work_of(&self, driver: &Driver) -> bool {
        self.shared.running == driver.address()
    }

    /// The capture that what is put on the stream goes to, if it was made for one that is open.
    #[inline]
    pub(crate) fn open_scope(&self) -> Option<&Arc<Scope>> {
        self.scope().filter(|scope| scope.is_open())
    }

    /// Whether the stream is of an open capture scope.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub fn is_in_scope(&self) -> bool {
        self.open_scope().is_some()
    }

    /// Whether the stream was made for a capture, which may have ended.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub fn is_of_scope(&self) -> bool {
        self.scope().is_some()
    }

    /// Has the graph of the open capture keep `value`, which is called `key`; nothing happens if there is no such capture.
    #[doc(hidden)]
    #[inline]
    pub fn keep_in_scope(&self, key: usize, value: impl FnOnce() -> Arc<dyn Any + Send + Sync>) {
        if let Some(scope) = self.scope() {
            scope.keep(key, value);
        }
    }

    /// Notes memory that was allocated in the open capture, whose graph frees it at the end; false if there is no such capture.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub fn note_allocation(&self, address: CUdeviceptr) -> bool {
        self.scope().and_then(|scope| scope.with(|seen| seen.allocations().push(address))).is_some()
    }

    /// Whether memory was allocated in the open capture and not freed; the caller frees it.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub fn forget_allocation(&self, address: CUdeviceptr) -> bool {
        let forget = |allocations: &mut Vec<CUdeviceptr>| {
            let index = allocations.iter().position(|known| *known == address);
            index.map(|index| allocations.swap_remove(index)).is_some()
        };
        self.scope().and_then(|scope| scope.with(|seen| forget(seen.allocations()))).unwrap_or(false)
    }

    /// An argument error of `operation`, which would end a capture or use what no graph keeps, if the stream is of an open capture scope.
    #[doc(hidden)]
    #[inline]
    pub fn expect_running(&self, operation: &'static str) -> Result<()> {
        if self.scope().is_none() { Ok(()) } else { self.expect_ended(operation) }
    }

    /// An argument error of `operation` if the stream is being captured.
    #[doc(hidden)]
    #[inline]
    pub fn refuse_capture(&self, operation: &'static str) -> Result<()> {
        if self.is_capturing()? { Err(Error::argument(operation, "the stream is being captured")) } else { Ok(()) }
    }

    /// Whether what is put on the stream is being captured instead of run.
    ///
    /// CUDA: `cuStreamIsCapturing`.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[doc(alias = "cuStreamIsCapturing")]
    #[inline]
    pub fn is_capturing(&self) -> Result<bool> {
        let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: `status` is a valid place for the answer, and the stream is live.
        unsafe { call!(self.driver(), cuStreamIsCapturing(self.as_raw(), &raw mut status)) }?;
        Ok(status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    }

    /// The number of the capture that what is put on the stream goes to, if any: no two captures of a process have the same.
    ///
    /// CUDA: `cuStreamIsCapturing`, `cuStreamGetCaptureInfo_v2`.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[doc(alias = "cuStreamGetCaptureInfo")]
    #[inline]
    pub fn capture_number(&self) -> Result<Option<u64>> {
        if !self.is_capturing()? {
            return Ok(None);
        }
        let (mut status, mut capture) = (CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE, 0);
        let (no_graph, no_nodes, no_count) = (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
        let (status_place, place) = (&raw mut status, &raw mut capture);
        // SAFETY: `status` and `capture` are valid places for the answers, and what is null is not asked for.
        unsafe {
            call!(
                self.driver(),
                cuStreamGetCaptureInfo_v2(self.as_raw(), status_place, place, no_graph, no_nodes, no_count)
            )
        }?;
        Ok(Some(capture))
    }

    #[cold]
    #[inline]
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
