//! Events: points in a stream. `stream/event.rs` records them and waits for them on streams.

mod context;
pub(crate) mod explain;
pub(crate) mod pool;
mod scope;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use bitflags::bitflags;
use curium_sys::{CUevent, CUevent_flags, CUevent_record_flags, CUevent_st, CUresult, Function};

use crate::base::call::finished;
use crate::base::capture_guard;
use crate::base::exclusive::Exclusive;
use crate::base::handle::Handle;
use crate::base::release::release;
use crate::base::wait_history::WaitHistory;
use crate::call;
use crate::{Context, Driver, Error, Result, Returned};

/// A CUDA event: a point in a stream that streams and the host can wait for, with a timestamp.
///
/// ```no_run
/// # fn example(stream: &curium_driver::Stream) -> Result<(), curium_driver::Error> {
/// use curium_driver::{Event, EventFlags};
///
/// let begin = Event::new(stream.context(), EventFlags::empty())?;
/// let end = Event::new(stream.context(), EventFlags::empty())?;
/// begin.record(stream)?;
/// // … work …
/// end.record(stream)?;
/// end.synchronize()?;
/// println!("{:?}", end.elapsed_since(&begin)?);
/// # Ok(())
/// # }
/// ```
pub struct Event {
    /// Shared with the futures of this event, which may outlive it.
    shared: Arc<Shared>,
}

struct Shared {
    raw: Handle<CUevent_st>,
    context: Context,
    /// The capture scope of the last record; 0 outside a capture.
    scope: AtomicU64,
    /// Held while the scope changes.
    recording: Exclusive<()>,
    /// The durations of the waits of futures.
    history: WaitHistory,
}

bitflags! {
    /// Event flags.
    #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
    pub struct EventFlags: u32 {
        /// A host thread that waits for the event blocks instead of spinning.
        const BLOCKING_SYNC = CUevent_flags::CU_EVENT_BLOCKING_SYNC.0;
        /// The event records no timestamp, which makes it cheaper.
        const DISABLE_TIMING = CUevent_flags::CU_EVENT_DISABLE_TIMING.0;
        /// Other processes may open the event: `IpcEventHandle` of `curium-interop`. Requires
        /// [`EventFlags::DISABLE_TIMING`].
        const INTERPROCESS = CUevent_flags::CU_EVENT_INTERPROCESS.0;
        /// Flags defined by newer drivers.
        const _ = !0;
    }
}

bitflags! {
    /// Flags for recording an event.
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    pub struct RecordFlags: u32 {
        /// In a capture, the event is recorded by the graph for work outside the graph, instead of
        /// becoming a dependency inside it.
        const EXTERNAL = CUevent_record_flags::CU_EVENT_RECORD_EXTERNAL.0;
        /// Flags defined by newer drivers.
        const _ = !0;
    }
}

#[cold]
fn refused(error: Error, flags: EventFlags) -> Error {
    let is_timed =
        flags.contains(EventFlags::INTERPROCESS) && !flags.contains(EventFlags::DISABLE_TIMING);
    error.advised(|call| {
        (is_timed && call.code == CUresult::CUDA_ERROR_INVALID_VALUE)
            .then_some("an interprocess event also requires `EventFlags::DISABLE_TIMING`".into())
    })
}

impl Event {
    /// Creates an event in `context`. It is considered complete until it is recorded.
    ///
    /// CUDA: `cuEventCreate`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for [`EventFlags::INTERPROCESS`] without
    /// [`EventFlags::DISABLE_TIMING`].
    #[doc(alias = "cuEventCreate")]
    #[doc(alias = "cudaEventCreate")]
    #[doc(alias = "cudaEventCreateWithFlags")]
    pub fn new(context: &Context, flags: EventFlags) -> Result<Self> {
        let raw = context.entered(|driver| {
            let mut raw = std::ptr::null_mut();
            // SAFETY: `raw` is valid for writes, and the context is current.
            unsafe { call!(driver, cuEventCreate(&raw mut raw, flags.bits()) creates raw) }
                .map_err(|error| refused(error, flags))?;
            Ok(raw)
        })?;
        Ok(Self::owning(context, raw))
    }

    /// Takes ownership of the event `raw` of `context`.
    ///
    /// # Safety
    ///
    /// - `raw` is a live event of this context and driver.
    /// - No other code destroys it, or uses it after the result is dropped.
    #[must_use]
    #[inline]
    pub unsafe fn from_raw(context: &Context, raw: CUevent) -> Self {
        Self::owning(context, raw)
    }

    /// Returns the raw handle and transfers ownership to the caller.
    ///
    /// # Errors
    ///
    /// Returns the event to the caller if a future of it still exists.
    #[inline]
    pub fn into_raw(self) -> Result<CUevent, Returned<Self>> {
        let mut shared = self.unshare("Event::into_raw")?;
        let raw = shared.raw.raw();
        shared.raw.clear();
        Ok(raw)
    }

    /// Returns the context of this event.
    #[must_use]
    #[inline]
    pub fn context(&self) -> &Context {
        &self.shared.context
    }

    /// Returns the raw handle. It is valid for as long as this event exists.
    #[must_use]
    #[inline]
    pub fn as_raw(&self) -> CUevent {
        self.shared.raw.raw()
    }

    /// Returns `true` if the most recent record has completed. Does not wait.
    ///
    /// CUDA: `cuEventQuery`.
    ///
    /// # Errors
    ///
    /// The error of earlier asynchronous work in the context.
    #[doc(alias = "cuEventQuery")]
    #[doc(alias = "cudaEventQuery")]
    #[inline]
    pub fn is_finished(&self) -> Result<bool> {
        self.check_outside("Event::is_finished")?;
        // SAFETY: the event is live and belongs to this driver.
        finished(unsafe { call!(self.driver(), cuEventQuery(self.as_raw())) })
    }

