//! A wait for a number of a timeline.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::patience::{Occasion, WaitingTask, default_spin};
use super::watch::{self, MAX_SPIN};
use crate::Result;
use crate::base::contain::TaskWaker;
use crate::base::fork;
use crate::hazard::Operation;
use crate::stream::timeline::{Key, Timeline, Waiting};

/// A number of a timeline that a future waits for.
pub(super) struct Mark {
    timeline: Arc<Timeline>,
    sequence: u64,
    enqueued: Instant,
    /// `true` if the driver calls back at the mark.
    has_callback: bool,
    /// The time for which a poll may spin; `None` to decide by the history of the stream.
    pub(super) spin_limit: Option<Duration>,
    /// `None` before the first poll.
    registration: Option<Registration>,
    /// `true` once the task was woken and the mark was not reached.
    was_early: bool,
}

/// The registration of a task with the timeline.
struct Registration {
    key: Key,
    _task: WaitingTask,
}

impl Mark {
    /// Marks the current point of the stream of `operation`; `None` if the driver does not support
    /// it.
    pub(super) fn enqueue(
        timeline: Arc<Timeline>,
        operation: &Operation<'_>,
    ) -> Result<Option<Self>> {
        let Some(sequence) = timeline.mark(operation)? else {
            return Ok(None);
        };
        let enqueued = Instant::now();
        let is_short = timeline
            .history
            .expected()
            .is_some_and(|expected| expected <= MAX_SPIN);
        if !is_short {
            watch::call_after(operation, timeline.identity, None)?;
        }
        Ok(Some(Self {
            timeline,
            sequence,
            enqueued,
            has_callback: !is_short,
            spin_limit: None,
            registration: None,
            was_early: false,
        }))
    }

    /// Returns the result of the wait once. The mark must not be polled afterwards.
    pub(super) fn poll(&mut self, context: &Context<'_>) -> Poll<Result<()>> {
        if fork::is_child() {
            // The driver's threads do not exist in this process. The query is refused.
            return Poll::Ready(self.timeline.query().map(drop));
        }
        let is_first = self.registration.is_none();
        let was_woken = self
            .registration
            .as_ref()
            .is_some_and(|registration| !self.timeline.waits.contains(registration.key));
        if self.is_reached() {
            // The background thread has measured the wait, unless it has not seen its end.
            let elapsed = self.enqueued.elapsed();
            self.timeline.history.record_bound(self.sequence, elapsed);
            return Poll::Ready(Ok(()));
        }
        let occasion = if is_first {
            Some(Occasion::FirstPoll)
        } else {
            was_woken.then_some(Occasion::Woken)
        };
        if let Some(occasion) = occasion {
            let limit = self.spin_time(occasion);
            if !limit.is_zero() && self.timeline.spin(self.sequence, limit) {
                let elapsed = self.enqueued.elapsed();
                self.timeline.history.record(self.sequence, elapsed);
                return Poll::Ready(Ok(()));
            }
        }
        if was_woken {
            // The context may have failed.
            match self.timeline.query() {
                Ok(reached) if reached >= self.sequence => return Poll::Ready(Ok(())),
                Ok(_) => self.was_early = true,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        match self.register(context) {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    pub(super) fn is_reached(&self) -> bool {
        self.timeline.reached() >= self.sequence
    }

    /// Returns the time for which this poll may spin.
    fn spin_time(&self, occasion: Occasion) -> Duration {
        self.spin_limit
            .unwrap_or_else(|| default_spin(occasion, &self.timeline.history, self.enqueued))
    }

    /// Registers the task, to be woken when the mark is reached.
    fn register(&mut self, context: &Context<'_>) -> Result<()> {
        // Cloning a waker may run user code.
        let waiting = Waiting {
            waker: TaskWaker::new(context.waker().clone()),
            enqueued: self.enqueued,
            has_callback: self.has_callback,
            may_wake_early: !self.was_early && self.spin_limit != Some(Duration::ZERO),
        };
        let key = self
            .registration
            .as_ref()
            .map(|registration| registration.key);
        let registered = self.timeline.waits.register(key, self.sequence, waiting);
        if self.registration.is_none() {
            self.registration = Some(Registration {
                key: registered.key,
                _task: WaitingTask::begin(),
            });
        }
        if registered.begins {
            watch::add_timeline("Stream::completion", &self.timeline)?;
        }
        // Dropping a waker may run user code.
        drop(registered.replaced);
        Ok(())
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        // In a forked child, the lock may belong to a thread of the parent.
        if fork::is_child() {
            return;
        }
        if let Some(registration) = self.registration.take() {
            let waiting = self.timeline.waits.remove(registration.key);
            // Dropping a waker may run user code.
            drop(waiting);
        }
    }
}

impl fmt::Debug for Mark {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let raw = self.timeline.raw();
        write!(formatter, "point {} of stream {raw:?}", self.sequence)
    }
}
