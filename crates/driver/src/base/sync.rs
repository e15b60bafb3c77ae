//! The locks of protocols between threads that loom checks. Under loom they are loom's, which
//! explores every interleaving.

#[cfg(not(all(test, loom)))]
pub(crate) use std::sync::atomic::AtomicU64;
pub(crate) use std::sync::atomic::Ordering::{Relaxed, SeqCst};

#[cfg(all(test, loom))]
pub(crate) use loom::sync::atomic::AtomicU64;
#[cfg(not(all(test, loom)))]
pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};

#[cfg(all(test, loom))]
pub(crate) use self::checked::{Condvar, Mutex, MutexGuard, current_thread};

/// Returns the number of the calling thread, which no other live thread has.
#[cfg(not(all(test, loom)))]
#[inline]
pub(crate) fn current_thread() -> usize {
    use parking_lot::lock_api::GetThreadId as _;

    parking_lot::RawThreadId::INIT.nonzero_thread_id().get()
}

/// Orders sequentially consistent accesses under loom, which models that order for fences only.
#[inline]
pub(crate) fn model_fence() {
    #[cfg(all(test, loom))]
    loom::sync::atomic::fence(SeqCst);
}

/// loom's locks with the interface of `parking_lot`.
#[cfg(all(test, loom))]
mod checked {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    use std::ops::{Deref, DerefMut};

    use loom::sync;

    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(sync::Mutex<T>);

    /// `None` only while its thread waits.
    pub(crate) struct MutexGuard<'a, T>(Option<sync::MutexGuard<'a, T>>);

    #[derive(Debug, Default)]
    pub(crate) struct Condvar(sync::Condvar);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            MutexGuard(Some(self.0.lock().expect("no thread of a model panics")))
        }

        pub(crate) fn get_mut(&mut self) -> &mut T {
            self.0.get_mut().expect("no thread of a model panics")
        }
    }

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            self.0.as_ref().expect("the thread does not wait")
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.0.as_mut().expect("the thread does not wait")
        }
    }

    impl Condvar {
        pub(crate) fn new() -> Self {
            Self(sync::Condvar::new())
        }

        pub(crate) fn notify_all(&self) {
            self.0.notify_all();
        }

        pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
            let waiting = guard.0.take().expect("the thread does not wait yet");
            guard.0 = Some(self.0.wait(waiting).expect("no thread of a model panics"));
        }
    }

    /// Returns the number of the calling thread of the model.
    pub(crate) fn current_thread() -> usize {
        let mut hasher = DefaultHasher::new();
        loom::thread::current().id().hash(&mut hasher);
        hasher.finish() as usize
    }
}
