//! Events that are used again.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;

use crate::lock::Mutex;
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
    shared: Arc<Shared>,
}

/// An event of an [`EventPool`], which goes back there when it is dropped.
pub struct PooledEvent {
    event: ManuallyDrop<Event>,
    pool: Arc<Shared>,
}

struct Shared {
    context: Context,
    flags: EventFlags,
    capacity: usize,
    idle: Mutex<Vec<Event>>,
}

/// How many idle events a pool keeps unless told otherwise.
const DEFAULT_CAPACITY: usize = 64;

impl EventPool {
    /// An empty pool of events of `context` with these flags, which keeps up to 64 of them while they are idle.
    #[must_use]
    pub fn new(context: &Context, flags: EventFlags) -> Self {
        Self::with_capacity(context, flags, DEFAULT_CAPACITY)
    }

    /// As [`EventPool::new`], keeping up to `capacity` idle events.
    #[must_use]
    pub fn with_capacity(context: &Context, flags: EventFlags, capacity: usize) -> Self {
        let shared = Shared { context: context.clone(), flags, capacity, idle: Mutex::new(Vec::new()) };
        Self { shared: Arc::new(shared) }
    }

    /// An event of the pool; a new one is created if none is idle. It is to be recorded before it is waited for: what it marks until
    /// then is an earlier user's point.
    ///
    /// CUDA: `cuEventCreate`, if none is idle.
    ///
    /// # Errors
    ///
    /// As for [`Event::new`].
    pub fn take(&self) -> Result<PooledEvent> {
        let Shared { context, flags, idle, .. } = &*self.shared;
        let event = idle.lock().pop();
        let event = event.map_or_else(|| Event::new(context, *flags), Ok)?;
        Ok(PooledEvent { event: ManuallyDrop::new(event), pool: Arc::clone(&self.shared) })
    }

    /// How many events are idle.
    #[must_use]
    pub fn idle(&self) -> usize {
        self.shared.idle.lock().len()
    }

    /// Destroys the events that are idle.
    pub fn trim(&self) {
        let idle = std::mem::take(&mut *self.shared.idle.lock());
        drop(idle);
    }

    /// The context of the events.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.shared.context
    }
}

impl Deref for PooledEvent {
    type Target = Event;

    fn deref(&self) -> &Event {
        &self.event
    }
}

impl fmt::Debug for EventPool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "EventPool({} idle of at most {})", self.idle(), self.shared.capacity)
    }
}

impl fmt::Debug for PooledEvent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.event.fmt(formatter)
    }
}

impl Drop for PooledEvent {
    fn drop(&mut self) {
        // SAFETY: this value is being dropped, so that nobody uses the field again.
        let event = unsafe { ManuallyDrop::take(&mut self.event) };
        let mut idle = self.pool.idle.lock();
        // A future that still looks at the event must not see the next user's point.
        if event.is_unshared() && idle.len() < self.pool.capacity {
            idle.push(event);
        } else {
            drop(idle);
            drop(event);
        }
    }
}
