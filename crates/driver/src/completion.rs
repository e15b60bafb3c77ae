//! Futures that resolve when a stream reaches a point.

pub(crate) mod watch;

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use parking_lot::Mutex;

use self::watch::{Identity, Pace, Waiter};
use crate::base::capture_guard::NOT_WHILE_CAPTURING;
use crate::base::capture_mode::with_relaxed_capture_mode;
use crate::base::contain::TaskWaker;
use crate::hazard::Operation;
use crate::{Error, Event, PooledEvent, Result, Stream};

/// A future that resolves when a stream has reached a point, or with the context's error if it never will. Created by
/// [`Stream::completion`] and [`Event::completion`].
///
/// Any executor can poll it. It blocks no thread: one background thread serves all futures of the process. Dropping it
/// is cheap and does not affect the work.
///
/// Wakers run on that thread and should return at once, as those of executors do. While a waker blocks, another thread
/// serves the other futures after about 10 ms, for up to 64 wakers at a time.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// # fn block_on<T>(future: impl Future<Output = T>) -> T {
/// #     let mut future = std::pin::pin!(future);
/// #     let mut context = std::task::Context::from_waker(std::task::Waker::noop());
/// #     loop {
/// #         if let std::task::Poll::Ready(value) = future.as_mut().poll(&mut context) {
/// #             return value;
/// #         }
/// #     }
/// # }
/// let stream = driver.device(0)?.primary_context()?.stream()?;
/// # block_on(async {
/// // … work …
/// stream.completion().await?;
/// # Ok::<(), curium_driver::Error>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a future does nothing unless it is awaited"]
pub struct Completion {
    state: State,
}

enum State {
    /// The result is already known; `None` once it has been returned.
    Known(Option<Result<()>>),
    Watched(Identity, Arc<Point>),
}

/// A point that the background thread watches.
struct Point {
    event: PointEvent,
    progress: Mutex<Progress>,
}

/// The event recorded after the work.
enum PointEvent {
    Shared(Event),
    Pooled(PooledEvent),
}

enum Progress {
    Pending(Option<TaskWaker>),
    /// The result, until it has been returned.
    Ended(Option<Result<()>>),
}

impl Event {
    /// Returns a future that resolves when the event's most recent record has completed, or with the context's error if
    /// it never will. If the event is recorded again in the meantime, the future waits for the new record. Nothing is
    /// enqueued on the stream.
    ///
    /// The background thread polls the event. The result is late by at most one sixteenth of the time that the work
    /// took, and never by more than a few milliseconds; [`Stream::completion`] is quicker. See [`Completion`].
    ///
    /// CUDA: `cuEventQuery`, `cuThreadExchangeStreamCaptureMode`.
    #[doc(alias = "cuEventQuery")]
    #[doc(alias = "cudaEventQuery")]
    pub fn completion(&self) -> Completion {
        Completion::for_event(self)
    }
}

impl Stream {
    /// Returns a future that resolves when all work currently enqueued on this stream is complete, or with the
    /// context's error if it never will.
    ///
    /// Enqueues an event and a small host function on the stream, so that the result is available immediately. Later
    /// work on the stream waits a few microseconds for the host function; [`Event::completion`] avoids that. See
    /// [`Completion`].
    ///
    /// On a stream that is being captured, the future resolves to an argument error.
    ///
    /// CUDA: `cuStreamIsCapturing`, `cuStreamQuery`, `cuEventRecord`, `cuLaunchHostFunc`,
    /// `cuThreadExchangeStreamCaptureMode`.
    #[doc(alias = "cuStreamQuery")]
    #[doc(alias = "cudaStreamQuery")]
    #[doc(alias = "cuStreamAddCallback")]
    #[doc(alias = "cudaStreamAddCallback")]
    pub fn completion(&self) -> Completion {
        Completion::for_stream(self)
    }
}

impl Completion {
    pub(crate) fn for_event(event: &Event) -> Self {
        Self::unless_complete(|| {
            if with_relaxed_capture_mode(event.driver(), || event.is_finished())? {
                return Ok(None);
            }
            Self::watched(
                "Event::completion",
                PointEvent::Shared(event.share()),
                Pace::Polled,
            )
            .map(Some)
        })
    }

