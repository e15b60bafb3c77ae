//! The background thread that watches pending work.
//!
//! # Timelines
//!
//! A point of a stream is a number that the device writes to a word in host memory
//! ([`Timeline`](crate::stream::timeline)). This thread loads the word at intervals that grow with
//! the age of the work, and wakes the tasks whose numbers are reached. One entry serves all tasks
//! of a stream.
//!
//! 1. **Near the expected end, the thread spins**, and otherwise sleeps: the previous wait on the
//!    stream predicts the next one. A task that waits alone is woken a little earlier, and spins
//!    itself, so that its end costs no wake-up at all.
//! 2. **The number of loads grows with the logarithm of the age.** Work that is expected to take
//!    longer than 2 ms, or of unknown duration, also requests a callback of the driver, and its
//!    word is loaded rarely: a wake-up of this thread takes about 20 µs of CPU time.
//! 3. **With many streams, the intervals grow with their number**, so that the thread is never busy
//!    all the time.
//! 4. **The device writes nothing after the context has failed.** The thread therefore queries an
//!    event of the stream, at intervals between 1 and 100 ms. If the query fails, it wakes all
//!    tasks of the stream, and each of them receives the error from a query of its own.
//!
//! # Events
//!
//! An event of the program is queried instead ([`event_wait`](super::event_wait)), at times that
//! follow the first three rules: a query takes 0.2 µs. Nothing is enqueued, so there is no
//! callback. An end that is not expected is seen up to an eighth of the duration later, at most 20
//! ms, and one that ends as the previous wait did up to 1/256 of it later, at most 5 ms. Before the
//! expected end of long work, the number of queries is logarithmic.
//!
//! # Ticks
//!
//! A wake-up of this thread takes about 30 µs of CPU time, and a look much less. Intervals of a
//! millisecond and more therefore end at multiples of a [tick](tick), so that one wake-up serves
//! all entries of similar age.
//!
//! # Callbacks
//!
//! A host function enqueued on a stream notifies the host without polling. It is used for
//! [host functions](crate::HostFunction), for long waits, and where the device cannot write values
//! in stream order. It is not sufficient, for the following reasons:
//!
//! 1. **The driver does not run host functions after the context has failed.** Each point is
//!    therefore also marked by an event, which this thread polls; a query returns the context's
//!    error. The polling interval grows with the age of the work, so the number of queries is
//!    logarithmic in the run time, plus one per maximum interval.
//! 2. **A host function must not call the driver**, and user code may: waking a task may run it, or
//!    drop its last reference together with its buffers. The callback therefore runs no waker and
//!    drops nothing. It signals this thread, which may call the driver. (The closure of a host
//!    function itself runs in the callback.)
//! 3. **A callback may run late or never**, after its requester is gone. The driver is therefore
//!    given a number and no pointer. Numbers are never reused, and a callback with an unknown
//!    number does nothing.
//! 4. **A query can invalidate another thread's capture**, and querying a stream invalidates its
//!    own capture. This thread therefore queries only events, recorded outside captures, and in the
//!    relaxed capture mode.
//! 5. **The driver must not be called while the process exits.** Each query therefore holds a lock
//!    that the exit handler acquires.
//! 6. **No wake-up is lost.** An entry is in the table before its callback is requested. The signal
//!    is set under the table's lock, which this thread holds from checking the signal until it
//!    sleeps. If the signal comes early, the entry is found, and its query reports completion,
//!    because the event was recorded before the callback.
//!
//! The table's lock is held for a few instructions at a time, never across a driver call or user
//! code. The thread starts with the first entry and ends some time after the last one.
//!
//! # Blocked user code
//!
//! A waker, or the destructor of a user's value, may block, and the other entries must not wait for
//! it. A second thread stands by. If the first thread has been in the same call of user code for
//! [`PATIENCE`], the standby thread takes over the table, and the first thread ends when its user
//! code returns. Each blocked waker therefore costs a thread, up to [`MAX_BLOCKED`]. A waker that
//! returns at once causes no context switch.

mod schedule;
mod tick;
mod timer_slack;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::ffi::c_void;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use curium_sys::CUhostTaskSyncMode;
use parking_lot::{Condvar, Mutex, MutexGuard};

