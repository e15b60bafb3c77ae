//! Uses of shared memory and launches of graphs take turns.
//!
//! Memory that graphs lease is used without being borrowed, whenever such a graph is launched. So a use of it, which begins with a look at
//! earlier uses and ends with a note of itself, must not be under way on one thread while another launches a graph: each would miss the
//! other. Uses go beside each other, as the borrows of the memory allow; so do launches, as far as none writes what another reads or
//! writes; the end of a capture goes alone.
//!
//! A turn of uses and a turn of launches follow each other wherever both wait: what arrives while the other side waits goes with the next
//! turn of its own, so that neither side starves.
//!
//! What is not leased, on a stream that is not of a capture, knows nothing of this.

use std::cell::{Cell, RefCell};
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::lock::{Condvar, Mutex};
use crate::{Error, Result};

/// Being alone, for as long as this exists.
#[must_use]
pub(crate) struct Alone(());

/// A launch that uses what `claims` gives, for as long as this exists.
#[must_use]
pub(crate) struct Launching<C: Claims>(C);

/// What launches claim, each with whether it is written.
pub(crate) trait Claims {
    fn claims(&self) -> impl Iterator<Item = (&Claim, bool)>;
}

/// Which launches use a piece of memory just now: how many that read, or [`WRITER`]. The lock of the turns guards it.
#[derive(Debug, Default)]
pub(crate) struct Claim(AtomicUsize);

/// A launch that writes.
const WRITER: usize = usize::MAX;

/// A use that was begun by something that cannot say whether it took place: it ends with this value, if it did not before.
#[must_use]
#[doc(hidden)]
#[derive(Debug)]
pub struct Uses(());

struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

/// How many threads do what, or wait for it.
struct State {
    using: usize,
    launching: usize,
    is_alone: bool,
    waiting_to_use: usize,
    waiting_to_launch: usize,
    waiting_to_be_alone: usize,
    /// How many turns of launches have ended.
    turns: u64,
    /// How many threads waited to use something when the last of them ended, and have yet to begin: they go before the next.
    due: usize,
    /// How many threads sleep until something changes: to wake nobody is a call of the system too.
    asleep: usize,
}

static TURNS: Turns = Turns { state: Mutex::new(State::new()), changed: Condvar::new() };

thread_local! {
    /// What this thread is using, by addresses that tell one thing from others meanwhile.
    static IN_USE: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    /// Whether this thread is launching, or alone.
    static HAS_TURN: Cell<bool> = const { Cell::new(false) };
}

/// Begins a use of what is called `key`, which ends with [`end_use`] or [`end_uses`].
#[inline]
pub(crate) fn begin_use(key: usize) -> Result<()> {
    if HAS_TURN.get() {
        return Err(Error::argument(
            "memory on a stream",
            "this thread is launching a graph, and is here by an observer",
        ));
    }
    IN_USE.with_borrow_mut(|keys| {
        if keys.is_empty() {
            start_using();
        }
        keys.push(key);
    });
    Ok(())
}

