//! The background thread that watches pending work.
//!
//! A stream tells the host that it has come to a point by calling a host function, quickly and without anybody asking. That alone
//! is not enough, and the rules below follow from why:
//!
//! 1. **The driver never calls back once the context has failed.** So each point is marked by an event as well, and this thread
//!    queries the event now and then. A query answers with the context's error. The pause grows with the age of the work, so that
//!    work of any length costs a number of queries that is logarithmic in its length, and then one per longest pause.
//! 2. **A host function must not call the driver**, and whatever belongs to a user may do so: waking a task may run it, or drop
//!    the last share of it with all its buffers. So a callback runs no waker and drops nothing; it rings a bell, and this thread,
//!    which may call the driver, does the rest. (The closure of a host function is the exception: to run there is its purpose.)
//! 3. **A callback may come late or never**, after whoever asked for it is gone. So the driver is given a number and no pointer.
//!    The number is never used twice, and a callback for a number that is not known any more does nothing.
//! 4. **A query can spoil the capture of another thread**, and a query of a stream its own capture. So only events are queried here,
//!    which were recorded outside of captures, and in the relaxed mode.
//! 5. **The driver must not be called while the process exits.** So each query happens under a lock that the exit handler takes.
//! 6. **No wake-up is lost:** an entry is in the table before its callback is asked for, and the bell is rung under the table's lock,
//!    which this thread holds from looking at the bell until it sleeps. A bell that comes early finds the entry, and the query
//!    that follows finds the work done, since the event was recorded in front of the callback.
//!
//! The lock of the table is held for a few instructions at a time and never across a call of the driver or of a user. The thread
//! starts with the first entry and ends some time after the last.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ffi::c_void;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::base::capture_mode::with_relaxed_capture_mode;
use crate::base::release::{contain, unless_exiting};
use crate::{Error, Event, HostFunctionWait, Result, Stream, call};

/// Pending work, and what is to be done when it ends.
pub(crate) trait Waiter: Send + Sync {
    /// Returns the event that is recorded after the work.
    fn event(&self) -> &Event;

    /// The driver has come to the point, and calls from a thread of its own. Must not call the driver, nor drop what may.
    #[inline]
    fn called(&self) {}

    /// Returns the event was queried: whether the point has been reached, or the error of the context. Returns whether nothing more is to
    /// be waited for.
    fn queried(&self, answer: Result<bool>) -> bool;
}

/// The rate at which work is queried.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    /// The driver calls back unless the context fails.
    Called,
    /// Nobody calls.
    Polled,
}

/// A number that stands for an entry and never for another.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Identity(usize);

struct Entry {
    waiter: Arc<dyn Waiter>,
    pace: Pace,
    since: Instant,
    /// The time of the next query.
    due: Instant,
}

struct Table {
    entries: BTreeMap<Identity, Entry>,
    /// The times at which entries are due. Items that do not match their entry are stale.
    agenda: BinaryHeap<Reverse<(Instant, Identity)>>,
    /// Entries that the driver has called for. Their waiters are dropped by the thread and not by the callback.
    rung: Vec<(Identity, Arc<dyn Waiter>)>,
    last: usize,
    is_running: bool,
}

struct Watch {
    table: Mutex<Table>,
    changed: Condvar,
}

static WATCH: Watch = Watch::new();

/// The time that the thread stays alive without entries.
const LINGER: Duration = if cfg!(miri) { Duration::ZERO } else { Duration::from_secs(5) };

/// Looks after `waiter` until it says that it is done, or until [`remove`].
#[inline]
pub(crate) fn add(operation: &'static str, waiter: Arc<dyn Waiter>, pace: Pace) -> Result<Identity> {
    let since = Instant::now();
    let mut table = WATCH.table.lock();
    table.start(operation)?;
    table.last += 1;
    let identity = Identity(table.last);
    let due = since + pace.pause(Duration::ZERO);
    table.entries.insert(identity, Entry { waiter, pace, since, due });
    table.agenda.push(Reverse((due, identity)));
    WATCH.changed.notify_one();
    Ok(identity)
}

/// Forgets an entry. A callback that comes later does nothing.
#[inline]
pub(crate) fn remove(identity: Identity) {
    let entry = WATCH.table.lock().entries.remove(&identity);
    drop(entry);
}

/// Requests a callback for an entry after all work currently enqueued on `stream`. `wait` selects how the driver's thread waits.
#[inline]
pub(crate) fn call_after(stream: &Stream, identity: Identity, wait: Option<HostFunctionWait>) -> Result<()> {
    let number = std::ptr::without_provenance_mut::<c_void>(identity.0);
    if let Some(wait) = wait {
        let (raw, mode) = (stream.as_raw(), wait.as_raw());
        // SAFETY: the stream is live, and `on_call` takes any number, at any time and any number of times.
        return unsafe { call!(stream.driver(), cuLaunchHostFunc_v2(raw, Some(on_call), number, mode)) };
    }
    // SAFETY: the stream is live, and `on_call` takes any number, at any time and any number of times.
    unsafe { call!(stream.driver(), cuLaunchHostFunc(stream.as_raw(), Some(on_call), number)) }
}

/// The callback that the driver calls. The argument is a number and is never dereferenced.
extern "C" fn on_call(number: *mut c_void) {
    WATCH.ring(Identity(number.addr()));
}