pub(crate) use self::schedule::MAX_SPIN;
use self::schedule::{MIN_PAUSE, MIN_QUERY_INTERVAL, Schedule};
use crate::base::capture_mode::with_relaxed_capture_mode;
use crate::base::contain::{TaskWaker, contain, contain_host_callback};
use crate::base::fork;
use crate::base::identity::Identity;
use crate::base::release::unless_exiting;
use crate::hazard::Operation;
use crate::stream::timeline::{Key, Timeline, Waiting};
use crate::{Error, Event, Result, call};

/// Pending work, and the action to take on completion.
pub(crate) trait Waiter: Send + Sync {
    /// Returns the event that is recorded after the work.
    fn event(&self) -> &Event;

    /// Called on a driver thread when the stream reaches the point. Must not call the driver, nor
    /// drop a value whose destructor does.
    fn called(&self) {}

    /// Receives the result of querying the event: `true` if it has completed, or the context's
    /// error. Returns `true` if the entry is finished.
    fn queried(&self, answer: Result<bool>) -> bool;

    /// Wakes the task shortly before the expected end, so that it spins. Returns `true` if it was
    /// woken; the entry is then finished.
    fn wake_early(&self) -> bool {
        false
    }
}

/// The method of detecting completion.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    /// By a callback of the driver, with polling as a fallback in case the context fails.
    Called,
    /// By polling only.
    Polled,
    /// By polling, at times that depend on the expected duration.
    Predicted {
        expected: Option<Duration>,
        /// `true` if the driver calls back at the end.
        has_callback: bool,
    },
}

struct Entry {
    subject: Subject,
    since: Instant,
    /// The time of the next action.
    due: Instant,
}

/// The subject of an entry, and the action when it is due.
enum Subject {
    /// Queries an event.
    Waiter(Arc<dyn Waiter>, Pace),
    /// Loads the word of a timeline; queries its event if `query_at` has passed.
    Timeline {
        timeline: Arc<Timeline>,
        query_at: Instant,
    },
    /// Wakes a task and removes the entry.
    Timer(TaskWaker),
}

/// A piece of work for the background thread, which may run user code.
enum Task {
    /// Queries an entry.
    Query(Identity, Arc<dyn Waiter>),
    /// Loads the word of a timeline, and queries its event if the flag is set.
    Look(Arc<Timeline>, bool),
    Wake(TaskWaker),
    Run(Job),
}

/// A closure for the background thread.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

struct Table {
    entries: BTreeMap<Identity, Entry>,
    /// The deadlines of the entries. An item that does not match its entry is stale.
    agenda: BinaryHeap<Reverse<(Instant, Identity)>>,
    /// The next step of the thread. Waiters are dropped by the background thread, not by the
    /// callback.
    tasks: VecDeque<Task>,
    /// The number of entries whose end is predicted, for which this thread may spin.
    predicted: u32,
    /// The thread that serves the table; `None` if there is none.
    watcher: Option<ThreadNumber>,
    /// The number of the thread that was started last.
    last_thread: ThreadNumber,
    user_code: UserCode,
    standby: Standby,
    /// The number of threads that were replaced while they were blocked in user code, and have not
    /// returned from it.
    blocked: usize,
}

/// The number of a background thread. Numbers are never reused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct ThreadNumber(u64);

/// The user code that the watcher runs.
struct UserCode {
    /// The time at which it began; `None` if there is none.
    since: Option<Instant>,
    /// The number of times that user code has begun.
    count: u64,
}

/// The thread that replaces a blocked watcher.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Standby {
    /// There is none.
    Absent,
    /// It sleeps until user code begins.
    Asleep,
    /// It checks the watcher after each interval.
    Alert,
}

struct Watch {
    table: Mutex<Table>,
    /// Wakes the watcher.
    changed: Condvar,
    /// Wakes the standby thread.
    user_code_began: Condvar,
}

static WATCH: Watch = Watch::new();

/// The time for which the thread does not sleep, since falling asleep and waking take as long.
const SLEEP_COST: Duration = Duration::from_micros(10);

/// The time that the thread stays alive without entries.
const LINGER: Duration = if cfg!(miri) {
    Duration::ZERO
} else {
    Duration::from_secs(5)
};

