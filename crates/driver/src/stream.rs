//! Streams: queues of work that execute in order.

// In a group of its own, so that the page of the type begins with the constructor.
mod create;

mod attachment;
pub(crate) mod attribute;
mod enqueue;
mod event;
pub(crate) mod hazard_wait;
mod memory_figures;
pub(crate) mod memory_operation;
pub(crate) mod pool;
mod query;
mod raw;
mod scope;
pub(crate) mod timeline;
pub(crate) mod until_done;
mod weak;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bitflags::bitflags;
use curium_sys::{CUstream, CUstream_flags, CUstream_st};

pub use self::raw::AsRawStream;
use self::raw::Ownership;
use self::timeline::Timeline;
use self::weak::Last;
pub use self::weak::WeakStream;

use crate::base::attachments::Attachments;
use crate::base::call::finished;
use crate::base::capture_guard;
use crate::base::handle::Handle;
use crate::base::release::release;
use crate::call;
use crate::hazard::{Scope, SyncPoints};
use crate::{Context, Device, Driver, Error, EventPool, Result, Returned};

/// A CUDA stream: a queue of device work. Work on one stream executes in order, and different
/// streams execute concurrently. Clones are cheap and refer to the same stream.
///
/// The stream is destroyed with the last clone; enqueued work still completes. Buffers keep the
/// streams that they were used on alive.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// use curium_driver::{Event, EventFlags};
///
/// let context = driver.device(0)?.primary_context()?;
/// let first = context.stream()?;
/// let second = context.stream()?;
/// let event = Event::new(&context, EventFlags::DISABLE_TIMING)?;
/// event.record(&first)?;
/// second.wait_event(&event)?; // the device waits, the host does not
/// second.synchronize()?; // the host waits
/// assert!(first.is_finished()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Stream {
    shared: Arc<Shared>,
}

/// Options for creating a stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct StreamOptions {
    /// Flags of the stream; the default is [`StreamFlags::NON_BLOCKING`].
    pub flags: StreamFlags,
    /// The priority. Lower numbers have greater priority, and the driver clamps the value to the
    /// range of the device. The default is 0, the least priority.
    pub priority: i32,
}

bitflags! {
    /// Stream flags.
    #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
    pub struct StreamFlags: u32 {
        /// The stream does not synchronize with the legacy default stream.
        const NON_BLOCKING = CUstream_flags::CU_STREAM_NON_BLOCKING.0;
        /// Flags defined by newer drivers.
        const _ = !0;
    }
}

/// The identity of the next stream. Raw handles are no identities, since drivers reuse them.
static NEXT_IDENTITY: AtomicU64 = AtomicU64::new(1);

struct Shared {
    raw: Handle<CUstream_st>,
    ownership: Ownership,
    driver: Driver,
    context: Context,
    identity: u64,
    /// The identity for accesses that need no wait; 0 if accesses may belong to a graph.
    free_identity: u64,
    /// The address of the driver if work enqueued on the stream is executed; 0 if it is captured.
    running: usize,
    sync_points: SyncPoints,
    /// The capture that the stream was created for.
    scope: Option<Arc<Scope>>,
    /// Events that mark points for waiters that do not block.
    markers: OnceLock<EventPool>,
    /// The point after all work of the stream, for weak references that outlive it.
    last: OnceLock<Arc<Last>>,
    /// The number that the device increases at points for which tasks wait.
    timeline: OnceLock<Arc<Timeline>>,
    attachments: Attachments,
}

impl StreamOptions {
    /// Returns the default options: no synchronization with the legacy default stream, and priority 0.
    #[must_use]
    #[inline]
    pub const fn new() -> Self {
        Self {
            flags: StreamFlags::NON_BLOCKING,
            priority: 0,
        }
    }

    /// Sets the flags.
    #[must_use]
    #[inline]
    pub const fn with_flags(mut self, flags: StreamFlags) -> Self {
        self.flags = flags;
        self
    }

    /// Sets the priority. Lower numbers have greater priority.
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
    /// Creates a stream with the default options, which does not synchronize with the legacy
    /// default stream.
    ///
    /// CUDA: `cuStreamCreateWithPriority`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[inline]
    pub fn stream(&self) -> Result<Stream> {
        Stream::new(self, StreamOptions::new())
    }
}

impl Stream {
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

    /// Waits until all work on this stream has completed.
    ///
    /// CUDA: `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// The error of earlier asynchronous work in the context, after the wait. An argument error,
    /// without a wait, on a stream of an open [capture scope](crate::Graph::capture), and within a
    /// capture closure.
    #[doc(alias = "cuStreamSynchronize")]
    #[doc(alias = "cudaStreamSynchronize")]
    #[inline]
    pub fn synchronize(&self) -> Result<()> {
        self.check_no_scope("Stream::synchronize")?;
        capture_guard::refuse_wait("Stream::synchronize")?;
        self.drain()
    }

