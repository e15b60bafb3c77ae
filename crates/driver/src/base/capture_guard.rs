//! The stream capture that the calling thread records. Operations that the capture would miss are
//! refused.
//!
//! 1. While the closure of [`Graph::capture`](crate::Graph::capture) runs, its thread may enqueue
//!    work on the streams of that capture only. Any other work is an argument error, before the
//!    driver is called, since it would run immediately and be missing from the graph.
//! 2. Closures nest; the innermost one applies. When it returns or panics, the enclosing one
//!    applies again.
//! 3. Other threads are not restricted: they neither record nor disturb the capture.
//! 4. Destructors may also wait on the host and free memory, since they cannot fail. They may not
//!    enqueue work that the graph would miss.
//!
//! The state is one word without a destructor. Launches compare it together with a value that they
//! compare anyway.

use std::cell::Cell;
use std::marker::PhantomData;

use crate::{Error, Result};

/// The hint for an operation that a graph can contain.
pub const ON_THE_SCOPE: &str = "enqueue it on the capture scope or one of its forks";
/// The hint for an operation that no graph can contain.
pub const NOT_WHILE_CAPTURING: &str =
    "no graph can contain it: do it before or after the capture, or on another thread";

/// The bit of a key that is set while a destructor runs in a capture closure.
const DROPPING: usize = 2;

thread_local! {
    /// The key of the capture that this thread records; 0 outside a capture closure.
    static KEY: Cell<usize> = const { Cell::new(0) };
}

/// A change of the recorded capture, which is undone when this value is dropped.
#[must_use]
pub(crate) struct Recording {
    outer: usize,
    /// Must be dropped on the thread that created it.
    _thread: PhantomData<*const ()>,
}

/// Returns the key of the capture that has `identity`. It is odd, so that no address equals it.
#[inline]
fn capture_key(identity: u64) -> usize {
    (identity as usize) << 2 | 1
}

/// Returns the key of the capture that this thread records; 0 outside a capture closure.
#[inline]
pub(crate) fn key() -> usize {
    KEY.get()
}

/// Returns a number that identifies the capture that this thread records; 0 outside a capture
/// closure.
#[must_use]
#[inline]
pub fn recorded_capture() -> usize {
    key()
}

/// Returns `true` if this thread records the capture that has `identity`.
#[inline]
pub(crate) fn is_recording(identity: u64) -> bool {
    key() & !DROPPING == capture_key(identity)
}

/// Makes the capture with this `identity` the one that this thread records.
#[inline]
pub(crate) fn enter(identity: u64) -> Recording {
    Recording {
        outer: KEY.replace(capture_key(identity)),
        _thread: PhantomData,
    }
}

/// Permits waits on the host while a value is dropped.
#[inline]
pub(crate) fn permit_waits() -> Recording {
    let outer = KEY.get();
    if outer != 0 {
        KEY.set(outer | DROPPING);
    }
    Recording {
        outer,
        _thread: PhantomData,
    }
}

/// Returns `true` if a destructor runs in a capture closure.
#[inline]
pub(crate) fn is_dropping() -> bool {
    key() & DROPPING != 0
}

/// Returns an error if the calling thread is in a capture closure. Called by operations that wait
/// on the host.
///
/// # Errors
///
/// An argument error that names `operation`.
#[inline]
pub fn refuse_wait(operation: &'static str) -> Result<()> {
    if key() == 0 || is_dropping() {
        Ok(())
    } else {
        Err(refused_wait(operation))
    }
}

/// Returns an argument error if the calling thread is in a capture closure. Called by operations
/// that enqueue work on every stream of a context.
#[inline]
pub(crate) fn refuse(operation: &'static str) -> Result<()> {
    if key() == 0 {
        Ok(())
    } else {
        Err(refused(operation))
    }
}

#[cold]
fn refused_wait(operation: &'static str) -> Error {
    let reason = "this thread is capturing a graph, and a wait of the host cannot be captured; \
                  wait before or after the capture, or on another thread";
    Error::argument(operation, reason)
}

#[cold]
pub(crate) fn refused_on_captured(operation: &'static str, instead: &str) -> Error {
    Error::argument(
        operation,
        format!("the stream is being captured; {instead}"),
    )
}

#[cold]
fn refused(operation: &'static str) -> Error {
    Error::argument(
        operation,
        format!("this thread is capturing a graph; {NOT_WHILE_CAPTURING}"),
    )
}

impl Drop for Recording {
    #[inline]
    fn drop(&mut self) {
        KEY.set(self.outer);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn end_of_a_nested_closure_restores_the_outer_one() {
        assert_eq!(key(), 0);
        let outer = enter(1);
        let inner = enter(2);
        assert_eq!((is_recording(1), is_recording(2)), (false, true));
        std::thread::spawn(|| assert_eq!(key(), 0))
            .join()
            .expect("another thread records nothing");
        drop(inner);
        assert_eq!((is_recording(1), is_recording(2)), (true, false));
        drop(outer);
        assert_eq!(key(), 0);
    }

    #[test]
    fn panic_in_a_closure_leaves_it() {
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _inside = enter(1);
            panic!("part of the test")
        }));
        assert!(panicked.is_err() && key() == 0);
    }

    #[test]
    fn host_waits_are_refused_in_closures_not_in_drops() {
        let _inside = enter(1);
        let error = refuse_wait("Stream::synchronize").expect_err("the thread captures");
        assert!(
            error
                .to_string()
                .contains("cannot be captured; wait before or after the capture"),
            "{error}"
        );
        let dropping = permit_waits();
        assert!(
            is_recording(1),
            "what it enqueues in the capture is captured"
        );
        refuse_wait("Stream::synchronize").expect("drops may wait");
        refuse("Context::record_event").expect_err("drops enqueue no work");
        drop(dropping);
        refuse_wait("Stream::synchronize").expect_err("the thread captures");
    }

    #[test]
    fn key_is_odd_and_differs_from_the_drop_key() {
        assert!((0..100).all(|identity| capture_key(identity) % 2 == 1));
        assert!((0..100).all(|identity| capture_key(identity) & DROPPING == 0));
    }
}