    /// Waits until the most recent record has completed.
    ///
    /// CUDA: `cuEventSynchronize`.
    ///
    /// # Errors
    ///
    /// The error of earlier asynchronous work in the context, after the wait. An argument error if
    /// the event was last recorded in a [capture scope](crate::Graph::capture), where it is a point
    /// in a graph and not in time, and within a capture closure.
    #[doc(alias = "cuEventSynchronize")]
    #[doc(alias = "cudaEventSynchronize")]
    #[inline]
    pub fn synchronize(&self) -> Result<()> {
        self.check_outside("Event::synchronize")?;
        capture_guard::refuse_wait("Event::synchronize")?;
        // SAFETY: the event is live and belongs to this driver.
        unsafe { call!(self.driver(), cuEventSynchronize(self.as_raw())) }
    }

    /// Returns the time from `begin` to this event in milliseconds; negative if this event
    /// completed first. Both must have completed. The resolution is about 0.5 µs.
    ///
    /// CUDA: `cuEventElapsedTime_v2`, and `cuEventElapsedTime` before CUDA 12.8.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_READY` if an event has not completed; `CUDA_ERROR_INVALID_HANDLE` if an
    /// event was never recorded, has timing disabled or belongs to another context.
    #[doc(alias = "cuEventElapsedTime")]
    #[doc(alias = "cudaEventElapsedTime")]
    #[inline]
    pub fn milliseconds_since(&self, begin: &Self) -> Result<f32> {
        self.driver()
            .check_same(begin.driver(), "Event::milliseconds_since")?;
        let mut milliseconds = 0.0;
        let driver = self.driver();
        let start = begin.as_raw();
        let end = self.as_raw();
        let result = if driver.has(Function::cuEventElapsedTime_v2) {
            // SAFETY: `milliseconds` is valid for writes, and both events are live.
            unsafe {
                call!(
                    driver,
                    cuEventElapsedTime_v2(&raw mut milliseconds, start, end)
                )
            }
        } else {
            // SAFETY: `milliseconds` is valid for writes, and both events are live.
            unsafe {
                call!(
                    driver,
                    cuEventElapsedTime(&raw mut milliseconds, start, end)
                )
            }
        };
        result.map_err(|error| self.explain_elapsed(error, begin))?;
        Ok(milliseconds)
    }

    /// Returns the time from `begin` to this event; zero if this event completed first. Both must
    /// have completed.
    ///
    /// CUDA: `cuEventElapsedTime_v2`, and `cuEventElapsedTime` before CUDA 12.8.
    ///
    /// # Errors
    ///
    /// As for [`Event::milliseconds_since`].
    #[inline]
    pub fn elapsed_since(&self, begin: &Self) -> Result<Duration> {
        let milliseconds = f64::from(self.milliseconds_since(begin)?).max(0.0);
        Ok(Duration::try_from_secs_f64(milliseconds / 1e3).unwrap_or_default())
    }

    /// Destroys the event and returns any error, instead of only reporting it as [`Drop`] does. A
    /// pending record still completes.
    ///
    /// CUDA: `cuEventDestroy_v2`.
    ///
    /// # Errors
    ///
    /// Returns the event to the caller if a future of it still exists, or if the driver call fails.
    #[doc(alias = "cuEventDestroy")]
    #[doc(alias = "cudaEventDestroy")]
    #[inline]
    pub fn close(self) -> Result<(), Returned<Self>> {
        let mut event = self.unshare("Event::close")?;
        match event.destroy() {
            Ok(()) => Ok(()),
            Err(error) => Err(Returned::new(
                Self {
                    shared: Arc::new(event),
                },
                error,
            )),
        }
    }

    /// Returns the driver of this event.
    #[must_use]
    #[inline]
    pub fn driver(&self) -> &Driver {
        self.shared.context.driver()
    }

    fn owning(context: &Context, raw: CUevent) -> Self {
        let shared = Shared {
            raw: Handle::new(raw),
            context: context.clone(),
            scope: AtomicU64::new(0),
            recording: Exclusive::new(()),
            history: WaitHistory::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Returns another owner of the same event.
    #[inline]
    pub(crate) fn share(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }

    /// Returns the durations of the waits of futures for this event.
    pub(crate) fn wait_history(&self) -> &WaitHistory {
        &self.shared.history
    }

    #[inline]
    fn unshare(self, operation: &'static str) -> Result<Shared, Returned<Self>> {
        Arc::try_unwrap(self.shared).map_err(|shared| {
            Returned::new(
                Self { shared },
                Error::argument(operation, "a future of the event still exists"),
            )
        })
    }
}

impl Shared {
    fn destroy(&mut self) -> Result<()> {
        // SAFETY: the event is live, no other owner has its handle, and it is not used again once
        // it is destroyed.
        unsafe { call!(self.context.driver(), cuEventDestroy_v2(self.raw.raw())) }.map_err(
            |error| error.about_handle("event", self.raw.raw(), self.context.device().as_raw()),
        )?;
        self.raw.clear();
        Ok(())
    }

    /// Destroys the event and reports any error.
    fn release(&mut self) {
        release(|| self.destroy());
    }
}

impl AsRef<Driver> for Event {
    #[inline]
    fn as_ref(&self) -> &Driver {
        self.driver()
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Event({:?})", self.shared.raw)
    }
}

impl Drop for Shared {
    #[inline]
    fn drop(&mut self) {
        if !self.raw.is_cleared() {
            self.release();
        }
    }
}
