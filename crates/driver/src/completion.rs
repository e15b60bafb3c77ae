//! Futures that resolve when a stream reaches a point.

mod event_wait;
mod join;
mod mark;
mod patience;
pub(crate) mod timeout;
pub(crate) mod watch;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use self::event_wait::EventWait;
pub use self::join::Join;
use self::mark::Mark;
pub use self::timeout::Timeout;
use self::watch::{Pace, Waiter};
use crate::base::capture_guard::NOT_WHILE_CAPTURING;
use crate::base::capture_mode::with_relaxed_capture_mode;
use crate::{Error, Event, Result, Stream};

/// A future that resolves when a stream has reached a point, or with the context's error if it
/// never will. Created by [`Stream::completion`] and [`Event::completion`].
///
/// Any executor can poll it. It blocks no thread: one background thread serves all futures of the
/// process. Dropping it cancels the wait, is cheap and does not affect the work. A wait with a
/// deadline is [`Completion::timeout`], and a wait for several points [`Completion::join`].
///
/// # Latency
///
/// The device writes a number to host memory when it reaches the point of a stream; an event is
/// queried. A poll may spin for a short time to see the end at once, on the executor's thread, if
/// no other future waits in this process:
///
/// - The first poll spins if the previous wait for the stream or the event was short: up to 100 µs,
///   and 20 µs if there was none.
/// - A task whose wait is expected to end within 2 ms, because the previous one did, is woken about
///   80 µs earlier. Its poll then spins for up to 100 µs.
///
/// Otherwise the background thread wakes the task. It spins shortly before the expected end, and
/// sleeps the rest of the time. [`Completion::with_spin_limit`] changes the time for which a poll
/// spins, or disables spinning.
///
/// # Wakers
///
/// Wakers run on the background thread and should return at once, as those of executors do. While a
/// waker blocks, another thread serves the other futures after about 10 ms, for up to 64 wakers at
/// a time. A task may be woken before the point is reached: once, and again if one of its polls
/// coincides with that.
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
    /// A number of the stream's timeline.
    Marked(Mark),
    Event(EventWait),
}

impl Event {
    /// Returns a future that resolves when the event's most recent record has completed, or with
    /// the context's error if it never will. Work that was enqueued after the record is not waited
    /// for. If the event is recorded again in the meantime, the future waits for the new record.
    /// Nothing is enqueued.
    ///
    /// Polls and the background thread query the event, at times that depend on the previous wait
    /// for it, as those of [`Stream::completion`] do. After work of less than 2 ms that took as
    /// long as before, the future is as quick. Without a previous wait, the end of the work is seen
    /// up to one eighth of its duration later, but at most 20 ms, and after longer work up to 1/256
    /// of it, but at most 5 ms, if the previous wait took as long. If it took longer, an early end
    /// is seen up to half of the duration later. See [`Completion`].
    ///
    /// On an event that was last recorded in a capture, the future resolves to an argument error.
    ///
    /// CUDA: `cuEventQuery`, `cuThreadExchangeStreamCaptureMode`.
    #[doc(alias = "cuEventQuery")]
    #[doc(alias = "cudaEventQuery")]
    pub fn completion(&self) -> Completion {
        Completion::for_event(self)
    }
}

impl Stream {
    /// Returns a future that resolves when all work currently enqueued on this stream is complete,
    /// or with the context's error if it never will.
    ///
    /// Enqueues an event and a write to host memory, which delay later work by less than a
    /// microsecond. If the previous wait on this stream took longer than 2 ms, if there was none,
    /// or if the device cannot write values in stream order, also enqueues a small host function,
    /// for which later work on the stream waits a few microseconds. [`Event::completion`] enqueues
    /// nothing. See [`Completion`].
    ///
    /// On a stream that is being captured, the future resolves to an argument error.
    ///
    /// CUDA: `cuStreamIsCapturing`, `cuStreamQuery`, `cuEventRecord`, `cuStreamWriteValue64_v2`,
    /// `cuLaunchHostFunc`, `cuThreadExchangeStreamCaptureMode`; on first use
    /// `cuDeviceGetAttribute`, `cuMemHostRegister_v2`, `cuMemHostGetDevicePointer_v2`,
    /// `cuEventCreate`.
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
            Ok(Some(Self {
                state: State::Event(EventWait::for_event(event)),
            }))
        })
    }

    pub(crate) fn for_stream(stream: &Stream) -> Self {
        Self::unless_complete(|| {
            let operation = stream.enqueue_now("Stream::completion", NOT_WHILE_CAPTURING)?;
            if with_relaxed_capture_mode(stream.driver(), || stream.is_finished())? {
                return Ok(None);
            }
            if let Some(timeline) = stream.timeline()?
                && let Some(mark) = Mark::enqueue(timeline, &operation)?
            {
                return Ok(Some(Self {
                    state: State::Marked(mark),
                }));
            }
            let event = stream.pooled_event()?;
            event.record(stream)?;
            Ok(Some(Self {
                state: State::Event(EventWait::with_callback(event, &operation)?),
            }))
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
}

impl Completion {
    /// Sets the time for which each poll may spin on the calling thread, whatever the history of
    /// the stream and the number of other futures. [`Duration::ZERO`] disables spinning. See
    /// [`Completion`] for the default.
    pub fn with_spin_limit(mut self, limit: Duration) -> Self {
        match &mut self.state {
            State::Known(_) => {}
            State::Marked(mark) => mark.spin_limit = Some(limit),
            State::Event(wait) => wait.spin_limit = Some(limit),
        }
        self
    }

    /// Returns the operation that created the future, for error messages.
    fn operation(&self) -> &'static str {
        match &self.state {
            State::Event(wait) => wait.operation(),
            State::Known(_) | State::Marked(_) => "Stream::completion",
        }
    }

    /// Returns `true` if the point was reached, for error messages. An event is queried.
    fn is_reached(&self) -> bool {
        match &self.state {
            State::Known(_) => true,
            State::Marked(mark) => mark.is_reached(),
            State::Event(wait) => wait.is_reached(),
        }
    }

    /// Returns the description of the point, for error messages.
    fn subject(&self) -> String {
        match &self.state {
            State::Known(_) => String::from("a point that was reached"),
            State::Marked(mark) => format!("{mark:?}"),
            State::Event(wait) => format!("{wait:?}"),
        }
    }
}

impl Future for Completion {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let result = match &mut self.state {
            State::Known(answer) => return Poll::Ready(take_result(answer)),
            State::Marked(mark) => mark.poll(context),
            State::Event(wait) => wait.poll(context),
        };
        if result.is_ready() {
            self.state = State::Known(None);
        }
        result
    }
}

impl fmt::Debug for Completion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.state {
            State::Known(_) => formatter.write_str("Completion(known)"),
            State::Marked(mark) => write!(formatter, "Completion({mark:?})"),
            State::Event(wait) => write!(formatter, "Completion({wait:?})"),
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
    is_send_and_sync::<Join>();
    is_send_and_sync::<Timeout<Join>>();
};
