//! User code: everything that calls it contains its panics here.
//!
//! User code is a closure, a call observer, a `tracing` subscriber, a waker, or the destructor of a
//! user's value. A panic of it must neither unwind into C, which aborts the process, nor out of a
//! `Drop`, nor past bookkeeping that follows.
//!
//! - [`contain`] runs user code on behalf of Rust code, and [`contain_callback`] the body of an
//!   `extern "C"` function.
//! - [`emit_event!`] emits a `tracing` event. Apart from [`CallSpans`](crate::CallSpans), no other
//!   code of the libraries names a macro of `tracing`: `clippy.toml` and a test exclude it.
//! - [`TaskWaker`] holds a waker.

use std::any::Any;
use std::cell::Cell;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

use crate::emit_event;

/// Emits an event. A panic of the subscriber ends here, after the panic hook has printed it.
#[doc(hidden)]
#[inline]
pub fn emit(event: impl FnOnce()) {
    contain(event);
}

/// Runs user code and catches its panic. Returns `true` if it did not panic.
#[inline]
pub fn contain(operation: impl FnOnce()) -> bool {
    match catch_unwind(AssertUnwindSafe(operation)) {
        Ok(()) => true,
        Err(payload) => {
            discard(payload);
            false
        }
    }
}

/// Runs the body of an `extern "C"` function, which must not unwind. A panic is reported with the
/// name of `what` panicked, and `after_panic` is returned.
#[inline]
pub fn contain_callback<T>(what: &str, after_panic: T, body: impl FnOnce() -> T) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(value) => value,
        Err(payload) => {
            discard(payload);
            emit_event!(ERROR, "{what} panicked");
            after_panic
        }
    }
}

/// Runs the body of a callback in which the driver permits no call, like [`contain_callback`].
#[inline]
pub(crate) fn contain_host_callback(what: &str, body: impl FnOnce()) {
    let _inside = HostCallback::enter();
    contain_callback(what, (), body);
}

/// Drops a panic payload. It is a user's value, and dropping it may panic again.
#[inline]
pub(crate) fn discard(payload: Box<dyn Any + Send>) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(payload);
    }
}

thread_local! {
    static IN_HOST_CALLBACK: Cell<bool> = const { Cell::new(false) };
}

/// Marks the thread as being in a callback in which the driver permits no call, for as long as it
/// exists.
struct HostCallback {
    was_inside: bool,
    _not_send: PhantomData<*const ()>,
}

impl HostCallback {
    fn enter() -> Self {
        Self {
            was_inside: IN_HOST_CALLBACK.replace(true),
            _not_send: PhantomData,
        }
    }
}

impl Drop for HostCallback {
    fn drop(&mut self) {
        IN_HOST_CALLBACK.set(self.was_inside);
    }
}

/// Returns `true` if the driver permits no call on this thread, because it is in a host function or
/// in a destructor that the driver called.
#[inline]
pub(crate) fn is_in_host_callback() -> bool {
    IN_HOST_CALLBACK.get()
}

/// The waker of a task. Waking and dropping it run code of the executor, whose panics are
/// contained.
#[derive(Debug)]
pub struct TaskWaker {
    /// `None` while it is being dropped.
    waker: Option<Waker>,
}

impl TaskWaker {
    /// Takes ownership of a clone of the task's waker.
    #[must_use]
    #[inline]
    pub fn new(waker: Waker) -> Self {
        Self { waker: Some(waker) }
    }

    /// Wakes the task.
    #[inline]
    pub fn wake(mut self) {
        if let Some(waker) = self.waker.take() {
            #[expect(clippy::disallowed_methods, reason = "the closure is contained")]
            contain(move || waker.wake());
        }
    }
}

impl Drop for TaskWaker {
    #[inline]
    fn drop(&mut self) {
        if let Some(waker) = self.waker.take() {
            contain(move || drop(waker));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::Wake;

    use super::*;

    /// Panics when it is woken, and again when it is dropped.
    struct Panicking;

    impl Wake for Panicking {
        fn wake(self: Arc<Self>) {
            panic!("this panic is part of the test")
        }
    }

    impl Drop for Panicking {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                panic!("this panic is part of the test")
            }
        }
    }

    #[test]
    fn waker_that_panics_is_contained() {
        TaskWaker::new(Waker::from(Arc::new(Panicking))).wake();
        drop(TaskWaker::new(Waker::from(Arc::new(Panicking))));
    }

    /// A payload whose destructor panics is the second panic of one callback.
    #[test]
    #[cfg_attr(miri, ignore = "the second payload is leaked on purpose")]
    fn callback_returns_a_value_after_a_panic() {
        let value = contain_callback("a test", 7, || std::panic::panic_any(Panicking));
        assert_eq!(value, 7);
        assert_eq!(contain_callback("a test", 7, || 8), 8);
    }

    #[test]
    fn host_callbacks_mark_their_thread() {
        let mut was_inside = false;
        contain_host_callback("a test", || {
            was_inside = is_in_host_callback();
            panic!("this panic is part of the test")
        });
        assert!(was_inside);
        assert!(!is_in_host_callback());
    }
}
