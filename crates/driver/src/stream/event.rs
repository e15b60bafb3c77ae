//! Events on streams: their records, and waits for them.

use std::sync::Arc;

use crate::base::capture_guard;
use crate::base::kept_value::Key;
use crate::call;
use crate::event::explain::other_context;
use crate::hazard::Operation;
use crate::{
    AsRawStream as _, Error, Event, EventFlags, EventPool, PooledEvent, RecordFlags, Result, Stream,
};

impl Event {
    /// Records the event after all work currently enqueued on `stream`, replacing an earlier
    /// record.
    ///
    /// CUDA: `cuEventRecord`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_HANDLE` if the stream belongs to another context; an argument error if
    /// it belongs to another driver.
    #[doc(alias = "cuEventRecord")]
    #[doc(alias = "cudaEventRecord")]
    #[inline]
    pub fn record(&self, stream: &Stream) -> Result<()> {
        self.driver().check_same(stream.driver(), "Event::record")?;
        self.record_under(&stream.enqueue("Event::record")?)
    }

    /// Records the event like [`Event::record`], also in a destructor that runs in a capture
    /// closure: the event marks a point of the stream, and the graph misses nothing without it.
    #[inline]
    pub(crate) fn record_point(&self, stream: &Stream) -> Result<()> {
        if !capture_guard::is_dropping() {
            return self.record(stream);
        }
        self.record_under(&stream.enqueue_release("Event::record")?)
    }

    #[inline]
    fn record_under(&self, operation: &Operation<'_>) -> Result<()> {
        let stream = operation.stream();
        self.record_in(operation.name(), captured_in(operation), || {
            self.record_unguarded(stream)
        })
        .map_err(|error| self.explain_record(error, stream))
    }

    /// Records an internal event, whose handle no other code waits on, on a stream of this driver
    /// whose capture cannot end in the meantime.
    #[inline]
    pub(crate) fn record_unguarded(&self, stream: &Stream) -> Result<()> {
        // SAFETY: the event and the stream are live and belong to this driver.
        unsafe { call!(self.driver(), cuEventRecord(self.as_raw(), stream.as_raw())) }
    }

    /// Records the event like [`Event::record`], with flags.
    ///
    /// CUDA: `cuEventRecordWithFlags`.
    ///
    /// # Errors
    ///
    /// As for [`Event::record`]; `CUDA_ERROR_ILLEGAL_STATE` for [`RecordFlags::EXTERNAL`] outside a
    /// capture.
    #[doc(alias = "cuEventRecordWithFlags")]
    #[doc(alias = "cudaEventRecordWithFlags")]
    #[inline]
    pub fn record_with_flags(&self, stream: &Stream, flags: RecordFlags) -> Result<()> {
        self.driver()
            .check_same(stream.driver(), "Event::record_with_flags")?;
        let operation = stream.enqueue("Event::record_with_flags")?;
        // The graph records an external event at every launch, for work outside the graph.
        let keeping = operation
            .scope()
            .filter(|_| flags.contains(RecordFlags::EXTERNAL));
        if let Some(scope) = keeping {
            scope.keep(Key::Event(self.as_raw().addr()), || Arc::new(self.share()));
        }
        let recorded = if keeping.is_none() {
            self.record_in(operation.name(), captured_in(&operation), || {
                self.call_record_with_flags(&operation, flags)
            })
        } else {
            self.call_record_with_flags(&operation, flags)
        };
        recorded.map_err(|error| self.explain_record(error, stream))
    }

    #[inline]
    fn call_record_with_flags(&self, operation: &Operation<'_>, flags: RecordFlags) -> Result<()> {
        // SAFETY: the event and the stream are live, and the callers have checked that they belong
        // to one driver.
        unsafe {
            call!(
                self.driver(),
                cuEventRecordWithFlags(self.as_raw(), operation.raw_stream(), flags.bits())
            )
        }
    }

