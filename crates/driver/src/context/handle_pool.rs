//! Pools of events and streams.

use std::collections::VecDeque;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::{Context, Result};

/// A pool of handles in one context with the same options: an [`EventPool`](crate::EventPool) or a
/// [`StreamPool`](crate::StreamPool). Clones are cheap and refer to the same pool.
pub struct HandlePool<T: Poolable> {
    shared: Arc<Shared<T>>,
}

/// A handle of a [`HandlePool`]. When dropped, it returns to the pool, unless the handle is still
/// in use elsewhere or the pool is full.
pub struct PooledHandle<T: Poolable> {
    handle: ManuallyDrop<T>,
    pool: HandlePool<T>,
}

pub(crate) mod sealed {
    /// A handle that can be pooled. Other crates cannot name it, so they cannot implement it.
    pub trait Sealed {}
}

/// A handle that can be pooled: an [`Event`](crate::Event) or a [`Stream`](crate::Stream). It
/// cannot be implemented for other types.
pub trait Poolable: sealed::Sealed + fmt::Debug + Sized {
    /// The options for creating a handle.
    type Options: Copy;

    /// The name of the pool in `Debug`.
    const POOL: &str;

    /// The default maximum number of idle handles in a pool.
    const CAPACITY: usize;

    /// Creates a handle in `context`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    fn create(context: &Context, options: Self::Options) -> Result<Self>;

    /// Returns `true` if no other value shares this handle.
    fn is_unshared(&self) -> bool;
}

struct Shared<T: Poolable> {
    context: Context,
    options: T::Options,
    capacity: usize,
    /// First in, first out: the work of the handle returned earliest is most likely complete.
    idle: Mutex<VecDeque<T>>,
}

impl<T: Poolable> HandlePool<T> {
    /// Creates an empty pool of handles in `context` with these options. It keeps up to 64 idle
    /// events or 32 idle streams.
    #[must_use]
    #[inline]
    pub fn new(context: &Context, options: T::Options) -> Self {
        Self::with_capacity(context, options, T::CAPACITY)
    }

    /// Creates a pool like [`HandlePool::new`] that keeps up to `capacity` idle handles.
    #[must_use]
    #[inline]
    pub fn with_capacity(context: &Context, options: T::Options, capacity: usize) -> Self {
        let shared = Shared {
            context: context.clone(),
            options,
            capacity,
            idle: Mutex::new(VecDeque::new()),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Takes an idle handle from the pool, or creates one if none is idle.
    ///
    /// Record an event before waiting on it: until then it marks work of its previous user. A
    /// stream may still have work of its previous user enqueued, which runs first, and it keeps the
    /// attributes that the previous user set.
    ///
    /// CUDA: `cuEventCreate` or `cuStreamCreateWithPriority`, if none is idle.
    ///
    /// # Errors
    ///
    /// As for [`Event::new`](crate::Event::new) and [`Stream::new`](crate::Stream::new).
    #[inline]
    pub fn take(&self) -> Result<PooledHandle<T>> {
        let idle = self.shared.idle.lock().pop_front();
        let handle =
            idle.map_or_else(|| T::create(&self.shared.context, self.shared.options), Ok)?;
        Ok(PooledHandle {
            handle: ManuallyDrop::new(handle),
            pool: self.clone(),
        })
    }

    /// Returns the number of idle handles.
    #[must_use]
    #[inline]
    pub fn idle(&self) -> usize {
        self.shared.idle.lock().len()
    }

    /// Destroys the idle handles. Work still enqueued on an idle stream completes.
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
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<T: Poolable> fmt::Debug for HandlePool<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}({} idle of at most {})",
            T::POOL,
            self.idle(),
            self.shared.capacity
        )
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
        // SAFETY: this value is being dropped, so the field is not used again.
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
