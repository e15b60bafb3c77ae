//! The state of the calling thread: it keeps call observers from waiting for their own thread.
//!
//! A thread *holds* what other threads may wait for: an access to leased memory that is being
//! enqueued, or a capture that it has entered. It is *ordering* while it calls the driver with
//! locks of this module held. Code that runs on such a thread is a call observer or a `tracing`
//! subscriber.
//!
//! | state | such code may |
//! |---|---|
//! | holds something | enqueue accesses, without waiting for launches that claim memory; not launch graphs |
//! | is ordering | enqueue only accesses that need no lock; others are argument errors |

use std::cell::Cell;
use std::marker::PhantomData;

use crate::{Error, Result};

thread_local! {
    /// [`HELD`] for each held item, and [`ORDERING`].
    static THREAD: Cell<usize> = const { Cell::new(0) };
}

/// The thread is ordering.
const ORDERING: usize = 1;
/// One held item.
const HELD: usize = 2;

/// Counts an item that this thread holds.
#[inline]
pub(super) fn hold() {
    THREAD.set(THREAD.get() + HELD);
}

/// Ends the hold of `count` items.
#[inline]
pub(super) fn release(count: usize) {
    THREAD.set(THREAD.get() - count * HELD);
}

/// Returns `true` if this thread is enqueuing an access, or launching a graph, that other threads
/// may wait for, which means that the calling code is a call observer or a `tracing` subscriber.
/// Such code must not wait for other threads that access memory.
#[must_use]
#[inline]
pub fn is_nested() -> bool {
    THREAD.get() != 0
}

/// Returns `true` if this thread holds locks of this module, which means that the calling code is a
/// call observer.
#[inline]
pub(super) fn is_ordering() -> bool {
    THREAD.get() & ORDERING != 0
}

/// Returns an argument error of `operation` if this thread holds locks of this module.
#[inline]
pub(crate) fn check_not_ordering(operation: &'static str) -> Result<()> {
    if is_ordering() {
        Err(reentrant(operation))
    } else {
        Ok(())
    }
}

/// Returns an argument error of `operation`, which waits for accesses of other threads, if this
/// thread is enqueuing one itself.
#[inline]
pub(super) fn check_idle(operation: &'static str) -> Result<()> {
    if is_nested() {
        Err(reentrant(operation))
    } else {
        Ok(())
    }
}

#[cold]
fn reentrant(operation: &'static str) -> Error {
    let reason = "re-entrant use: a call observer made this call during another access of its thread to device memory";
    Error::argument(operation, reason)
}

/// Marks driver calls made with locks of this module held, for as long as it exists. A call
/// observer on the same thread must not require these locks.
#[derive(Debug)]
pub(crate) struct Ordering {
    was_ordering: usize,
    _not_send: PhantomData<*const ()>,
}

impl Ordering {
    #[inline]
    pub(crate) fn begin() -> Self {
        let before = THREAD.get();
        THREAD.set(before | ORDERING);
        Self {
            was_ordering: before & ORDERING,
            _not_send: PhantomData,
        }
    }
}

impl Drop for Ordering {
    #[inline]
    fn drop(&mut self) {
        THREAD.set(THREAD.get() & !ORDERING | self.was_ordering);
    }
}
