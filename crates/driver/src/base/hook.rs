//! The call hook: observers of driver calls, and what they have in common with observers of other
//! events.
//!
//! Rules:
//!
//! 1. Without observers, a call costs one relaxed load and one predicted branch.
//! 2. An observer runs on the calling thread. Neither its own driver calls nor other events that it
//!    causes are observed, so it cannot recurse.
//! 3. Observers are called without a lock of this module: they may install and remove observers,
//!    and several threads may run the same observer concurrently.
//! 4. A panic of an observer is caught, after the panic hook has printed it.
//! 5. An observer that receives the start of a call also receives its end, even if it is removed in
//!    between.
//! 6. In a forked child, calls are neither made nor observed.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use curium_sys::{CUresult, Function};
use parking_lot::RwLock;

use crate::base::contain::contain;
use crate::base::{fork, slow_path};
use crate::{Driver, Error, Result};

/// A completed driver call.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Call<'a> {
    /// The driver that was called.
    pub driver: &'a Driver,
    /// The function.
    pub function: Function,
    /// The result code.
    pub code: CUresult,
    /// The time at which the call started.
    pub started: Instant,
    /// The duration of the call.
    pub duration: Duration,
}

/// An observer of driver calls. See [`observe_calls`].
///
/// Every closure that takes a [`Call`] is an observer.
pub trait CallObserver: Send + Sync {
    /// Called before `function` is called on this thread.
    #[inline]
    fn before(&self, function: Function) {
        let _ = function;
    }

    /// Called after a driver call has returned on this thread.
    fn after(&self, call: &Call<'_>);
}

/// A guard that removes its observer when dropped. See [`observe_calls`] and
/// [`observe_hazard_waits`](crate::observe_hazard_waits).
#[must_use = "the observer is removed when the guard is dropped"]
pub struct ObserverGuard {
    identity: u64,
    remove: fn(u64),
}

/// An observed call in progress.
#[doc(hidden)]
pub struct Observation {
    /// `None` in a forked child, where the call must not be made.
    observers: Option<ObserverList<dyn CallObserver>>,
    started: Instant,
}

/// The observers of one kind of event; `None` without observers.
pub(crate) struct Observers<O: ?Sized>(RwLock<Option<ObserverList<O>>>);

type ObserverList<O> = Arc<[Arc<Installed<O>>]>;

/// An observer with its identity.
pub(crate) struct Installed<O: ?Sized> {
    identity: u64,
    observer: O,
}

static CALL_OBSERVERS: Observers<dyn CallObserver> = Observers::new();
static NEXT_IDENTITY: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static IS_OBSERVING: Cell<bool> = const { Cell::new(false) };
}

/// Registers an observer for every driver call of this process, in addition to existing ones.
///
/// An observer must be quick and must not wait for other threads, since the observed call may be
/// made with a lock held. Its own driver calls are not observed, and its panics are caught. It
/// cannot change the current context of its thread, except within
/// [`Context::scoped`](crate::Context::scoped), because the observed call may depend on it. A call
/// in progress on another thread when the guard is dropped may still be reported.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// use curium_driver::{Call, observe_calls};
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
///
/// let failures = Arc::new(AtomicUsize::new(0));
/// let counter = Arc::clone(&failures);
/// let guard = observe_calls(move |call: &Call<'_>| {
///     if call.code.0 != 0 {
///         counter.fetch_add(1, Ordering::Relaxed);
///     }
/// });
/// assert!(driver.device(1_000).is_err());
/// drop(guard);
/// assert!(failures.load(Ordering::Relaxed) >= 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[inline]
pub fn observe_calls(observer: impl CallObserver + 'static) -> ObserverGuard {
    let guard = CALL_OBSERVERS.install(Installed::new(observer), remove_call_observer);
    slow_path::enter();
    guard
}

fn remove_call_observer(identity: u64) {
    slow_path::leave();
    CALL_OBSERVERS.remove(identity);
}

impl<F: Fn(&Call<'_>) + Send + Sync> CallObserver for F {
    #[inline]
    fn after(&self, call: &Call<'_>) {
        self(call);
    }
}

