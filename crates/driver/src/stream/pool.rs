//! Streams that are used again.

use std::collections::VecDeque;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;

use crate::lock::Mutex;
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
    shared: Arc<Shared>,
}

/// A stream of a [`StreamPool`], which goes back there when it is dropped, unless a clone of it still exists then.
pub struct PooledStream {
    stream: ManuallyDrop<Stream>,
    pool: Arc<Shared>,
}

struct Shared {
    context: Context,
    options: StreamOptions,
    capacity: usize,
    /// The one that came back first is handed out first: its work is most likely to be done.
    idle: Mutex<VecDeque<Stream>>,
}

/// How many idle streams a pool keeps unless told otherwise.
const DEFAULT_CAPACITY: usize = 32;

impl StreamPool {
    /// An empty pool of streams of `context`, which keeps up to 32 of them while they are idle.
    #[must_use]
    pub fn new(context: &Context, options: StreamOptions) -> Self {
        Self::with_capacity(context, options, DEFAULT_CAPACITY)
    }

    /// As [`StreamPool::new`], keeping up to `capacity` idle streams.
    #[must_use]
    pub fn with_capacity(context: &Context, options: StreamOptions, capacity: usize) -> Self {
        let shared = Shared { context: context.clone(), options, capacity, idle: Mutex::new(VecDeque::new()) };
        Self { shared: Arc::new(shared) }
    }

    /// A stream of the pool; a new one is created if none is idle. Work of an earlier user may still be on it, and is done first. It has
    /// the attributes that the earlier user set.
    ///
    /// CUDA: `cuStreamCreateWithPriority`, if none is idle.
    ///
    /// # Errors
    ///
    /// As for [`Stream::new`].
    pub fn take(&self) -> Result<PooledStream> {
        let Shared { context, options, idle, .. } = &*self.shared;
        let stream = idle.lock().pop_front();
        let stream = stream.map_or_else(|| Stream::new(context, *options), Ok)?;
        Ok(PooledStream { stream: ManuallyDrop::new(stream), pool: Arc::clone(&self.shared) })
    }

    /// How many streams are idle.
    #[must_use]
    pub fn idle(&self) -> usize {
        self.shared.idle.lock().len()
    }

    /// Destroys the streams that are idle. Work that is still on them completes.
    pub fn trim(&self) {
        let idle = std::mem::take(&mut *self.shared.idle.lock());
        drop(idle);
    }

    /// The context of the streams.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.shared.context
    }
}

impl Deref for PooledStream {
    type Target = Stream;

    fn deref(&self) -> &Stream {
        &self.stream
    }
}

impl fmt::Debug for StreamPool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "StreamPool({} idle of at most {})", self.idle(), self.shared.capacity)
    }
}

impl fmt::Debug for PooledStream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stream.fmt(formatter)
    }
}

impl Drop for PooledStream {
    fn drop(&mut self) {
        // SAFETY: this value is being dropped, so that nobody uses the field again.
        let stream = unsafe { ManuallyDrop::take(&mut self.stream) };
        let mut idle = self.pool.idle.lock();
        if Arc::strong_count(&stream.shared) == 1 && idle.len() < self.pool.capacity {
            idle.push_back(stream);
        } else {
            drop(idle);
            drop(stream);
        }
    }
}
