//! Pools of events and of streams.

use std::collections::VecDeque;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::{Context, Result};

/// Hands out handles of one context, all made alike, and takes them back: an [`EventPool`](crate::EventPool) or a
/// [`StreamPool`](crate::StreamPool). Clones are cheap and stand for the same pool.
pub struct HandlePool<T: Poolable> {
    shared: Arc<Shared<T>>,
}

/// A handle of a [`HandlePool`], which goes back there when it is dropped, unless something else still uses it then or the pool is full.
pub struct PooledHandle<T: Poolable> {
    handle: ManuallyDrop<T>,
    pool: HandlePool<T>,
}

/// A handle that pools can hand out again: an [`Event`](crate::Event) or a [`Stream`](crate::Stream).
pub trait Poolable: fmt::Debug + Sized {
    /// The options of a new handle.
    type Options: Copy;

    /// The name of the pool in `Debug`.
    const POOL: &str;

    /// The default number of idle handles that a pool keeps.
    const CAPACITY: usize;

    /// Creates a handle in `context`.
    ///
    /// # Errors
    ///
    /// An error of the driver.
    fn create(context: &Context, options: Self::Options) -> Result<Self>;

    /// Returns `true` if no other value stands for this handle.
    fn is_unshared(&self) -> bool;
}

struct Shared<T: Poolable> {
    context: Context,
    options: T::Options,
    capacity: usize,
    /// The one that came back first is handed out first: its work is most likely to be done.
    idle: Mutex<VecDeque<T>>,
}

impl<T: Poolable> HandlePool<T> {
    /// Returns an empty pool of handles of `context`, made with these options. It keeps up to 64 events, or 32 streams, while they are
    /// idle.
    #[must_use]
    #[inline]
    pub fn new(context: &Context, options: T::Options) -> Self {
        Self::with_capacity(context, options, T::CAPACITY)
    }

    /// Does the same as [`HandlePool::new`], keeping up to `capacity` idle handles.
    #[must_use]
    #[inline]
    pub fn with_capacity(context: &Context, options: T::Options, capacity: usize) -> Self {
        let shared = Shared { context: context.clone(), options, capacity, idle: Mutex::new(VecDeque::new()) };
        Self { shared: Arc::new(shared) }
    }

    /// Returns a handle of the pool; a new one is made if none is idle.
    ///
    /// An event is to be recorded before it is waited for: what it marks until then is an earlier user's point. On a stream there may
    /// still be work of an earlier user, which is done first, and it has the attributes that the earlier user set.
    ///
    /// CUDA: `cuEventCreate` or `cuStreamCreateWithPriority`, if none is idle.
    ///
    /// # Errors
    ///
    /// As for [`Event::new`](crate::Event::new) and [`Stream::new`](crate::Stream::new).
    #[inline]
    pub fn take(&self) -> Result<PooledHandle<T>> {
        let idle = self.shared.idle.lock().pop_front();
        let handle = idle.map_or_else(|| T::create(&self.shared.context, self.shared.options), Ok)?;
        Ok(PooledHandle { handle: ManuallyDrop::new(handle), pool: self.clone() })
    }

    /// Returns the number of handles are idle.
    #[must_use]
    #[inline]
    pub fn idle(&self) -> usize {
        self.shared.idle.lock().len()
    }

    /// Destroys the handles that are idle. Work that is still on a stream completes.
    #[inline]
    pub fn trim(&self) {
        let idle = std::mem::take(&mut *self.shared.idle.lock());
        drop(idle);
    }

    /// Returns the context of the handles.
    #[must_use]
    #[inline]
    pub fn context(&self) -> &Context {
        &self.shared.context
    }
}

impl<T: Poolable> Clone for HandlePool<T> {
    #[inline]
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T: Poolable> fmt::Debug for HandlePool<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}({} idle of at most {})", T::POOL, self.idle(), self.shared.capacity)
    }
}

impl<T: Poolable> Deref for PooledHandle<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.handle
    }
}

impl<T: Poolable> fmt::Debug for PooledHandle<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.fmt(formatter)
    }
}

impl<T: Poolable> Drop for PooledHandle<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this value is being dropped, so that nobody uses the field again.
        let handle = unsafe { ManuallyDrop::take(&mut self.handle) };
        let mut idle = self.pool.shared.idle.lock();
        if handle.is_unshared() && idle.len() < self.pool.shared.capacity {
            idle.push_back(handle);
        } else {
            drop(idle);
            drop(handle);
        }
    }
}