/// The time that user code may take before another thread serves the other entries. Noticing it
/// takes up to twice as long.
const PATIENCE: Duration = Duration::from_millis(10);

/// The maximum number of threads that are blocked in user code and replaced. Further ones delay the
/// other entries.
const MAX_BLOCKED: usize = 64;

/// Watches `waiter` until it is finished or [`remove`]d.
pub(crate) fn add(
    operation: &'static str,
    waiter: Arc<dyn Waiter>,
    pace: Pace,
) -> Result<Identity> {
    add_since(operation, waiter, pace, Instant::now())
}

/// Watches `waiter`, whose wait began at `since`, until it is finished or [`remove`]d.
pub(crate) fn add_since(
    operation: &'static str,
    waiter: Arc<dyn Waiter>,
    pace: Pace,
    since: Instant,
) -> Result<Identity> {
    let identity = Identity::next();
    let entry = Entry {
        subject: Subject::Waiter(waiter, pace),
        since,
        due: Instant::now() + pace.pause(since.elapsed(), 0),
    };
    WATCH.insert(operation, identity, entry)?;
    Ok(identity)
}

/// Watches a timeline, on which a task has begun to wait, until no task waits.
pub(crate) fn add_timeline(operation: &'static str, timeline: &Arc<Timeline>) -> Result<()> {
    let now = Instant::now();
    let entry = Entry {
        subject: Subject::Timeline {
            timeline: Arc::clone(timeline),
            query_at: now + MIN_QUERY_INTERVAL,
        },
        since: now,
        due: now + MIN_PAUSE,
    };
    let inserted = WATCH.insert(operation, timeline.identity, entry);
    inserted.inspect_err(|_| {
        // Without a thread, each task receives the error from a registration of its own.
        for waiting in timeline.waits.abandon().into_values() {
            waiting.waker.wake();
        }
    })
}

/// Wakes a task at `deadline`, unless the entry is [`remove`]d.
pub(crate) fn add_timer(
    operation: &'static str,
    deadline: Instant,
    waker: TaskWaker,
) -> Result<Identity> {
    let identity = Identity::next();
    let entry = Entry {
        subject: Subject::Timer(waker),
        since: Instant::now(),
        due: deadline,
    };
    WATCH.insert(operation, identity, entry)?;
    Ok(identity)
}

/// Replaces the task that a timer wakes. Does nothing if the deadline has passed.
pub(crate) fn set_timer_waker(identity: Identity, waker: TaskWaker) {
    let mut table = WATCH.table.lock();
    let replaced = match table.entries.get_mut(&identity) {
        Some(Entry {
            subject: Subject::Timer(current),
            ..
        }) => std::mem::replace(current, waker),
        _ => waker,
    };
    drop(table);
    // Dropping a waker may run user code.
    drop(replaced);
}

/// Runs `job` on the background thread.
///
/// # Errors
///
/// Returns the job if no thread can be started.
pub(crate) fn run_later(operation: &'static str, job: Job) -> Result<(), (Error, Job)> {
    let mut table = WATCH.table.lock();
    if let Err(error) = table.start(operation) {
        return Err((error, job));
    }
    table.tasks.push_back(Task::Run(job));
    WATCH.changed.notify_one();
    Ok(())
}

/// Wakes a task on the background thread of this crate, so that a waker that blocks does not block
/// the caller.
///
/// Wakes it on the calling thread if no thread can be started.
pub fn wake(waker: TaskWaker) {
    if let Err((_, wake)) = run_later("wake", Box::new(move || waker.wake())) {
        wake();
    }
}

/// Removes an entry. A later callback does nothing.
pub(crate) fn remove(identity: Identity) {
    // In a forked child, the lock may belong to a thread of the parent, and nothing is watched.
    if fork::is_child() {
        return;
    }
    let entry = WATCH.table.lock().remove(identity);
    drop(entry);
}

