//! The background thread that watches pending work.
//!
//! A host function enqueued on a stream notifies the host quickly and without polling. It is not sufficient, for the
//! following reasons:
//!
//! 1. **The driver does not run host functions after the context has failed.** Each point is therefore also marked by
//!    an event, which this thread polls; a query returns the context's error. The polling interval grows with the age
//!    of the work, so the number of queries is logarithmic in the run time, plus one per maximum interval.
//! 2. **A host function must not call the driver**, and user code may: waking a task may run it, or drop its last
//!    reference together with its buffers. The callback therefore runs no waker and drops nothing. It signals this
//!    thread, which may call the driver. (The closure of a host function itself runs in the callback.)
//! 3. **A callback may run late or never**, after its requester is gone. The driver is therefore given a number and no
//!    pointer. Numbers are never reused, and a callback with an unknown number does nothing.
//! 4. **A query can invalidate another thread's capture**, and querying a stream invalidates its own capture. This
//!    thread therefore queries only events, recorded outside captures, and in the relaxed capture mode.
//! 5. **The driver must not be called while the process exits.** Each query therefore holds a lock that the exit
//!    handler acquires.
//! 6. **No wake-up is lost.** An entry is in the table before its callback is requested. The signal is set under the
//!    table's lock, which this thread holds from checking the signal until it sleeps. If the signal comes early, the
//!    entry is found, and its query reports completion, because the event was recorded before the callback.
//!
//! The table's lock is held for a few instructions at a time, never across a driver call or user code. The thread
//! starts with the first entry and ends some time after the last one.

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

/// Pending work, and the action to take on completion.
pub(crate) trait Waiter: Send + Sync {
    /// Returns the event that is recorded after the work.
    fn event(&self) -> &Event;

    /// Called on a driver thread when the stream reaches the point. Must not call the driver, nor drop a value whose
    /// destructor does.
    fn called(&self) {}

    /// Receives the result of querying the event: `true` if it has completed, or the context's error. Returns `true` if
    /// the entry is finished.
    fn queried(&self, answer: Result<bool>) -> bool;
}

/// The method of detecting completion.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    /// By a callback of the driver, with polling as a fallback in case the context fails.
    Called,
    /// By polling only.
    Polled,
}

/// A unique identifier of an entry. Identifiers are never reused.
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
    /// The deadlines of the entries. An item that does not match its entry is stale.
    agenda: BinaryHeap<Reverse<(Instant, Identity)>>,
    /// Entries whose callback has run. Their waiters are dropped by the background thread, not by the callback.
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
const LINGER: Duration = if cfg!(miri) {
    Duration::ZERO
} else {
    Duration::from_secs(5)
};

/// Watches `waiter` until it is finished or [`remove`]d.
pub(crate) fn add(
    operation: &'static str,
    waiter: Arc<dyn Waiter>,
    pace: Pace,
) -> Result<Identity> {
    let since = Instant::now();
    let mut table = WATCH.table.lock();
    table.start(operation)?;
    table.last += 1;
    let identity = Identity(table.last);
    let due = since + pace.pause(Duration::ZERO);
    table.entries.insert(
        identity,
        Entry {
            waiter,
            pace,
            since,
            due,
        },
    );
    table.agenda.push(Reverse((due, identity)));
    WATCH.changed.notify_one();
    Ok(identity)
}

/// Removes an entry. A later callback does nothing.
pub(crate) fn remove(identity: Identity) {
    let entry = WATCH.table.lock().entries.remove(&identity);
    drop(entry);
}

/// Requests a callback for an entry after all work currently enqueued on `stream`. `wait` selects how the driver's thread waits.
pub(crate) fn call_after(
    stream: &Stream,
    identity: Identity,
    wait: Option<HostFunctionWait>,
) -> Result<()> {
    let number = std::ptr::without_provenance_mut::<c_void>(identity.0);
    if let Some(wait) = wait {
        let (raw, mode) = (stream.as_raw(), wait.as_raw());
        // SAFETY: the stream is live, and `on_call` takes any number, at any time and any number of times.
        return unsafe {
            call!(
                stream.driver(),
                cuLaunchHostFunc_v2(raw, Some(on_call), number, mode)
            )
        };
    }
    // SAFETY: the stream is live, and `on_call` takes any number, at any time and any number of times.
    unsafe {
        call!(
            stream.driver(),
            cuLaunchHostFunc(stream.as_raw(), Some(on_call), number)
        )
    }
}

/// The callback that the driver calls. The argument is a number and is never dereferenced.
extern "C" fn on_call(number: *mut c_void) {
    WATCH.ring(Identity(number.addr()));
}

