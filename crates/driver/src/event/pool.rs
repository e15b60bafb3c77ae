//! Events that are used again.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::handle_pool::{HandlePool, Poolable, PooledHandle};
use crate::{Context, Event, EventFlags, Result};

/// Hands out events of one context and takes them back, so that none is created or destroyed on a hot path. Clones are cheap
/// and stand for the same pool.
///
/// ```no_run
/// # fn example(stream: &curium_driver::Stream) -> Result<(), curium_driver::Error> {
/// use curium_driver::{EventFlags, EventPool};
///
/// let pool = EventPool::new(stream.context(), EventFlags::DISABLE_TIMING);
/// for _ in 0..1_000 {
///     let event = pool.take()?;
///     event.record(stream)?;
///     event.synchronize()?;
/// }
/// assert_eq!(pool.idle(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct EventPool {
    pool: Arc<HandlePool<Event>>,
}

/// An event of an [`EventPool`], which goes back there when it is dropped.
pub struct PooledEvent(PooledHandle<Event>);

/// How many idle events a pool keeps unless told otherwise.
const DEFAULT_CAPACITY: usize = 64;

impl EventPool {
    /// An empty pool of events of `context` with these flags, which keeps up to 64 of them while they are idle.
    #[must_use]
    #[inline]
    pub fn new(context: &Context, flags: EventFlags) -> Self {
        Self::with_capacity(context, flags, DEFAULT_CAPACITY)
    }

    /// As [`EventPool::new`], keeping up to `capacity` idle events.
    #[must_use]
    #[inline]
    pub fn with_capacity(context: &Context, flags: EventFlags, capacity: usize) -> Self {
        Self { pool: HandlePool::new(context, flags, capacity) }
    }

    /// An event of the pool; a new one is created if none is idle. It is to be recorded before it is waited for: what it marks until
    /// then is an earlier user's point.
    ///
    /// CUDA: `cuEventCreate`, if none is idle.
    ///
    /// # Errors
    ///
    /// As for [`Event::new`].
    #[inline]
    pub fn take(&self) -> Result<PooledEvent> {
        self.pool.take().map(PooledEvent)
    }

    /// How many events are idle.
    #[must_use]
    #[inline]
    pub fn idle(&self) -> usize {
        self.pool.len()
    }

    /// Destroys the events that are idle.
    #[inline]
    pub fn trim(&self) {
        self.pool.trim();
    }

    /// The context of the events.
    #[must_use]
    #[inline]
    pub fn context(&self) -> &Context {
        &self.pool.context
    }
}

impl Poolable for Event {
    type Options = EventFlags;

    #[inline]
    fn create(context: &Context, flags: EventFlags) -> Result<Self> {
        Self::new(context, flags)
    }

    /// A future that still looks at the event must not see the next user's point.
    #[inline]
    fn is_unshared(&self) -> bool {
        Arc::strong_count(&self.shared) == 1
    }
}

impl Deref for PooledEvent {
    type Target = Event;

    #[inline]
    fn deref(&self) -> &Event {
        &self.0
    }
}

impl fmt::Debug for EventPool {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "EventPool({} idle of at most {})", self.idle(), self.pool.capacity)
    }
}

impl fmt::Debug for PooledEvent {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