/// Requests a callback for an entry after all work currently enqueued on the stream of `operation`.
/// `mode` selects how the driver's thread waits.
pub(crate) fn call_after(
    operation: &Operation<'_>,
    identity: Identity,
    mode: Option<CUhostTaskSyncMode>,
) -> Result<()> {
    let number = std::ptr::without_provenance_mut::<c_void>(identity.0);
    if let Some(mode) = mode {
        let raw = operation.raw_stream();
        // SAFETY: the stream is live, and `on_call` takes any number, at any time and any number of
        // times.
        return unsafe {
            call!(
                operation.driver(),
                cuLaunchHostFunc_v2(raw, Some(on_call), number, mode.0)
            )
        };
    }
    // SAFETY: the stream is live, and `on_call` takes any number, at any time and any number of
    // times.
    unsafe {
        call!(
            operation.driver(),
            cuLaunchHostFunc(operation.raw_stream(), Some(on_call), number)
        )
    }
}

/// The callback that the driver calls. The argument is a number and is never dereferenced.
extern "C" fn on_call(number: *mut c_void) {
    contain_host_callback("the callback after work on a stream", || {
        WATCH.notify(Identity(number.addr()));
    });
}

impl Pace {
    /// Returns the interval until work of this age is queried again, with this number of other
    /// entries whose end is predicted.
    fn pause(self, age: Duration, others: u32) -> Duration {
        match self {
            Self::Called => (age / 4).clamp(MIN_QUERY_INTERVAL, Duration::from_millis(100)),
            Self::Polled => {
                let schedule = Schedule {
                    age,
                    expected: None,
                    has_callback: false,
                };
                schedule.pause(0)
            }
            Self::Predicted {
                expected,
                has_callback,
            } => {
                let schedule = Schedule {
                    age,
                    expected,
                    has_callback,
                };
                schedule.pause(others)
            }
        }
    }

    /// Returns `true` if a task that spins should be woken now, and before the expected end.
    fn is_early_wake_due(self, age: Duration) -> bool {
        match self {
            Self::Called | Self::Polled => false,
            Self::Predicted {
                expected,
                has_callback,
            } => {
                let schedule = Schedule {
                    age,
                    expected,
                    has_callback,
                };
                schedule.is_early_wake_due()
            }
        }
    }
}

impl Subject {
    /// Returns `true` if the end is predicted.
    fn is_predicted(&self) -> bool {
        match self {
            Self::Waiter(_, pace) => matches!(pace, Pace::Predicted { .. }),
            Self::Timeline { .. } => true,
            Self::Timer(_) => false,
        }
    }
}

impl Watch {
    const fn new() -> Self {
        let table = Table {
            entries: BTreeMap::new(),
            agenda: BinaryHeap::new(),
            tasks: VecDeque::new(),
            predicted: 0,
            watcher: None,
            last_thread: ThreadNumber(0),
            user_code: UserCode {
                since: None,
                count: 0,
            },
            standby: Standby::Absent,
            blocked: 0,
        };
        Self {
            table: Mutex::new(table),
            changed: Condvar::new(),
            user_code_began: Condvar::new(),
        }
    }

    /// Adds an entry, and starts the watcher unless it is running.
    fn insert(&self, operation: &'static str, identity: Identity, entry: Entry) -> Result<()> {
        let mut table = self.table.lock();
        if let Err(error) = table.start(operation) {
            drop(table);
            return Err(error);
        }
        let is_predicted = entry.subject.is_predicted();
        let due = entry.due;
        // A timeline that begins again may still have its entry, which owns nothing but a clone.
        let replaced = table.entries.insert(identity, entry);
        table.predicted += u32::from(is_predicted && replaced.is_none());
        table.agenda.push(Reverse((due, identity)));
        self.changed.notify_one();
        Ok(())
    }

    /// Runs the function of an entry, and schedules an immediate query.
    fn notify(&self, identity: Identity) {
        let mut table = self.table.lock();
        let waiter = match table.entries.get(&identity).map(|entry| &entry.subject) {
            Some(Subject::Waiter(waiter, _)) => Arc::clone(waiter),
            Some(Subject::Timeline { timeline, .. }) => {
                let look = Task::Look(Arc::clone(timeline), false);
                table.tasks.push_back(look);
                self.changed.notify_one();
                return;
            }
            Some(Subject::Timer(_)) | None => return,
        };
        drop(table);
        contain(|| waiter.called());
        self.table
            .lock()
            .tasks
            .push_back(Task::Query(identity, waiter));
        self.changed.notify_one();
    }

