//! A pool of streams.

use std::sync::Arc;

use crate::context::handle_pool::{HandlePool, Poolable, PooledHandle, sealed};
use crate::{Context, Result, Stream, StreamOptions};

/// A pool of reusable streams of one context. Creating a stream is slow, and some drivers have
/// crashed when a stream was destroyed while other threads were in driver calls. Clones are cheap
/// and refer to the same pool, which keeps up to 32 idle streams by default.
///
/// ```no_run
/// # fn example(context: &curium_driver::Context) -> Result<(), curium_driver::Error> {
/// use curium_driver::{StreamOptions, StreamPool};
///
/// let pool = StreamPool::new(context, StreamOptions::new());
/// let stream = pool.take()?;
/// // … work on `&stream` …
/// drop(stream);
/// assert_eq!(pool.idle(), 1);
/// # Ok(())
/// # }
/// ```
pub type StreamPool = HandlePool<Stream>;

/// A stream of a [`StreamPool`], which returns to the pool when dropped, unless a clone of it still
/// exists.
pub type PooledStream = PooledHandle<Stream>;

impl sealed::Sealed for Stream {}

impl Poolable for Stream {
    type Options = StreamOptions;

    const POOL: &str = "StreamPool";
    const CAPACITY: usize = 32;

    #[inline]
    fn create(context: &Context, options: StreamOptions) -> Result<Self> {
        Self::new(context, options)
    }

    #[inline]
    fn is_unshared(&self) -> bool {
        Arc::strong_count(&self.shared) == 1
    }
}
