//! A stream: a queue of work that runs in order.

mod attribute;
mod foreign;
mod memory_figures;
mod memory_operation;
mod pool;
mod query;
mod scope;
mod weak;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bitflags::bitflags;
use curium_sys::{CUresult, CUstream, CUstream_flags, CUstream_st, Function};

pub use self::attribute::{
    AccessPolicyWindow, AccessProperty, MemorySyncDomain, MemorySyncDomainMap, SynchronizationPolicy,
};
use self::foreign::Ownership;
#[cfg(feature = "graphs")]
pub(crate) use self::memory_operation::MAX_BATCH;
pub use self::memory_operation::{AttachMode, MemoryOperation, Reduction, WaitCondition};
pub use self::pool::{PooledStream, StreamPool};
use self::weak::Last;
pub use self::weak::WeakStream;

use crate::base::capture_guard::{self, PASS_THE_SCOPE};
use crate::base::handle::Handle;
use crate::base::release::release;
use crate::call;
use crate::hazard::{AccessGuard, Scope, SyncPoints};
use crate::{Context, Device, Driver, Error, Event, EventFlags, EventPool, PooledEvent, Result, Returned};

/// A queue of work on a device: what is put on one stream runs in order, and streams run beside each other. Clones are cheap
/// and stand for the same stream.
///
/// The stream is destroyed with the last clone; work that is still on it completes. Buffers keep the streams that they were
/// used on.
#[derive(Clone)]
pub struct Stream {
    shared: Arc<Shared>,
}

/// Options of a stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct StreamOptions {
    /// Flags of the stream; the default is [`StreamFlags::NON_BLOCKING`].
    pub flags: StreamFlags,
    /// Lower numbers go first; the driver clamps the value to the range of the device. The default is 0, the lowest priority.
    pub priority: i32,
}

bitflags! {
    /// Flags of a stream.
    #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
    pub struct StreamFlags: u32 {
        /// The stream does not synchronize with the legacy default stream.
        const NON_BLOCKING = CUstream_flags::CU_STREAM_NON_BLOCKING.0;
        /// Flags of newer drivers.
        const _ = !0;
    }
}

/// The next identity of a stream. A raw handle is none: drivers reuse them.
static NEXT_IDENTITY: AtomicU64 = AtomicU64::new(1);

struct Shared {
    raw: Handle<CUstream_st>,
    ownership: Ownership,
    driver: Driver,
    context: Context,
    identity: u64,
    /// The identity for uses of memory that wait for nothing; none (0) where uses may be those of a graph.
    free_identity: u64,
    /// Where the driver is, if work enqueued on the stream is run and not captured in a scope; 0 otherwise.
    running: usize,
    sync_points: SyncPoints,
    /// The capture that the stream was made for.
    scope: Option<Arc<Scope>>,
    /// Events that mark points for those who wait without blocking.
    markers: OnceLock<EventPool>,
    /// The point after all work of the stream, for observers that outlive it.
    last: OnceLock<Arc<Last>>,
}

impl StreamOptions {
    /// Returns a stream that does not synchronize with the legacy default stream, of priority 0.
    #[must_use]
    #[inline]
    pub const fn new() -> Self {
        Self { flags: StreamFlags::NON_BLOCKING, priority: 0 }
    }

    /// Sets the flags.
    #[must_use]
    #[inline]
    pub const fn with_flags(mut self, flags: StreamFlags) -> Self {
        self.flags = flags;
        self
    }

    /// Returns the same options with another priority. Lower numbers go first.
    #[must_use]
    #[inline]
    pub const fn with_priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }
}

impl Default for StreamOptions {
    #[inline]
    fn default() -> Self {
        Self::new()
    }
}

impl Context {
    /// Returns a stream with the default options: one that does not synchronize with the legacy default stream.
    ///
    /// CUDA: `cuStreamCreateWithPriority`.
    ///
    /// # Errors
    ///
    /// An error of the driver.
    #[inline]
    pub fn stream(&self) -> Result<Stream> {
        Stream::new(self, StreamOptions::new())
    }
}