    /// Records that the watcher is about to run user code, and starts the standby thread unless it
    /// exists.
    fn begin_user_code(&self, thread: ThreadNumber) {
        let mut table = self.table.lock();
        if table.watcher != Some(thread) {
            return;
        }
        table.user_code.since = Some(Instant::now());
        table.user_code.count += 1;
        match table.standby {
            Standby::Asleep => {
                self.user_code_began.notify_one();
            }
            Standby::Absent if table.blocked < MAX_BLOCKED => {
                // Without the thread, blocked user code delays the other entries.
                let spawned = thread::Builder::new()
                    .name("curium-standby".to_owned())
                    .spawn(stand_by);
                if spawned.is_ok() {
                    table.standby = Standby::Alert;
                }
            }
            Standby::Absent | Standby::Alert => {}
        }
    }
}

impl Table {
    /// Starts the watcher unless it is running.
    fn start(&mut self, operation: &'static str) -> Result<()> {
        if self.watcher.is_none() {
            let number = self.next_thread();
            let thread = thread::Builder::new().name("curium-watch".to_owned());
            thread.spawn(move || run(number)).map_err(|error| {
                Error::argument(operation, format!("no thread can be started: {error}"))
            })?;
            self.watcher = Some(number);
        }
        Ok(())
    }

    fn next_thread(&mut self) -> ThreadNumber {
        self.last_thread.0 += 1;
        self.last_thread
    }

    /// Creates a task for every entry that is due.
    fn collect_due(&mut self, now: Instant) {
        while let Some(Reverse((time, identity))) =
            self.agenda.peek().copied().filter(|item| item.0.0 <= now)
        {
            self.agenda.pop();
            let entry = self.entries.get_mut(&identity);
            let Some(entry) = entry.filter(|entry| entry.due == time) else {
                continue;
            };
            let task = match &mut entry.subject {
                Subject::Waiter(waiter, _) => Task::Query(identity, Arc::clone(waiter)),
                Subject::Timeline { timeline, query_at } => {
                    let is_query_due = *query_at <= now;
                    if is_query_due {
                        *query_at = now + Pace::Called.pause(now.duration_since(entry.since), 0);
                    }
                    Task::Look(Arc::clone(timeline), is_query_due)
                }
                Subject::Timer(_) => match self.entries.remove(&identity) {
                    Some(Entry {
                        subject: Subject::Timer(waker),
                        ..
                    }) => Task::Wake(waker),
                    _ => continue,
                },
            };
            self.tasks.push_back(task);
        }
    }

    fn is_idle(&self) -> bool {
        self.entries.is_empty() && self.agenda.is_empty() && self.tasks.is_empty()
    }

    /// Removes an entry, which the caller drops without the lock.
    fn remove(&mut self, identity: Identity) -> Option<Entry> {
        let entry = self.entries.remove(&identity)?;
        self.predicted -= u32::from(entry.subject.is_predicted());
        Some(entry)
    }

    /// Returns `true` if the task of an entry should be woken now, to spin until the end. Several
    /// tasks do not spin.
    fn is_early_wake_due(&self, identity: Identity, now: Instant) -> bool {
        match self.entries.get(&identity) {
            Some(Entry {
                subject: Subject::Waiter(_, pace),
                since,
                ..
            }) => {
                self.predicted <= 1 && pace.is_early_wake_due(now.saturating_duration_since(*since))
            }
            _ => false,
        }
    }

    /// Schedules the next query of an entry; returns `false` if it was removed.
    fn postpone(&mut self, identity: Identity, now: Instant) -> bool {
        let others = self.predicted.saturating_sub(1);
        let Some(entry) = self.entries.get_mut(&identity) else {
            return false;
        };
        if let Subject::Waiter(_, pace) = &entry.subject {
            let age = now.saturating_duration_since(entry.since);
            entry.due = tick::due(now, pace.pause(age, others));
            self.agenda.push(Reverse((entry.due, identity)));
        }
        true
    }

