//! The locks of hazard tracking. Under loom they are its own, which try every interleaving.

#[cfg(not(all(test, loom)))]
pub(super) use std::sync::MutexGuard;

#[cfg(not(all(test, loom)))]
pub(super) use crate::lock::{Condvar, Mutex};

#[cfg(all(test, loom))]
pub(super) use self::checked::{Condvar, Mutex};
#[cfg(all(test, loom))]
pub(super) use loom::sync::MutexGuard;

#[cfg(all(test, loom))]
mod checked {
    use loom::sync::{self, MutexGuard};

    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(sync::Mutex<T>);

    #[derive(Debug, Default)]
    pub(crate) struct Condvar(sync::Condvar);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("no thread of a model panics")
        }

        pub(crate) fn get_mut(&mut self) -> &mut T {
            self.0.get_mut().expect("no thread of a model panics")
        }

        pub(crate) fn into_inner(self) -> T {
            self.0.into_inner().expect("no thread of a model panics")
        }
    }

    impl Condvar {
        pub(crate) fn new() -> Self {
            Self(sync::Condvar::new())
        }

        pub(crate) fn notify_all(&self) {
            self.0.notify_all();
        }

        pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
            self.0.wait(guard).expect("no thread of a model panics")
        }
    }
}