impl Stream {
    /// Creates a stream in `context`.
    ///
    /// CUDA: `cuStreamCreateWithPriority`, and `cuGreenCtxStreamCreate` in a green context.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` in a green context without [`StreamFlags::NON_BLOCKING`].
    #[doc(alias = "cuStreamCreate")]
    #[doc(alias = "cuStreamCreateWithPriority")]
    #[doc(alias = "cuGreenCtxStreamCreate")]
    #[inline]
    pub fn new(context: &Context, options: StreamOptions) -> Result<Self> {
        if let Some(green) = context.green_raw()
            && context.driver().has(Function::cuGreenCtxStreamCreate)
        {
            let (mut raw, StreamOptions { flags, priority }) = (std::ptr::null_mut(), options);
            let (driver, place) = (context.driver(), &raw mut raw);
            // SAFETY: `place` is valid for writes, and the green context is live.
            unsafe { call!(driver, cuGreenCtxStreamCreate(place, green, flags.bits(), priority) creates raw) }?;
            return Ok(Self::with_ownership(context, raw, Ownership::Owned));
        }
        let raw = context.entered(|driver| {
            let mut raw = std::ptr::null_mut();
            let StreamOptions { flags, priority } = options;
            // SAFETY: `raw` is valid for writes, and the context is current.
            unsafe { call!(driver, cuStreamCreateWithPriority(&raw mut raw, flags.bits(), priority) creates raw) }?;
            Ok(raw)
        })?;
        Ok(Self::with_ownership(context, raw, Ownership::Owned))
    }

    /// Returns the context that this stream belongs to.
    #[must_use]
    #[inline]
    pub fn context(&self) -> &Context {
        &self.shared.context
    }

    /// Returns the driver that this stream belongs to.
    #[inline]
    #[must_use]
    pub fn driver(&self) -> &Driver {
        &self.shared.driver
    }

    /// Returns the driver's handle of this stream. It is valid for as long as a clone of this stream exists.
    #[inline]
    #[must_use]
    pub fn as_raw(&self) -> CUstream {
        self.shared.raw.raw()
    }

    /// Waits until all work on this stream is done.
    ///
    /// CUDA: `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// The error of any work of the context that failed before; the call waits even then. An argument error, without a wait, on
    /// a stream of an open [capture scope](crate::Graph::capture), and within the closure of a capture.
    #[doc(alias = "cuStreamSynchronize")]
    #[inline]
    pub fn synchronize(&self) -> Result<()> {
        self.expect_no_scope("Stream::synchronize")?;
        capture_guard::refuse_wait("Stream::synchronize")?;
        self.drain()
    }

    /// Waits until all work on this stream is done, like [`Stream::synchronize`], and also within the closure of a capture.
    ///
    /// It is for code that releases memory or handles there.
    ///
    /// CUDA: `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// As for [`Stream::synchronize`], except within the closure of a capture.
    #[inline]
    pub fn drain(&self) -> Result<()> {
        self.expect_no_scope("Stream::synchronize")?;
        // SAFETY: the stream is live and belongs to this driver.
        unsafe { call!(self.driver(), cuStreamSynchronize(self.as_raw())) }
    }

    /// Returns `true` if all work on this stream is done. Does not wait.
    ///
    /// CUDA: `cuStreamQuery`.
    ///
    /// # Errors
    ///
    /// The error of any work of the context that failed before.
    #[doc(alias = "cuStreamQuery")]
    #[inline]
    pub fn is_finished(&self) -> Result<bool> {
        self.expect_no_scope("Stream::is_finished")?;
        // SAFETY: the stream is live and belongs to this driver.
        finished(unsafe { call!(self.driver(), cuStreamQuery(self.as_raw())) })
    }

    /// Makes all later work on this stream wait for `event`, as it was recorded last. The host does not block.
    ///
    /// CUDA: `cuStreamWaitEvent`.
    ///
    /// # Errors
    ///
    /// An argument error if stream and event are of different drivers, or if one is in a [capture scope](crate::Graph::capture) that the
    /// other is not in.
    #[doc(alias = "cuStreamWaitEvent")]
    #[inline]
    pub fn wait_event(&self, event: &Event) -> Result<()> {
        self.driver().expect_same(event.driver(), "Stream::wait_event")?;
        let guard = AccessGuard::new(self)?;
        event.expect_scope_of(&guard)?;
        self.expect_captured("Stream::wait_event", PASS_THE_SCOPE)?;
        self.wait_event_unguarded(event)
    }

    /// Returns the same for an event of the same driver and capture, on a stream whose capture cannot end meanwhile.
    #[inline]
    pub(crate) fn wait_event_unguarded(&self, event: &Event) -> Result<()> {
        // SAFETY: the stream and the event are live and belong to this driver; 0 is the default of the flags.
        unsafe { call!(self.driver(), cuStreamWaitEvent(self.as_raw(), event.as_raw(), 0)) }
    }

