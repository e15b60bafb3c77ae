//! Streams that are used again.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::handle_pool::{HandlePool, Poolable, PooledHandle};
use crate::{Context, Result, Stream, StreamOptions};

/// Hands out streams of one context and takes them back. Creating a stream is slow, and destroying one while other threads are in the
/// driver has been seen to crash drivers. Clones are cheap and stand for the same pool.
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
#[derive(Clone)]
pub struct StreamPool {
    pool: Arc<HandlePool<Stream>>,
}

/// A stream of a [`StreamPool`], which goes back there when it is dropped, unless a clone of it still exists then.
pub struct PooledStream(PooledHandle<Stream>);

/// How many idle streams a pool keeps unless told otherwise.
const DEFAULT_CAPACITY: usize = 32;

impl StreamPool {
    /// An empty pool of streams of `context`, which keeps up to 32 of them while they are idle.
    #[must_use]
    #[inline]
    pub fn new(context: &Context, options: StreamOptions) -> Self {
        Self::with_capacity(context, options, DEFAULT_CAPACITY)
    }

    /// As [`StreamPool::new`], keeping up to `capacity` idle streams.
    #[must_use]
    #[inline]
    pub fn with_capacity(context: &Context, options: StreamOptions, capacity: usize) -> Self {
        Self { pool: HandlePool::new(context, options, capacity) }
    }

    /// A stream of the pool; a new one is created if none is idle. Work of an earlier user may still be on it, and is done first. It has
    /// the attributes that the earlier user set.
    ///
    /// CUDA: `cuStreamCreateWithPriority`, if none is idle.
    ///
    /// # Errors
    ///
    /// As for [`Stream::new`].
    #[inline]
    pub fn take(&self) -> Result<PooledStream> {
        self.pool.take().map(PooledStream)
    }

    /// How many streams are idle.
    #[must_use]
    #[inline]
    pub fn idle(&self) -> usize {
        self.pool.len()
    }

    /// Destroys the streams that are idle. Work that is still on them completes.
    #[inline]
    pub fn trim(&self) {
        self.pool.trim();
    }

    /// The context of the streams.
    #[must_use]
    #[inline]
    pub fn context(&self) -> &Context {
        &self.pool.context
    }
}

impl Poolable for Stream {
    type Options = StreamOptions;

    #[inline]
    fn create(context: &Context, options: StreamOptions) -> Result<Self> {
        Self::new(context, options)
    }

    #[inline]
    fn is_unshared(&self) -> bool {
        Arc::strong_count(&self.shared) == 1
    }
}

impl Deref for PooledStream {
    type Target = Stream;

    #[inline]
    fn deref(&self) -> &Stream {
        &self.0
    }
}

impl fmt::Debug for StreamPool {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "StreamPool({} idle of at most {})", self.idle(), self.pool.capacity)
    }
}

impl fmt::Debug for PooledStream {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