impl Pace {
    /// Returns the interval until work of this age is queried again.
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
        let table = Table {
            entries: BTreeMap::new(),
            agenda: BinaryHeap::new(),
            rung: Vec::new(),
            last: 0,
            is_running: false,
        };
        Self {
            table: Mutex::new(table),
            changed: Condvar::new(),
        }
    }

    /// Schedules an immediate query of an entry.
    fn ring(&self, identity: Identity) {
        let waiter = self
            .table
            .lock()
            .entries
            .get(&identity)
            .map(|entry| Arc::clone(&entry.waiter));
        let Some(waiter) = waiter else { return };
        contain(|| waiter.called());
        self.table.lock().rung.push((identity, waiter));
        self.changed.notify_one();
    }
}

impl Table {
    /// Starts the thread unless it is running.
    fn start(&mut self, operation: &'static str) -> Result<()> {
        if !self.is_running {
            let thread = thread::Builder::new().name("curium-watch".to_owned());
            thread.spawn(run).map_err(|error| {
                Error::argument(operation, format!("no thread can be started: {error}"))
            })?;
            self.is_running = true;
        }
        Ok(())
    }

    /// Takes the entries whose callback has run and those that are due.
    fn take_due(&mut self, now: Instant) -> Vec<(Identity, Arc<dyn Waiter>)> {
        let mut due = std::mem::take(&mut self.rung);
        while let Some(Reverse((time, identity))) =
            self.agenda.peek().copied().filter(|item| item.0.0 <= now)
        {
            self.agenda.pop();
            if let Some(entry) = self
                .entries
                .get(&identity)
                .filter(|entry| entry.due == time)
            {
                due.push((identity, Arc::clone(&entry.waiter)));
            }
        }
        due
    }

    fn is_idle(&self) -> bool {
        self.entries.is_empty() && self.agenda.is_empty() && self.rung.is_empty()
    }

    /// Schedules the next query of an entry.
    fn postpone(&mut self, identity: Identity, now: Instant) {
        if let Some(entry) = self.entries.get_mut(&identity) {
            entry.due = now + entry.pace.pause(now.duration_since(entry.since));
            self.agenda.push(Reverse((entry.due, identity)));
        }
    }
}

/// The body of the background thread.
fn run() {
    let mut table = WATCH.table.lock();
    loop {
        let due = table.take_due(Instant::now());
        if !due.is_empty() {
            drop(table);
            due.into_iter()
                .for_each(|(identity, waiter)| look_after(identity, waiter));
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

/// Queries one entry and removes it if it is finished. User code may run and panic here, and user values may be
/// dropped.
fn look_after(identity: Identity, waiter: Arc<dyn Waiter>) {
    let event = waiter.event();
    let Some(answer) =
        unless_exiting(|| with_relaxed_capture_mode(event.driver(), || event.is_finished()))
    else {
        // The process is exiting: nothing is called or dropped any more.
        std::mem::forget(waiter);
        return;
    };
    // A waiter that panics is finished.
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

    /// A waiter that is never queried.
    struct Idle;

    impl Waiter for Idle {
        fn event(&self) -> &Event {
            unreachable!("nothing queries it")
        }

        fn queried(&self, _: Result<bool>) -> bool {
            unreachable!("nothing queries it")
        }
    }

    /// Creates an entry that is due in an hour.
    fn watch(identity: Identity, now: Instant) -> Watch {
        let (watch, due) = (Watch::new(), now + Duration::from_secs(3600));
        let mut table = watch.table.lock();
        table.entries.insert(
            identity,
            Entry {
                waiter: Arc::new(Idle),
                pace: Pace::Called,
                since: now,
                due,
            },
        );
        table.agenda.push(Reverse((due, identity)));
        drop(table);
        watch
    }

    #[test]
    fn entry_with_a_callback_is_polled_once_before_it_is_due() {
        let (identity, now) = (Identity(7), Instant::now());
        let watch = watch(identity, now);
        assert!(watch.table.lock().take_due(now).is_empty());
        watch.ring(identity);
        let due: Vec<_> = watch
            .table
            .lock()
            .take_due(now)
            .into_iter()
            .map(|(identity, _)| identity)
            .collect();
        assert_eq!(due, [identity]);
        assert!(watch.table.lock().take_due(now).is_empty());
    }

    #[test]
    fn callback_for_a_removed_entry_does_nothing() {
        let (identity, now) = (Identity(7), Instant::now());
        let watch = watch(identity, now);
        watch.ring(Identity(8));
        watch.table.lock().entries.remove(&identity);
        watch.ring(identity);
        assert!(
            watch
                .table
                .lock()
                .take_due(now + Duration::from_secs(7200))
                .is_empty()
        );
        assert!(watch.table.lock().is_idle());
    }
}
