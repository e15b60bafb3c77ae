//! A wait for an event.
//!
//! The event may have been recorded long before, so the device cannot be told to write a number at
//! its point: a write on the event's stream would wait for all work enqueued since, and a stream
//! that waits for the event shares a hardware queue with streams of the program. The event is
//! therefore queried, which takes about as long as a load of the device's number and enqueues
//! nothing. The times of the queries follow the same rules as the loads of a timeline.
//!
//! A task stores its waker before it adds the entry of the background thread, and the thread
//! queries each entry after it was added, so no wake-up is lost. An entry that has woken its task
//! early is finished: the task spins, and then adds another entry, which does not wake early.
//! `tests` checks this with loom.

mod progress;

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use self::progress::{Progress, State};
use super::patience::{Occasion, WaitingTask, default_spin};
use super::watch::{self, Pace, Waiter};
use crate::base::capture_mode::with_relaxed_capture_mode;
use crate::base::contain::TaskWaker;
use crate::base::fork;
use crate::base::identity::Identity;
use crate::hazard::Operation;
use crate::{Event, PooledEvent, Result};

/// A wait for the most recent record of an event.
pub(super) struct EventWait {
    point: Arc<Point>,
    /// The time for which a poll may spin; `None` to decide by the history of the event.
    pub(super) spin_limit: Option<Duration>,
    /// The latest entry of the background thread.
    entry: Option<Identity>,
    /// `None` before the first poll.
    task: Option<WaitingTask>,
}

/// A point whose event the background thread queries.
struct Point {
    event: PointEvent,
    since: Instant,
    /// The number of this wait, for the history of the event.
    sequence: u64,
    /// `true` if the driver calls back at the point.
    has_callback: bool,
    progress: Progress<TaskWaker, Result<()>>,
}

/// The event recorded after the work.
enum PointEvent {
    Shared(Event),
    Pooled(PooledEvent),
}

impl EventWait {
    /// Waits for an event of the program.
    pub(super) fn for_event(event: &Event) -> Self {
        Self::new(PointEvent::Shared(event.share()), false)
    }

    /// Waits for `event`, which was recorded on the stream of `operation`, and requests a callback
    /// of the driver.
    pub(super) fn with_callback(event: PooledEvent, operation: &Operation<'_>) -> Result<Self> {
        let mut wait = Self::new(PointEvent::Pooled(event), true);
        wait.point.progress.begin();
        let entry = wait.add_entry()?;
        watch::call_after(operation, entry, None)?;
        Ok(wait)
    }

    fn new(event: PointEvent, has_callback: bool) -> Self {
        let point = Point {
            event,
            since: Instant::now(),
            sequence: Identity::next().0 as u64,
            has_callback,
            progress: Progress::new(),
        };
        Self {
            point: Arc::new(point),
            spin_limit: None,
            entry: None,
            task: None,
        }
    }

    /// Returns the result of the wait once. It must not be polled afterwards.
    pub(super) fn poll(&mut self, context: &Context<'_>) -> Poll<Result<()>> {
        let event = self.point.event();
        if fork::is_child() {
            // No thread of this process queries the event. The query is refused.
            return Poll::Ready(event.is_finished().map(drop));
        }
        let occasion = match self.point.progress.state() {
            State::Ended(mut result) => return Poll::Ready(super::take_result(&mut result)),
            _ if self.task.is_none() => Some(Occasion::FirstPoll),
            State::Woken => Some(Occasion::Woken),
            State::Registered => None,
        };
        if let Some(occasion) = occasion {
            match self.point.spin(self.spin_time(occasion)) {
                Ok(false) => {}
                Ok(true) => return Poll::Ready(Ok(())),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        // Cloning a waker may run user code.
        let waker = TaskWaker::new(context.waker().clone());
        let may_wake_early = self.spin_limit != Some(Duration::ZERO);
        match self.point.progress.register(waker, may_wake_early) {
            Ok(registered) => {
                self.task.get_or_insert_with(WaitingTask::begin);
                if registered.begins
                    && let Err(error) = self.add_entry()
                {
                    return Poll::Ready(Err(error));
                }
                // Dropping a waker may run user code.
                drop(registered.replaced);
                Poll::Pending
            }
            // The background thread was faster.
            Err(waker) => {
                drop(waker);
                self.poll(context)
            }
        }
    }

    /// Returns the time for which this poll may spin.
    fn spin_time(&self, occasion: Occasion) -> Duration {
        self.spin_limit.unwrap_or_else(|| {
            default_spin(
                occasion,
                self.point.event().wait_history(),
                self.point.since,
            )
        })
    }

    /// Adds an entry of the background thread.
    fn add_entry(&mut self) -> Result<Identity> {
        let pace = Pace::Predicted {
            expected: self.point.event().wait_history().expected(),
            has_callback: self.point.has_callback,
        };
        let waiter: Arc<dyn Waiter> = Arc::<Point>::clone(&self.point);
        let entry = watch::add_since(self.operation(), waiter, pace, self.point.since)?;
        self.entry = Some(entry);
        Ok(entry)
    }

    /// Queries the event. An error counts as a point that was not reached.
    pub(super) fn is_reached(&self) -> bool {
        let event = self.point.event();
        let answer = with_relaxed_capture_mode(event.driver(), || event.is_finished());
        matches!(answer, Ok(true))
    }

    pub(super) fn operation(&self) -> &'static str {
        match self.point.event {
            PointEvent::Shared(_) => "Event::completion",
            PointEvent::Pooled(_) => "Stream::completion",
        }
    }
}

impl Point {
    /// Queries the event once, and again for at most `limit`. Returns `true` if it has completed.
    fn spin(&self, limit: Duration) -> Result<bool> {
        /// The number of pauses between two queries, which leave the driver's locks to other
        /// threads.
        const PAUSES: u32 = 16;
        let event = self.event();
        with_relaxed_capture_mode(event.driver(), || {
            let begin = Instant::now();
            if event.is_finished()? {
                let history = event.wait_history();
                history.record_bound(self.sequence, self.since.elapsed());
                return Ok(true);
            }
            while begin.elapsed() < limit {
                for _ in 0..PAUSES {
                    std::hint::spin_loop();
                }
                if event.is_finished()? {
                    self.record_end();
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }

    /// Records the duration of the wait, whose end was observed.
    fn record_end(&self) {
        let history = self.event().wait_history();
        history.record(self.sequence, self.since.elapsed());
    }
}

impl Waiter for Point {
    fn event(&self) -> &Event {
        match &self.event {
            PointEvent::Shared(event) => event,
            PointEvent::Pooled(event) => event,
        }
    }

    fn queried(&self, answer: Result<bool>) -> bool {
        let result = match answer {
            Ok(false) => return false,
            Ok(true) => {
                self.record_end();
                Ok(())
            }
            Err(error) => Err(error),
        };
        if let Some(waker) = self.progress.end(result) {
            waker.wake();
        }
        true
    }

    fn wake_early(&self) -> bool {
        let waker = self.progress.take_early();
        let is_woken = waker.is_some();
        if let Some(waker) = waker {
            waker.wake();
        }
        is_woken
    }
}

impl Drop for EventWait {
    fn drop(&mut self) {
        if let Some(entry) = self.entry {
            watch::remove(entry);
        }
    }
}

impl fmt::Debug for EventWait {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.point.event().fmt(formatter)
    }
}
