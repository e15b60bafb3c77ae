//! Closures that the driver calls back.
//!
//! The driver receives a number instead of an address. CUDA does not guarantee that no callback is
//! in progress when unregistering returns, so closures are kept in a table. A callback clones the
//! `Arc` of its closure from the table, and does nothing if it comes too late.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::base::release::is_exiting;

/// The closures of one kind that the driver calls back, by number. CUDA does not guarantee that no
/// callback is in progress when unregistering returns, so the driver receives a number instead of
/// an address.
pub struct Callbacks<F: ?Sized> {
    closures: Mutex<Vec<(usize, Arc<F>)>>,
    next: AtomicUsize,
}

/// The number of a closure in [`Callbacks`].
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct CallbackNumber(usize);

impl<F: ?Sized> Callbacks<F> {
    /// Creates an empty table, for a `static`.
    #[must_use]
    #[inline]
    pub const fn new() -> Self {
        Self {
            closures: Mutex::new(Vec::new()),
            next: AtomicUsize::new(1),
        }
    }

    /// Adds a closure, and returns its number.
    #[inline]
    pub fn add(&self, closure: Arc<F>) -> CallbackNumber {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.closures.lock().push((number, closure));
        CallbackNumber(number)
    }

    /// Removes a closure from the table. The closure is dropped without a lock held, since it may
    /// own anything.
    #[inline]
    pub fn forget(&self, number: CallbackNumber) {
        let closure = {
            let mut closures = self.closures.lock();
            let index = closures.iter().position(|(other, _)| *other == number.0);
            index.map(|index| closures.swap_remove(index))
        };
        drop(closure);
    }

    /// Calls the closure that `data` identifies, if it is still registered and the process is not
    /// exiting.
    ///
    /// The closure may panic: the caller is the body of a
    /// [`contain_callback`](crate::extend::contain_callback).
    #[inline]
    pub fn call(&self, data: *mut c_void, call: impl FnOnce(&F)) {
        if is_exiting() {
            return;
        }
        let closure = self
            .closures
            .lock()
            .iter()
            .find(|(number, _)| *number == data.addr())
            .map(|(_, closure)| Arc::clone(closure));
        if let Some(closure) = closure {
            call(&closure);
        }
    }
}

impl<F: ?Sized> Default for Callbacks<F> {
    #[inline]
    fn default() -> Self {
        Self::new()
    }
}

impl CallbackNumber {
    /// Returns the argument that the driver passes to the callback.
    #[must_use]
    #[inline]
    pub fn as_data(self) -> *mut c_void {
        ptr::without_provenance_mut(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::contain::contain_callback;

    /// The closure is called until it is forgotten, and its panic is caught in the call.
    #[test]
    fn closure_is_called_until_it_is_forgotten() {
        static CALLS: Callbacks<dyn Fn(u32) + Send + Sync> = Callbacks::new();
        let heard = Arc::new(AtomicUsize::new(0));
        let ear = Arc::clone(&heard);
        let number = CALLS.add(Arc::new(move |value| {
            ear.fetch_add(value as usize, Ordering::Relaxed);
            assert!(value < 10, "this panic is part of the test");
        }));
        for value in [3, 20] {
            contain_callback("a test", (), || {
                CALLS.call(number.as_data(), |closure| closure(value));
            });
        }
        CALLS.forget(number);
        CALLS.call(number.as_data(), |closure| closure(100));
        assert_eq!(heard.load(Ordering::Relaxed), 23);
        assert_eq!(Arc::strong_count(&heard), 1, "the closure is dropped");
    }
}