    /// Schedules the wake-ups of taken tasks, and the next look at their timeline. Stops watching
    /// it if no task waits.
    fn continue_timeline(
        &mut self,
        timeline: &Timeline,
        taken: BTreeMap<Key, Waiting<TaskWaker>>,
        now: Instant,
    ) {
        let wakes = taken.into_values().map(|waiting| Task::Wake(waiting.waker));
        self.tasks.extend(wakes);
        let others = self.predicted.saturating_sub(1);
        let pause = loop {
            let Some(head) = timeline.waits.head_or_end() else {
                // The entry owns nothing but a clone.
                drop(self.remove(timeline.identity));
                return;
            };
            let age = now.saturating_duration_since(head.enqueued);
            let schedule = Schedule {
                age,
                expected: timeline.history.expected(),
                has_callback: head.has_callback,
            };
            if others > 0 || !head.may_wake_early || !schedule.is_early_wake_due() {
                break schedule.pause(others);
            }
            let first = timeline.waits.take_first();
            self.tasks
                .extend(first.map(|first| Task::Wake(first.waker)));
        };
        if let Some(entry) = self.entries.get_mut(&timeline.identity) {
            entry.due = tick::due(now, pause);
            self.agenda.push(Reverse((entry.due, timeline.identity)));
        }
    }

    /// Makes a new thread the watcher if the current one is blocked in user code. Returns the
    /// number of the new thread.
    fn take_over(&mut self, now: Instant) -> Option<ThreadNumber> {
        let since = self.user_code.since?;
        if self.blocked >= MAX_BLOCKED || now.saturating_duration_since(since) < PATIENCE {
            return None;
        }
        let number = self.next_thread();
        self.watcher = Some(number);
        self.user_code.since = None;
        self.standby = Standby::Absent;
        self.blocked += 1;
        Some(number)
    }
}

/// The body of the watcher.
fn run(thread: ThreadNumber) {
    timer_slack::minimize();
    let mut table = WATCH.table.lock();
    loop {
        if table.watcher != Some(thread) {
            table.blocked -= 1;
            return;
        }
        table.user_code.since = None;
        table.collect_due(Instant::now());
        if let Some(task) = table.tasks.pop_front() {
            drop(table);
            perform(thread, task);
            table = WATCH.table.lock();
        } else if let Some(Reverse((time, _))) = table.agenda.peek() {
            let pause = time.saturating_duration_since(Instant::now());
            if pause > SLEEP_COST {
                WATCH.changed.wait_for(&mut table, pause);
            } else {
                MutexGuard::unlocked(&mut table, std::hint::spin_loop);
            }
        } else {
            let lingered = WATCH.changed.wait_for(&mut table, LINGER);
            if lingered.timed_out() && table.is_idle() {
                table.watcher = None;
                WATCH.user_code_began.notify_one();
                return;
            }
        }
    }
}

/// The body of the standby thread: replaces the watcher when the watcher is blocked.
fn stand_by() {
    let mut table = WATCH.table.lock();
    while table.watcher.is_some() {
        let count = table.user_code.count;
        WATCH.user_code_began.wait_for(&mut table, PATIENCE);
        if let Some(thread) = table.take_over(Instant::now()) {
            drop(table);
            run(thread);
            return;
        }
        if table.user_code.count == count && table.user_code.since.is_none() {
            // After a quiet interval, the watcher wakes this thread.
            table.standby = Standby::Asleep;
            while table.standby == Standby::Asleep
                && table.user_code.since.is_none()
                && table.watcher.is_some()
            {
                WATCH.user_code_began.wait(&mut table);
            }
            table.standby = Standby::Alert;
        }
    }
    table.standby = Standby::Absent;
}

fn perform(thread: ThreadNumber, task: Task) {
    match task {
        Task::Query(identity, waiter) => query(thread, identity, waiter),
        Task::Look(timeline, is_query_due) => look(thread, timeline, is_query_due),
        Task::Wake(waker) => {
            WATCH.begin_user_code(thread);
            waker.wake();
        }
        Task::Run(job) => {
            WATCH.begin_user_code(thread);
            contain(job);
        }
    }
}