#[inline]
fn start_using() {
    let mut state = TURNS.state.lock();
    if state.has_launches() || state.waits_for_launches() {
        let arrived = state.turns;
        state.waiting_to_use += 1;
        while state.has_launches() || state.waits_for_launches() && state.turns == arrived {
            state = sleep(state);
        }
        state.waiting_to_use -= 1;
        state.due -= usize::from(state.turns != arrived);
    }
    state.using += 1;
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

/// An argument error of `operation` if this thread itself is using something, so that it would wait for itself.
#[inline]
fn expect_idle(operation: &'static str) -> Result<()> {
    if HAS_TURN.get() || IN_USE.with_borrow(|keys| !keys.is_empty()) {
        let reason = "this thread is in the middle of using memory that graphs use, and is here by an observer";
        return Err(Error::argument(operation, reason));
    }
    Ok(())
}

impl State {
    const fn new() -> Self {
        Self {
            using: 0,
            launching: 0,
            is_alone: false,
            waiting_to_use: 0,
            waiting_to_launch: 0,
            waiting_to_be_alone: 0,
            turns: 0,
            due: 0,
            asleep: 0,
        }
    }

    #[inline]
    fn has_launches(&self) -> bool {
        self.launching > 0 || self.is_alone
    }

    #[inline]
    fn waits_for_launches(&self) -> bool {
        self.waiting_to_launch + self.waiting_to_be_alone > 0
    }

    /// Whether a turn of launches can begin, or goes on for those who come now.
    #[inline]
    fn admits_launches(&self) -> bool {
        let is_closing = self.launching > 0 && self.waiting_to_use + self.waiting_to_be_alone > 0;
        self.using == 0 && self.due == 0 && !self.is_alone && !is_closing
    }

    #[inline]
    fn admits_one_alone(&self) -> bool {
        self.using == 0 && self.due == 0 && !self.has_launches()
    }

    /// Ends the turn of launches, if none is under way.
    #[inline]
    fn end_turn(&mut self) {
        if !self.has_launches() {
            self.turns += 1;
            self.due = self.waiting_to_use;
        }
        wake(self);
    }
}

impl Claim {
    #[inline]
    fn is_free(&self, is_write: bool) -> bool {
        let launches = self.0.load(Ordering::Relaxed);
        launches == 0 || !is_write && launches != WRITER
    }

    #[inline]
    fn take(&self, is_write: bool) {
        let launches = self.0.load(Ordering::Relaxed);
        self.0.store(if is_write { WRITER } else { launches + 1 }, Ordering::Relaxed);
    }

    #[inline]
    fn leave(&self, is_write: bool) {
        let launches = self.0.load(Ordering::Relaxed);
        self.0.store(if is_write { 0 } else { launches - 1 }, Ordering::Relaxed);
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

impl<C: Claims> Launching<C> {
    /// Waits until nobody uses anything that takes turns, and no other launch what this one must not share.
    ///
    /// # Errors
    ///
    /// An argument error of `operation` if this thread itself is using something, so that it would wait for itself.
    #[inline]
    pub(crate) fn wait(operation: &'static str, claims: C) -> Result<Self> {
        expect_idle(operation)?;
        let mut state = TURNS.state.lock();
        state.waiting_to_launch += 1;
        while !state.admits_launches() || !claims.claims().all(|(claim, is_write)| claim.is_free(is_write)) {
            state = sleep(state);
        }
        state.waiting_to_launch -= 1;
        state.launching += 1;
        // All at once, so that no two launches wait for each other.
        claims.claims().for_each(|(claim, is_write)| claim.take(is_write));
        HAS_TURN.set(true);
        drop(state);
        Ok(Self(claims))
    }
}

impl<C: Claims> Drop for Launching<C> {
    #[inline]
    fn drop(&mut self) {
        HAS_TURN.set(false);
        let mut state = TURNS.state.lock();
        self.0.claims().for_each(|(claim, is_write)| claim.leave(is_write));
        state.launching -= 1;
        state.end_turn();
    }
}

impl Alone {
    /// Waits until nobody uses or launches anything that takes turns, and keeps all others from it.
    ///
    /// # Errors
    ///
    /// As for [`Launching::wait`].
    #[inline]
    pub(crate) fn wait(operation: &'static str) -> Result<Self> {
        expect_idle(operation)?;
        let mut state = TURNS.state.lock();
        state.waiting_to_be_alone += 1;
        while !state.admits_one_alone() {
            state = sleep(state);
        }
        state.waiting_to_be_alone -= 1;
        state.is_alone = true;
        HAS_TURN.set(true);
        Ok(Self(()))
    }
}

impl Drop for Alone {
    #[inline]
    fn drop(&mut self) {
        HAS_TURN.set(false);
        let mut state = TURNS.state.lock();
        state.is_alone = false;
        state.end_turn();
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

    #[derive(Clone, Copy)]
    struct Few<'a>(&'a [(&'a Claim, bool)]);

    impl Claims for Few<'_> {
        fn claims(&self) -> impl Iterator<Item = (&Claim, bool)> {
            self.0.iter().copied()
        }
    }

    /// Whether a launch with the one claims waits until another thread's with the others is over.
    fn waits_for(one: &[(&Claim, bool)], other: &[(&Claim, bool)]) -> bool {
        let launch = Launching::wait("test", Few(other)).expect("this thread uses nothing");
        thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            scope.spawn(move || {
                let _launch = Launching::wait("test", Few(one)).expect("this thread uses nothing");
                // The test does not listen for ever.
                let _ = sender.send(());
            });
            let waits = loop {
                if receiver.try_recv().is_ok() {
                    break false;
                }
                if TURNS.state.lock().asleep > 0 {
                    break true;
                }
                thread::yield_now();
            };
            drop(launch);
            waits
        })
    }

    #[test]
    fn launches_go_beside_each_other_unless_one_writes_what_the_other_uses() {
        let _one = ONE_TEST.lock();
        let claims = [(); 3].map(|()| Claim::default());
        let [read, written, other] = &claims;
        let own = [(read, false), (written, true)];
        assert!(!waits_for(&[(other, true)], &own) && !waits_for(&[(read, false), (other, true)], &own));
        assert!(waits_for(&[(read, true)], &own), "it writes what the other reads");
        assert!(waits_for(&[(other, true), (written, false)], &own), "it reads what the other writes");
        assert!(claims.iter().all(|claim| claim.is_free(true)), "every claim was left");
    }

    #[test]
    fn use_that_waits_goes_before_launches_that_arrive_after_it() {
        let _one = ONE_TEST.lock();
        let claims = [Claim::default(), Claim::default()];
        let order = Mutex::new(Vec::new());
        let asleep = |count| {
            while TURNS.state.lock().asleep < count {
                thread::yield_now();
            }
        };
        thread::scope(|scope| {
            let own = [(&claims[0], true)];
            let launch = Launching::wait("test", Few(&own)).expect("this thread uses nothing");
            scope.spawn(|| {
                begin_use(1).expect("this thread launches nothing");
                order.lock().push("use");
                end_use(1);
            });
            asleep(1);
            scope.spawn(|| {
                let own = [(&claims[1], true)];
                let _launch = Launching::wait("test", Few(&own)).expect("this thread uses nothing");
                order.lock().push("launch");
            });
            asleep(2);
            drop(launch);
        });
        assert_eq!(order.into_inner(), ["use", "launch"]);
    }

    #[test]
    fn launch_that_waits_goes_before_uses_that_arrive_after_it() {
        let _one = ONE_TEST.lock();
        let claim = Claim::default();
        let order = Mutex::new(Vec::new());
        let asleep = |count| {
            while TURNS.state.lock().asleep < count {
                thread::yield_now();
            }
        };
        thread::scope(|scope| {
            begin_use(1).expect("nobody launches");
            scope.spawn(|| {
                let own = [(&claim, true)];
                let _launch = Launching::wait("test", Few(&own)).expect("this thread uses nothing");
                order.lock().push("launch");
            });
            asleep(1);
            scope.spawn(|| {
                begin_use(2).expect("this thread launches nothing");
                order.lock().push("use");
                end_use(2);
            });
            asleep(2);
            end_use(1);
        });
        assert_eq!(order.into_inner(), ["launch", "use"]);
    }
}