impl Pace {
    /// Returns the pause before work of this age is queried again.
    #[inline]
    fn pause(self, age: Duration) -> Duration {
        let (share, shortest, longest) = match self {
            Self::Called => (4, Duration::from_millis(1), Duration::from_millis(100)),
            Self::Polled => (16, Duration::from_micros(20), Duration::from_millis(5)),
        };
        (age / share).clamp(shortest, longest)
    }
}

impl Watch {
    const fn new() -> Self {
        let table =
            Table { entries: BTreeMap::new(), agenda: BinaryHeap::new(), rung: Vec::new(), last: 0, is_running: false };
        Self { table: Mutex::new(table), changed: Condvar::new() }
    }

    /// Queries an entry now, before it is due.
    #[inline]
    fn ring(&self, identity: Identity) {
        let waiter = self.table.lock().entries.get(&identity).map(|entry| Arc::clone(&entry.waiter));
        let Some(waiter) = waiter else { return };
        contain(|| waiter.called());
        self.table.lock().rung.push((identity, waiter));
        self.changed.notify_one();
    }
}

impl Table {
    /// Starts the thread unless it runs.
    #[inline]
    fn start(&mut self, operation: &'static str) -> Result<()> {
        if !self.is_running {
            let thread = thread::Builder::new().name("curium-watch".to_owned());
            thread
                .spawn(run)
                .map_err(|error| Error::argument(operation, format!("no thread can be started: {error}")))?;
            self.is_running = true;
        }
        Ok(())
    }

    /// Takes the entries that the driver has called for and those that are due.
    #[inline]
    fn take_due(&mut self, now: Instant) -> Vec<(Identity, Arc<dyn Waiter>)> {
        let mut due = std::mem::take(&mut self.rung);
        while let Some(Reverse((time, identity))) = self.agenda.peek().copied().filter(|item| item.0.0 <= now) {
            self.agenda.pop();
            if let Some(entry) = self.entries.get(&identity).filter(|entry| entry.due == time) {
                due.push((identity, Arc::clone(&entry.waiter)));
            }
        }
        due
    }

    #[inline]
    fn is_idle(&self) -> bool {
        self.entries.is_empty() && self.agenda.is_empty() && self.rung.is_empty()
    }

    /// Notes when an entry is to be looked at again.
    #[inline]
    fn postpone(&mut self, identity: Identity, now: Instant) {
        if let Some(entry) = self.entries.get_mut(&identity) {
            entry.due = now + entry.pace.pause(now.duration_since(entry.since));
            self.agenda.push(Reverse((entry.due, identity)));
        }
    }
}

/// The body of the background thread.
#[inline]
fn run() {
    let mut table = WATCH.table.lock();
    loop {
        let due = table.take_due(Instant::now());
        if !due.is_empty() {
            drop(table);
            due.into_iter().for_each(|(identity, waiter)| look_after(identity, waiter));
            table = WATCH.table.lock();
        } else if let Some(Reverse((time, _))) = table.agenda.peek() {
            let pause = time.saturating_duration_since(Instant::now());
            WATCH.changed.wait_for(&mut table, pause);
        } else {
            let lingered = WATCH.changed.wait_for(&mut table, LINGER);
            if lingered.timed_out() && table.is_idle() {
                table.is_running = false;
                return;
            }
        }
    }
}

/// Queries one entry, and removes it if it has completed. Code and values of users run and are dropped here, and may panic.
#[inline]
fn look_after(identity: Identity, waiter: Arc<dyn Waiter>) {
    let event = waiter.event();
    let Some(answer) = unless_exiting(|| with_relaxed_capture_mode(event.driver(), || event.is_finished())) else {
        // The process exits: nothing is called, and nothing is dropped, any more.
        std::mem::forget(waiter);
        return;
    };
    // A waiter that panics has done all that it will ever do.
    let mut is_done = true;
    contain(|| is_done = waiter.queried(answer));
    if is_done {
        contain(|| remove(identity));
    } else {
        WATCH.table.lock().postpone(identity, Instant::now());
    }
    contain(|| drop(waiter));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is in a table and never queried.
    struct Idle;

    impl Waiter for Idle {
        fn event(&self) -> &Event {
            unreachable!("nothing queries it")
        }

        fn queried(&self, _: Result<bool>) -> bool {
            unreachable!("nothing queries it")
        }
    }

    /// One entry, which is due in an hour.
    fn watch(identity: Identity, now: Instant) -> Watch {
        let (watch, due) = (Watch::new(), now + Duration::from_secs(3600));
        let mut table = watch.table.lock();
        table.entries.insert(identity, Entry { waiter: Arc::new(Idle), pace: Pace::Called, since: now, due });
        table.agenda.push(Reverse((due, identity)));
        drop(table);
        watch
    }

    #[test]
    fn entry_that_the_driver_calls_for_is_looked_at_before_it_is_due_and_once() {
        let (identity, now) = (Identity(7), Instant::now());
        let watch = watch(identity, now);
        assert!(watch.table.lock().take_due(now).is_empty());
        watch.ring(identity);
        let due: Vec<_> = watch.table.lock().take_due(now).into_iter().map(|(identity, _)| identity).collect();
        assert_eq!(due, [identity]);
        assert!(watch.table.lock().take_due(now).is_empty());
    }

    #[test]
    fn call_for_an_entry_that_is_gone_does_nothing() {
        let (identity, now) = (Identity(7), Instant::now());
        let watch = watch(identity, now);
        watch.ring(Identity(8));
        watch.table.lock().entries.remove(&identity);
        watch.ring(identity);
        assert!(watch.table.lock().take_due(now + Duration::from_secs(7200)).is_empty());
        assert!(watch.table.lock().is_idle());
    }
}