    pub(crate) fn for_stream(stream: &Stream) -> Self {
        Self::unless_complete(|| {
            let operation = stream.enqueue_now("Stream::completion", NOT_WHILE_CAPTURING)?;
            if with_relaxed_capture_mode(stream.driver(), || stream.is_finished())? {
                return Ok(None);
            }
            let event = stream.pooled_event()?;
            event.record(stream)?;
            let future = Self::watched(
                "Stream::completion",
                PointEvent::Pooled(event),
                Pace::Called,
            )?;
            future.call_after(&operation)?;
            Ok(Some(future))
        })
    }

    /// Converts the result of `watch` to a future, a known result or an error.
    fn unless_complete(watch: impl FnOnce() -> Result<Option<Self>>) -> Self {
        match watch() {
            Ok(Some(future)) => future,
            Ok(None) => Self {
                state: State::Known(Some(Ok(()))),
            },
            Err(error) => Self {
                state: State::Known(Some(Err(error))),
            },
        }
    }

    fn watched(operation: &'static str, event: PointEvent, pace: Pace) -> Result<Self> {
        let point = Arc::new(Point {
            event,
            progress: Mutex::new(Progress::Pending(None)),
        });
        let waiter: Arc<dyn Waiter> = Arc::<Point>::clone(&point);
        let identity = watch::add(operation, waiter, pace)?;
        Ok(Self {
            state: State::Watched(identity, point),
        })
    }

    /// Requests a callback from the driver when `stream` reaches this point.
    fn call_after(&self, operation: &Operation<'_>) -> Result<()> {
        match self.state {
            State::Watched(identity, _) => watch::call_after(operation, identity, None),
            State::Known(_) => Ok(()),
        }
    }
}

impl Point {
    fn poll(&self, context: &Context<'_>) -> Poll<Result<()>> {
        // Cloning a waker may run user code.
        let waker = TaskWaker::new(context.waker().clone());
        let mut progress = self.progress.lock();
        let replaced = match &mut *progress {
            Progress::Ended(answer) => return Poll::Ready(take_result(answer)),
            Progress::Pending(current) => current.replace(waker),
        };
        drop(progress);
        // Dropping a waker may run user code.
        drop(replaced);
        Poll::Pending
    }
}

impl Waiter for Point {
    fn event(&self) -> &Event {
        &self.event
    }

    fn queried(&self, answer: Result<bool>) -> bool {
        let answer = match answer {
            Ok(false) => return false,
            Ok(true) => Ok(()),
            Err(error) => Err(error),
        };
        let before = std::mem::replace(&mut *self.progress.lock(), Progress::Ended(Some(answer)));
        if let Progress::Pending(Some(waker)) = before {
            waker.wake();
        }
        true
    }
}

impl Future for Completion {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        match &mut self.state {
            State::Known(answer) => Poll::Ready(take_result(answer)),
            State::Watched(_, point) => point.poll(context),
        }
    }
}

impl Deref for PointEvent {
    type Target = Event;

    fn deref(&self) -> &Event {
        match self {
            Self::Shared(event) => event,
            Self::Pooled(event) => event,
        }
    }
}

impl fmt::Debug for Completion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.state {
            State::Known(_) => formatter.write_str("Completion(known)"),
            State::Watched(_, point) => write!(formatter, "Completion({:?})", *point.event),
        }
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        if let State::Watched(identity, _) = self.state {
            watch::remove(identity);
        }
    }
}

/// Takes the result; an error if it was already taken.
fn take_result(answer: &mut Option<Result<()>>) -> Result<()> {
    answer.take().unwrap_or_else(|| {
        Err(Error::argument(
            "Completion::poll",
            "polled after completion",
        ))
    })
}

/// A value that is dropped once its event has completed.
struct DropOnCompletion<T>(T);

impl<T: AsRef<Event> + Send + Sync> Waiter for DropOnCompletion<T> {
    fn event(&self) -> &Event {
        self.0.as_ref()
    }

    fn queried(&self, answer: Result<bool>) -> bool {
        // Dropping the value waits for the event and reports an error.
        !matches!(answer, Ok(false))
    }
}

/// Drops `value` on a background thread when its event has completed.
///
/// Drops the value immediately if the thread cannot be started.
pub fn drop_on_completion<T: AsRef<Event> + Send + Sync + 'static>(value: T) {
    // Without a thread, dropping the waiter drops the value.
    let _ = watch::add(
        "Pending::detach",
        Arc::new(DropOnCompletion(value)),
        Pace::Polled,
    );
}

const _: () = {
    const fn is_send_and_sync<T: Send + Sync + Unpin + 'static>() {}
    is_send_and_sync::<Completion>();
};