    /// Returns an argument error unless the event and the stream of `operation`, which is about to
    /// wait for it, are in the same capture or both outside of captures.
    #[inline]
    fn check_scope(&self, operation: &Operation<'_>) -> Result<()> {
        let recorded = self.scope();
        if recorded == captured_in(operation) {
            Ok(())
        } else {
            self.check_same_scope(recorded, operation)
        }
    }

    #[cold]
    fn check_same_scope(&self, recorded: u64, operation: &Operation<'_>) -> Result<()> {
        let stream = operation.stream();
        let reason = match (recorded, captured_in(operation)) {
            (0, _) => format!(
                "{stream:?} is being captured, and {self:?} was not recorded in that capture"
            ),
            (_, 0) => {
                format!("{self:?} was recorded in a capture, and {stream:?} is not being captured")
            }
            _ => format!("{self:?} was recorded in a capture that {stream:?} does not belong to"),
        };
        Err(Error::argument(operation.name(), reason))
    }

    /// Adds the operands to the error of recording this event on `stream`, and their contexts if
    /// they differ.
    #[cold]
    fn explain_record(&self, error: Error, stream: &Stream) -> Error {
        let error = error.about(format!("{self:?} on {stream:?}"));
        match other_context(&error, self.context(), stream.context()) {
            Some([own, other]) => error.advised(|_| {
                Some(format!("the event belongs to {own}, and the stream to {other}").into())
            }),
            None => error,
        }
    }
}

impl Stream {
    /// Makes all later work on this stream wait for the most recent record of `event`. The host
    /// does not block.
    ///
    /// CUDA: `cuStreamWaitEvent`.
    ///
    /// # Errors
    ///
    /// An argument error if the stream and the event belong to different drivers, or if only one of
    /// them is part of a [capture scope](crate::Graph::capture).
    #[doc(alias = "cuStreamWaitEvent")]
    #[doc(alias = "cudaStreamWaitEvent")]
    #[inline]
    pub fn wait_event(&self, event: &Event) -> Result<()> {
        self.driver()
            .check_same(event.driver(), "Stream::wait_event")?;
        let operation = self.enqueue("Stream::wait_event")?;
        event.check_scope(&operation)?;
        self.wait_event_unguarded(event)
    }

    /// Waits for an event of the same driver and capture, on a stream whose capture cannot end in
    /// the meantime.
    #[inline]
    pub(crate) fn wait_event_unguarded(&self, event: &Event) -> Result<()> {
        // SAFETY: the stream and the event are live and belong to this driver; 0 is the default of
        // the flags.
        unsafe {
            call!(
                self.driver(),
                cuStreamWaitEvent(self.as_raw(), event.as_raw(), 0)
            )
        }
    }

    /// Returns an event without timing from the stream's own pool. It has not been recorded for
    /// this use.
    ///
    /// CUDA: `cuEventCreate`, if no event is idle.
    ///
    /// # Errors
    ///
    /// As for [`Event::new`].
    #[inline]
    pub fn pooled_event(&self) -> Result<PooledEvent> {
        let pool = self
            .shared
            .markers
            .get_or_init(|| EventPool::new(self.context(), EventFlags::DISABLE_TIMING));
        pool.take()
    }

    /// Records an event of the stream's own pool after all work currently enqueued.
    ///
    /// CUDA: `cuEventRecord`, and `cuEventCreate` if no event is idle.
    ///
    /// # Errors
    ///
    /// As for [`Event::record`].
    #[inline]
    pub fn record_pooled_event(&self) -> Result<PooledEvent> {
        let event = self.pooled_event()?;
        event.record_point(self)?;
        Ok(event)
    }
}

/// Returns the capture that receives the work of `operation`; 0 outside a capture.
#[inline]
fn captured_in(operation: &Operation<'_>) -> u64 {
    operation.scope().map_or(0, |scope| scope.identity())
}
