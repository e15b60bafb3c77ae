//! A pool of events.

use std::sync::Arc;

use crate::context::handle_pool::{HandlePool, Poolable, PooledHandle, sealed};
use crate::{Context, Event, EventFlags, Result};

/// A pool of reusable events of one context, so that hot paths neither create nor destroy events.
/// Clones are cheap and refer to the same pool, which keeps up to 64 idle events by default.
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
pub type EventPool = HandlePool<Event>;

/// An event of an [`EventPool`], which returns to the pool when dropped.
pub type PooledEvent = PooledHandle<Event>;

impl sealed::Sealed for Event {}

impl Poolable for Event {
    type Options = EventFlags;

    const POOL: &str = "EventPool";
    const CAPACITY: usize = 64;

    #[inline]
    fn create(context: &Context, flags: EventFlags) -> Result<Self> {
        Self::new(context, flags)
    }

    /// A future that still uses the event must not observe a record of the next user.
    #[inline]
    fn is_unshared(&self) -> bool {
        Arc::strong_count(&self.shared) == 1
    }
}
