//! Handles that are used again: what pools of events and of streams have in common.

use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;

use crate::lock::Mutex;
use crate::{Context, Result};

/// A handle that can be handed out again.
pub(crate) trait Poolable: Sized {
    /// How one is made.
    type Options: Copy;

    fn create(context: &Context, options: Self::Options) -> Result<Self>;

    /// Whether nobody else has this handle.
    fn is_unshared(&self) -> bool;
}

/// Idle handles of one context, all made alike.
pub(crate) struct HandlePool<T: Poolable> {
    pub(crate) context: Context,
    options: T::Options,
    pub(crate) capacity: usize,
    /// The one that came back first is handed out first: its work is most likely to be done.
    idle: Mutex<VecDeque<T>>,
}

/// A handle that goes back to its pool when it is dropped, unless it is shared or the pool is full.
pub(crate) struct PooledHandle<T: Poolable> {
    handle: ManuallyDrop<T>,
    pool: Arc<HandlePool<T>>,
}

impl<T: Poolable> HandlePool<T> {
    #[inline]
    pub(crate) fn new(context: &Context, options: T::Options, capacity: usize) -> Arc<Self> {
        Arc::new(Self { context: context.clone(), options, capacity, idle: Mutex::new(VecDeque::new()) })
    }

    /// An idle handle, or else a new one.
    #[inline]
    pub(crate) fn take(self: &Arc<Self>) -> Result<PooledHandle<T>> {
        let idle = self.idle.lock().pop_front();
        let handle = idle.map_or_else(|| T::create(&self.context, self.options), Ok)?;
        Ok(PooledHandle { handle: ManuallyDrop::new(handle), pool: Arc::clone(self) })
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.idle.lock().len()
    }

    #[inline]
    pub(crate) fn trim(&self) {
        let idle = std::mem::take(&mut *self.idle.lock());
        drop(idle);
    }
}

impl<T: Poolable> Deref for PooledHandle<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.handle
    }
}

impl<T: Poolable> Drop for PooledHandle<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this value is being dropped, so that nobody uses the field again.
        let handle = unsafe { ManuallyDrop::take(&mut self.handle) };
        let mut idle = self.pool.idle.lock();
        if handle.is_unshared() && idle.len() < self.pool.capacity {
            idle.push_back(handle);
        } else {
            drop(idle);
            drop(handle);
        }
    }
}
