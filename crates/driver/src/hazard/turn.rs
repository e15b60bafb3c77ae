//! Uses of shared memory and launches of graphs take turns.
//!
//! Memory that graphs lease is used without being borrowed, whenever such a graph is launched. So a use of it, which begins with a look at
//! earlier uses and ends with a note of itself, must not be under way on one thread while another launches a graph: each would miss the
//! other. Uses go beside each other, as the borrows of the memory allow; a launch, and the end of a capture, go alone.
//!
//! What is not leased, on a stream that is not of a capture, knows nothing of this.

use std::cell::{Cell, RefCell};
use std::sync::MutexGuard;

use crate::lock::{Condvar, Mutex};
use crate::{Error, Result};

/// Being alone, for as long as this exists.
#[must_use]
pub(crate) struct Alone(());

/// A use that was begun by something that cannot say whether it took place: it ends with this value, if it did not before.
#[must_use]
#[doc(hidden)]
#[derive(Debug)]
pub struct Uses(());

struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// How many threads are using something.
    using: usize,
    /// How many threads wait to be alone: no other use begins before them.
    waiting: usize,
    is_alone: bool,
    /// How many threads sleep until something changes: to wake nobody is a call of the system too.
    asleep: usize,
}

static TURNS: Turns =
    Turns { state: Mutex::new(State { using: 0, waiting: 0, is_alone: false, asleep: 0 }), changed: Condvar::new() };

thread_local! {
    /// What this thread is using, by addresses that tell one thing from others meanwhile.
    static IN_USE: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    static IS_ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Begins a use of what is called `key`, which ends with [`end_use`] or [`end_uses`].
#[inline]
pub(crate) fn begin_use(key: usize) -> Result<()> {
    if IS_ALONE.get() {
        return Err(Error::argument(
            "memory on a stream",
            "this thread is launching a graph, and is here by an observer",
        ));
    }
    IN_USE.with_borrow_mut(|keys| {
        if keys.is_empty() {
            let mut state = TURNS.state.lock();
            while state.is_alone || state.waiting > 0 {
                state = sleep(state);
            }
            state.using += 1;
        }
        keys.push(key);
    });
    Ok(())
}

/// Ends a use, if there is one.
#[inline]
pub(crate) fn end_use(key: usize) {
    IN_USE.with_borrow_mut(|keys| {
        let Some(index) = keys.iter().rposition(|known| *known == key) else { return };
        keys.swap_remove(index);
        if keys.is_empty() {
            stop_using();
        }
    });
}

/// Ends all uses of this thread.
#[cold]
#[inline]
pub(crate) fn end_uses() {
    IN_USE.with_borrow_mut(|keys| {
        if !keys.is_empty() {
            keys.clear();
            stop_using();
        }
    });
}

#[inline]
fn stop_using() {
    let mut state = TURNS.state.lock();
    state.using -= 1;
    if state.using == 0 {
        wake(&state);
    }
}

/// Waits for a change.
#[cold]
#[inline]
fn sleep(mut state: MutexGuard<'static, State>) -> MutexGuard<'static, State> {
    state.asleep += 1;
    state = TURNS.changed.wait(state);
    state.asleep -= 1;
    state
}

/// Tells all who wait that there was a change.
#[inline]
fn wake(state: &State) {
    if state.asleep > 0 {
        TURNS.changed.notify_all();
    }
}

impl Uses {
    /// Looks after the uses that this thread begins from now on.
    #[inline]
    pub fn begin() -> Self {
        Self(())
    }

    /// All of them have ended.
    #[inline]
    pub fn ended(self) {
        std::mem::forget(self);
    }
}

impl Drop for Uses {
    #[inline]
    fn drop(&mut self) {
        end_uses();
    }
}

impl Alone {
    /// Waits until nobody uses anything that takes turns, and keeps all others from it.
    ///
    /// # Errors
    ///
    /// An argument error of `operation` if this thread itself is using something, so that it would wait for itself.
    #[inline]
    pub(crate) fn wait(operation: &'static str) -> Result<Self> {
        if IS_ALONE.get() || IN_USE.with_borrow(|keys| !keys.is_empty()) {
            let reason = "this thread is in the middle of using memory that graphs use, and is here by an observer";
            return Err(Error::argument(operation, reason));
        }
        let mut state = TURNS.state.lock();
        state.waiting += 1;
        while state.is_alone || state.using > 0 {
            state = sleep(state);
        }
        state.waiting -= 1;
        state.is_alone = true;
        IS_ALONE.set(true);
        Ok(Self(()))
    }
}

impl Drop for Alone {
    #[inline]
    fn drop(&mut self) {
        IS_ALONE.set(false);
        let mut state = TURNS.state.lock();
        state.is_alone = false;
        wake(&state);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// The turns are those of the process: one test at a time.
    static ONE_TEST: Mutex<()> = Mutex::new(());

    #[test]
    fn launch_waits_for_uses_of_other_threads_and_they_for_it() {
        let _one = ONE_TEST.lock();
        begin_use(1).expect("nobody is alone");
        begin_use(2).expect("nobody is alone");
        let (sender, receiver) = mpsc::channel();
        let other = thread::spawn(move || {
            let alone = Alone::wait("test").expect("this thread uses nothing");
            sender.send(()).expect("the test listens");
            drop(alone);
        });
        end_use(1);
        assert!(receiver.recv_timeout(Duration::from_millis(20)).is_err(), "the second use goes on");
        end_use(2);
        receiver.recv().expect("the launch follows");
        other.join().expect("it does not panic");
    }

    #[test]
    fn thread_that_uses_memory_cannot_be_alone() {
        let _one = ONE_TEST.lock();
        begin_use(1).expect("nobody is alone");
        assert!(Alone::wait("test").is_err());
        drop(Uses::begin());
        let alone = Alone::wait("test").expect("the use was ended");
        assert!(begin_use(1).is_err() && Alone::wait("test").is_err());
        drop(alone);
    }
}