impl Observation {
    /// Notifies the observers, if any, that `function` is about to be called.
    #[inline]
    pub(crate) fn begin(function: Function) -> Option<Box<Self>> {
        if slow_path::is_required() {
            Self::begin_observed(function)
        } else {
            None
        }
    }

    #[cold]
    fn begin_observed(function: Function) -> Option<Box<Self>> {
        if fork::is_child() {
            return Some(Box::new(Self {
                observers: None,
                started: Instant::now(),
            }));
        }
        let observers = CALL_OBSERVERS.list()?;
        notify(&observers, |observer| observer.before(function));
        Some(Box::new(Self {
            observers: Some(observers),
            started: Instant::now(),
        }))
    }

    /// Returns `true` if the call may be made.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub fn is_allowed(&self) -> bool {
        self.observers.is_some()
    }

    /// Notifies the same observers that the call has returned.
    #[inline]
    pub(crate) fn end(self, driver: &Driver, function: Function, code: CUresult) {
        let Self {
            observers: Some(observers),
            started,
        } = self
        else {
            return;
        };
        let call = Call {
            driver,
            function,
            code,
            started,
            duration: started.elapsed(),
        };
        notify(&observers, |observer| observer.after(&call));
        drop_list(observers);
    }
}

impl<O> Installed<O> {
    pub(crate) fn new(observer: O) -> Arc<Self> {
        let identity = NEXT_IDENTITY.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self { identity, observer })
    }
}

impl<O: ?Sized> Observers<O> {
    pub(crate) const fn new() -> Self {
        Self(RwLock::new(None))
    }

    /// Adds an observer. The guard calls `remove`, which removes the observer of an identity.
    pub(crate) fn install(&self, observer: Arc<Installed<O>>, remove: fn(u64)) -> ObserverGuard {
        let identity = observer.identity;
        self.change(|observers| observers.push(observer));
        ObserverGuard { identity, remove }
    }

    pub(crate) fn remove(&self, identity: u64) {
        self.change(|observers| observers.retain(|installed| installed.identity != identity));
    }

    /// Replaces the list of observers with a modified copy. Threads that read the old list keep it.
    fn change(&self, edit: impl FnOnce(&mut Vec<Arc<Installed<O>>>)) {
        let mut shared = self.0.write();
        let mut observers = shared.as_deref().unwrap_or_default().to_vec();
        edit(&mut observers);
        let old = std::mem::replace(
            &mut *shared,
            (!observers.is_empty()).then(|| observers.into()),
        );
        drop(shared);
        // Dropping an observer runs user code, which may call back into this module.
        drop(old);
    }

    /// Returns the observers; `None` if there are none, and on a thread that is in an observer.
    fn list(&self) -> Option<ObserverList<O>> {
        if IS_OBSERVING.get() {
            return None;
        }
        self.0.read().clone()
    }

    /// Passes each observer to `event`, which reports an event to it.
    pub(crate) fn notify(&self, event: impl Fn(&O)) {
        if let Some(observers) = self.list() {
            notify(&observers, event);
            drop_list(observers);
        }
    }
}

fn notify<O: ?Sized>(observers: &[Arc<Installed<O>>], event: impl Fn(&O)) {
    for installed in observers {
        quietly(|| event(&installed.observer));
    }
}

/// Drops a list of observers. It may have the last reference to an observer that was removed in the
/// meantime, whose destructor is user code.
fn drop_list<O: ?Sized>(observers: ObserverList<O>) {
    quietly(|| drop(observers));
}

impl fmt::Debug for ObserverGuard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ObserverGuard({})", self.identity)
    }
}

impl Drop for ObserverGuard {
    #[inline]
    fn drop(&mut self) {
        (self.remove)(self.identity);
    }
}

/// Returns an argument error if the calling thread is in an observer: the observed call depends on
/// the current context.
#[inline]
pub(crate) fn refuse_in_observer(operation: &'static str) -> Result<()> {
    if !IS_OBSERVING.get() {
        return Ok(());
    }
    Err(Error::argument(
        operation,
        "call observers must not change the current context",
    ))
}