    /// Waits until all work on this stream has completed, like [`Stream::synchronize`], but also
    /// within a capture closure.
    ///
    /// For code that must release memory or handles there.
    ///
    /// CUDA: `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// As for [`Stream::synchronize`], except within a capture closure.
    pub fn drain(&self) -> Result<()> {
        self.check_no_scope("Stream::drain")?;
        // SAFETY: the stream is live and belongs to this driver.
        unsafe { call!(self.driver(), cuStreamSynchronize(self.as_raw())) }
    }

    /// Returns `true` if all work on this stream has completed. Does not wait.
    ///
    /// CUDA: `cuStreamQuery`.
    ///
    /// # Errors
    ///
    /// The error of earlier asynchronous work in the context.
    #[doc(alias = "cuStreamQuery")]
    #[doc(alias = "cudaStreamQuery")]
    pub fn is_finished(&self) -> Result<bool> {
        self.check_no_scope("Stream::is_finished")?;
        // SAFETY: the stream is live and belongs to this driver.
        finished(unsafe { call!(self.driver(), cuStreamQuery(self.as_raw())) })
    }

    /// Returns the device of this stream.
    #[must_use]
    #[inline]
    pub fn device(&self) -> &Device {
        self.context().device()
    }

    /// Destroys the stream and returns any error, instead of only reporting it as [`Drop`] does.
    /// Work still enqueued completes.
    ///
    /// CUDA: `cuStreamDestroy_v2`.
    ///
    /// # Errors
    ///
    /// Returns the stream to the caller if clones of it, or buffers that were used on it, still
    /// exist, or if the driver call fails. A borrowed stream is not destroyed.
    #[doc(alias = "cuStreamDestroy")]
    #[doc(alias = "cudaStreamDestroy")]
    #[inline]
    pub fn close(self) -> Result<(), Returned<Self>> {
        let mut stream = self.unshare("Stream::close")?;
        match stream.destroy() {
            Ok(()) => Ok(()),
            Err(error) => Err(Returned::new(
                Self {
                    shared: Arc::new(stream),
                },
                error,
            )),
        }
    }

    #[inline]
    pub(crate) fn sync_points(&self) -> &SyncPoints {
        &self.shared.sync_points
    }

    /// Returns the number of waits that hazard tracking has inserted into this stream. Each is
    /// reported to [`observe_hazard_waits`](crate::observe_hazard_waits), and is a `tracing` event
    /// at level `TRACE` with the target `curium_driver::hazard`.
    #[must_use]
    #[inline]
    pub fn inserted_waits(&self) -> u64 {
        self.sync_points().inserted_waits()
    }

    #[inline]
    fn with_ownership(context: &Context, raw: CUstream, ownership: Ownership) -> Self {
        Self::with_scope(context, raw, ownership, None)
    }

    #[inline]
    fn with_scope(
        context: &Context,
        raw: CUstream,
        ownership: Ownership,
        scope: Option<Arc<Scope>>,
    ) -> Self {
        let identity = NEXT_IDENTITY.fetch_add(1, Ordering::Relaxed);
        let shared = Shared {
            raw: Handle::new(raw),
            ownership,
            driver: context.driver().clone(),
            context: context.clone(),
            identity,
            free_identity: if scope.is_some() { 0 } else { identity },
            running: if scope.is_some() {
                0
            } else {
                context.driver().address()
            },
            sync_points: SyncPoints::default(),
            scope,
            markers: OnceLock::new(),
            last: OnceLock::new(),
            timeline: OnceLock::new(),
            attachments: Attachments::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Returns the shared state if this is the only owner.
    #[inline]
    fn unshare(self, operation: &'static str) -> Result<Shared, Returned<Self>> {
        Arc::try_unwrap(self.shared).map_err(|shared| {
            Returned::new(
                Self { shared },
                Error::argument(operation, "the stream is still in use"),
            )
        })
    }
}

impl Shared {
    /// Destroys the stream if it is owned and not destroyed yet.
    fn destroy(&mut self) -> Result<()> {
        self.attachments.clear();
        self.leave_last();
        if matches!(self.ownership, Ownership::Owned) {
            // SAFETY: the stream is live, no other code has its handle, and it is not used again
            // once it is destroyed.
            unsafe { call!(&self.driver, cuStreamDestroy_v2(self.raw.raw())) }.map_err(
                |error| {
                    error.about_handle("stream", self.raw.raw(), self.context.device().as_raw())
                },
            )?;
            self.ownership = Ownership::Borrowed(None);
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
        // Clones share one allocation, which has one identity.
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl Eq for Stream {}

impl fmt::Debug for Stream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Stream({:?})", self.shared.raw)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        release(|| self.destroy());
    }
}