/// Queries one entry and removes it if it is finished. User code may run and panic here, and user
/// values may be dropped.
fn query(thread: ThreadNumber, identity: Identity, waiter: Arc<dyn Waiter>) {
    let event = waiter.event();
    let Some(answer) =
        unless_exiting(|| with_relaxed_capture_mode(event.driver(), || event.is_finished()))
    else {
        // The process is exiting: nothing is called or dropped any more.
        std::mem::forget(waiter);
        return;
    };
    let is_pending = matches!(answer, Ok(false));
    let is_early = is_pending
        && WATCH
            .table
            .lock()
            .is_early_wake_due(identity, Instant::now());
    if !is_pending || is_early {
        WATCH.begin_user_code(thread);
    }
    // A waiter that panics is finished.
    let mut is_done = true;
    contain(|| is_done = waiter.queried(answer) || is_early && waiter.wake_early());
    if is_done {
        contain(|| remove(identity));
    } else if WATCH.table.lock().postpone(identity, Instant::now()) {
        // The table has another reference, so this one drops nothing.
    } else if is_pending {
        // The entry was removed in the meantime.
        WATCH.begin_user_code(thread);
    }
    contain(|| drop(waiter));
}

/// Loads the word of a timeline, and wakes the tasks whose numbers are reached.
fn look(thread: ThreadNumber, timeline: Arc<Timeline>, is_query_due: bool) {
    let mut taken = timeline.waits.take_reached(timeline.reached());
    let now = Instant::now();
    if let Some((key, waiting)) = taken.last_key_value() {
        let duration = now.saturating_duration_since(waiting.enqueued);
        timeline.history.record(key.sequence, duration);
    } else if is_query_due {
        match unless_exiting(|| timeline.query()) {
            Some(Ok(reached)) => taken = timeline.waits.take_reached(reached),
            // Each task receives the error from a query of its own.
            Some(Err(_)) => taken = timeline.waits.take_all(),
            None => {
                // The process is exiting: nothing is called or dropped any more.
                std::mem::forget(timeline);
                return;
            }
        }
    }
    let mut table = WATCH.table.lock();
    table.continue_timeline(&timeline, taken, now);
    drop(table);
    if Arc::strong_count(&timeline) == 1 {
        // Dropping it may end the context.
        WATCH.begin_user_code(thread);
    }
    contain(|| drop(timeline));
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
        let watch = Watch::new();
        let due = now + Duration::from_secs(3600);
        let mut table = watch.table.lock();
        table.entries.insert(
            identity,
            Entry {
                subject: Subject::Waiter(Arc::new(Idle), Pace::Called),
                since: now,
                due,
            },
        );
        table.agenda.push(Reverse((due, identity)));
        drop(table);
        watch
    }

    /// Returns the entries that are queried now.
    fn due(watch: &Watch, now: Instant) -> Vec<Identity> {
        let mut table = watch.table.lock();
        table.collect_due(now);
        let tasks = std::mem::take(&mut table.tasks);
        let identities = tasks.iter().filter_map(|task| match task {
            Task::Query(identity, _) => Some(*identity),
            _ => None,
        });
        identities.collect()
    }

    #[test]
    fn entry_with_a_callback_is_polled_once_early() {
        let identity = Identity(7);
        let now = Instant::now();
        let watch = watch(identity, now);
        assert!(due(&watch, now).is_empty());
        watch.notify(identity);
        assert_eq!(due(&watch, now), [identity]);
        assert!(due(&watch, now).is_empty());
    }

    #[test]
    fn callback_for_a_removed_entry_does_nothing() {
        let identity = Identity(7);
        let now = Instant::now();
        let watch = watch(identity, now);
        watch.notify(Identity(8));
        watch.table.lock().entries.remove(&identity);
        watch.notify(identity);
        assert!(due(&watch, now + Duration::from_secs(7200)).is_empty());
        assert!(watch.table.lock().is_idle());
    }

    #[test]
    fn blocked_watcher_is_replaced_up_to_a_limit() {
        let watch = Watch::new();
        let mut table = watch.table.lock();
        let now = Instant::now();
        assert_eq!(table.take_over(now), None, "no user code runs");
        for blocked in 1..=MAX_BLOCKED {
            table.user_code.since = Some(now);
            assert_eq!(table.take_over(now), None, "user code has just begun");
            assert!(table.take_over(now + PATIENCE).is_some());
            assert_eq!(table.blocked, blocked);
        }
        table.user_code.since = Some(now);
        assert_eq!(table.take_over(now + PATIENCE), None);
    }
}