/// Runs user code without observing its driver calls, and catches its panics.
#[inline]
fn quietly(operation: impl FnOnce()) {
    let outer = IS_OBSERVING.replace(true);
    contain(operation);
    IS_OBSERVING.set(outer);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use curium_sim::{Config, Simulator};

    use super::*;

    type TestResult = std::result::Result<(), Box<dyn std::error::Error>>;

    fn driver() -> std::result::Result<Driver, Box<dyn std::error::Error>> {
        Ok(Driver::from_provider(Simulator::new(Config::new())?)?)
    }

    /// Tests of this process run in parallel, and each observes the calls of all. A test counts the
    /// calls of its own thread only.
    fn on_this_thread() -> impl Fn() -> bool + Send + Sync {
        let thread = std::thread::current().id();
        move || std::thread::current().id() == thread
    }

    #[test]
    fn observer_receives_calls_until_its_guard_ends() -> TestResult {
        let driver = driver()?;
        let calls = Arc::new(AtomicUsize::new(0));
        let is_mine = on_this_thread();
        let counted = Arc::clone(&calls);
        let guard = observe_calls(move |call: &Call<'_>| {
            if is_mine() {
                assert_eq!(call.function, Function::cuDeviceGetCount);
                assert_eq!(call.code, CUresult::CUDA_SUCCESS);
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        driver.device_count()?;
        drop(guard);
        driver.device_count()?;
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        Ok(())
    }

    #[test]
    fn every_observer_is_called_before_and_after() -> TestResult {
        struct Pair(Arc<[AtomicUsize; 2]>, Box<dyn Fn() -> bool + Send + Sync>);
        impl CallObserver for Pair {
            fn before(&self, _: Function) {
                self.0[0].fetch_add(usize::from(self.1()), Ordering::Relaxed);
            }
            fn after(&self, _: &Call<'_>) {
                self.0[1].fetch_add(usize::from(self.1()), Ordering::Relaxed);
            }
        }
        let driver = driver()?;
        let counts = [(); 2].map(|()| Arc::new([const { AtomicUsize::new(0) }; 2]));
        let _guards = counts
            .each_ref()
            .map(|count| observe_calls(Pair(Arc::clone(count), Box::new(on_this_thread()))));
        driver.device_count()?;
        for count in &counts {
            assert_eq!(
                count.each_ref().map(|count| count.load(Ordering::Relaxed)),
                [1, 1]
            );
        }
        Ok(())
    }

    #[test]
    fn calls_by_an_observer_are_not_observed() -> TestResult {
        let driver = driver()?;
        let calls = Arc::new(AtomicUsize::new(0));
        let is_mine = on_this_thread();
        let counted = Arc::clone(&calls);
        let _guard = observe_calls(move |call: &Call<'_>| {
            if is_mine() {
                counted.fetch_add(1, Ordering::Relaxed);
                let _ = call.driver.device_count();
                drop(observe_calls(|_: &Call<'_>| {}));
            }
        });
        driver.device_count()?;
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        Ok(())
    }

    #[test]
    fn observer_panic_is_caught() -> TestResult {
        let driver = driver()?;
        let is_mine = on_this_thread();
        let _guard = observe_calls(move |_: &Call<'_>| {
            assert!(!is_mine(), "the observer panics on purpose");
        });
        driver.device_count()?;
        let calls = Arc::new(AtomicUsize::new(0));
        let is_mine = on_this_thread();
        let counted = Arc::clone(&calls);
        let _other = observe_calls(move |_: &Call<'_>| {
            counted.fetch_add(usize::from(is_mine()), Ordering::Relaxed);
        });
        driver.device_count()?;
        assert_eq!(
            calls.load(Ordering::Relaxed),
            1,
            "the observer after the one that panics is called"
        );
        Ok(())
    }

    #[test]
    fn observer_may_remove_itself() -> TestResult {
        let driver = driver()?;
        let slot = Arc::new(parking_lot::Mutex::new(None::<ObserverGuard>));
        let calls = Arc::new(AtomicUsize::new(0));
        let is_mine = on_this_thread();
        let own_guard = Arc::clone(&slot);
        let counted = Arc::clone(&calls);
        let guard = observe_calls(move |_: &Call<'_>| {
            if is_mine() {
                counted.fetch_add(1, Ordering::Relaxed);
                drop(own_guard.lock().take());
            }
        });
        *slot.lock() = Some(guard);
        driver.device_count()?;
        driver.device_count()?;
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        Ok(())
    }
}