    /// Returns the device that the stream's work runs on.
    #[must_use]
    #[inline]
    pub fn device(&self) -> &Device {
        self.context().device()
    }

    /// Destroys the stream and returns its error, which [`Drop`] only reports. Work that is still on it completes.
    ///
    /// CUDA: `cuStreamDestroy_v2`.
    ///
    /// # Errors
    ///
    /// Gives the stream back if clones of it or buffers that were used on it still exist, or if the driver refuses. A stream that is
    /// not ours to destroy is only let go.
    #[doc(alias = "cuStreamDestroy")]
    #[inline]
    pub fn close(self) -> Result<(), Returned<Self>> {
        let mut stream = self.unshare("Stream::close")?;
        match stream.destroy() {
            Ok(()) => Ok(()),
            Err(error) => Err(Returned::new(Self { shared: Arc::new(stream) }, error)),
        }
    }

    #[inline]
    pub(crate) fn sync_points(&self) -> &SyncPoints {
        &self.shared.sync_points
    }

    /// Returns the number of times that hazard tracking has made this stream wait for another. Each is a `tracing` event of level `TRACE`
    /// as well, in the target `curium_driver::hazard`.
    #[must_use]
    #[inline]
    pub fn inserted_waits(&self) -> u64 {
        self.sync_points().inserted_waits()
    }

    /// Returns an event without timing from the stream's own pool. It is not recorded yet.
    ///
    /// CUDA: `cuEventCreate`, if no event is idle.
    ///
    /// # Errors
    ///
    /// As for [`Event::new`].
    #[inline]
    pub fn pooled_event(&self) -> Result<PooledEvent> {
        let markers = || EventPool::new(self.context(), EventFlags::DISABLE_TIMING);
        self.shared.markers.get_or_init(markers).take()
    }

    #[inline]
    fn with_ownership(context: &Context, raw: CUstream, ownership: Ownership) -> Self {
        Self::with_scope(context, raw, ownership, None)
    }

    #[inline]
    fn with_scope(context: &Context, raw: CUstream, ownership: Ownership, scope: Option<Arc<Scope>>) -> Self {
        let identity = NEXT_IDENTITY.fetch_add(1, Ordering::Relaxed);
        let shared = Shared {
            raw: Handle::new(raw),
            ownership,
            driver: context.driver().clone(),
            context: context.clone(),
            identity,
            free_identity: if scope.is_some() { 0 } else { identity },
            running: if scope.is_some() { 0 } else { context.driver().address() },
            sync_points: SyncPoints::default(),
            scope,
            markers: OnceLock::new(),
            last: OnceLock::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Returns the only share of the stream.
    #[inline]
    fn unshare(self, operation: &'static str) -> Result<Shared, Returned<Self>> {
        Arc::try_unwrap(self.shared)
            .map_err(|shared| Returned::new(Self { shared }, Error::argument(operation, "the stream is still in use")))
    }
}

/// Returns the answer of a query: `CUDA_ERROR_NOT_READY` means that there is work left.
#[inline]
pub(crate) fn finished(result: Result<()>) -> Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if error.code() == Some(CUresult::CUDA_ERROR_NOT_READY) => Ok(false),
        Err(error) => Err(error),
    }
}

impl Shared {
    /// Destroys the stream if it is ours, and not destroyed yet.
    #[inline]
    fn destroy(&mut self) -> Result<()> {
        self.leave_last();
        if matches!(self.ownership, Ownership::Owned) {
            // SAFETY: the stream is live, nobody else has its handle, and it is forgotten once it is destroyed.
            unsafe { call!(&self.driver, cuStreamDestroy_v2(self.raw.raw())) }
                .map_err(|error| error.about_handle("stream", self.raw.raw(), self.context.device().as_raw()))?;
            self.ownership = Ownership::Foreign(None);
        }
        Ok(())
    }
}

impl AsRef<Driver> for Stream {
    #[inline]
    fn as_ref(&self) -> &Driver {
        self.driver()
    }
}

/// Compares identity: clones are equal.
impl PartialEq for Stream {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        // One share, one identity.
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl Eq for Stream {}

impl fmt::Debug for Stream {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Stream({:?})", self.shared.raw)
    }
}

impl Drop for Shared {
    #[inline]
    fn drop(&mut self) {
        release(|| self.destroy());
    }
}
