//! The future of a point in a stream.

pub(crate) mod watch;

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use self::watch::{Identity, Pace, Waiter};
use crate::base::capture_guard::NOT_WHILE_CAPTURING;
use crate::base::capture_mode::with_relaxed_capture_mode;
use crate::{Error, Event, PooledEvent, Result, Stream};

/// Becomes ready when a point in a stream has been reached, or with the error of the context if that will never be. Made by
/// [`Stream::completion`] and [`Event::completion`].
///
/// Any executor can await it. No thread is blocked meanwhile: one thread, which all futures of the process share, looks after them.
/// Dropping it is cheap and ends nothing but the wait.
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
    /// The answer is there already; `None` once it was given.
    Known(Option<Result<()>>),
    Watched(Identity, Arc<Point>),
}

/// A point that the shared thread looks after.
struct Point {
    event: Mark,
    progress: Mutex<Progress>,
}

/// The event after the work.
enum Mark {
    Shared(Event),
    Own(PooledEvent),
}

enum Progress {
    Pending(Option<Waker>),
    /// The answer, until it was given.
    Ended(Option<Result<()>>),
}

impl Event {
    /// Becomes ready when the point marked last has been reached, or with the error of the context if that will never be. If the
    /// event is recorded anew meanwhile, the new point counts. Nothing is enqueued on the stream.
    ///
    /// Until then the event is looked at now and then, so that the answer comes late by up to a sixteenth of the time that it
    /// took, and never by more than some milliseconds; [`Stream::completion`] is quicker. See [`Completion`] for what awaits it.
    ///
    /// CUDA: `cuEventQuery`, `cuThreadExchangeStreamCaptureMode`.
    #[doc(alias = "cuEventQuery")]
    #[inline]
    pub fn completion(&self) -> Completion {
        Completion::of_event(self)
    }
}

impl Stream {
    /// Becomes ready when all work that is on this stream now is done, or with the error of the context if that will never be.
    ///
    /// An event and a small host function are enqueued on the stream, so that the answer comes at once; later work of the stream waits for
    /// the host function, some microseconds. [`Event::completion`] spares that. See [`Completion`] for what awaits it.
    ///
    /// On a stream that is being captured the answer is an argument error.
    ///
    /// CUDA: `cuStreamIsCapturing`, `cuStreamQuery`, `cuEventRecord`, `cuLaunchHostFunc`, `cuThreadExchangeStreamCaptureMode`.
    #[doc(alias = "cuStreamQuery")]
    #[doc(alias = "cuStreamAddCallback")]
    #[inline]
    pub fn completion(&self) -> Completion {
        Completion::of_stream(self)
    }
}

impl Completion {
    #[inline]
    pub(crate) fn of_event(event: &Event) -> Self {
        Self::known_or(|| {
            if with_relaxed_capture_mode(event.driver(), || event.is_finished())? {
                return Ok(None);
            }
            Self::watched("Event::completion", Mark::Shared(event.share()), Pace::Polled).map(Some)
        })
    }

    #[inline]
    pub(crate) fn of_stream(stream: &Stream) -> Self {
        Self::known_or(|| {
            stream.refuse_capture("Stream::completion", NOT_WHILE_CAPTURING)?;
            if with_relaxed_capture_mode(stream.driver(), || stream.is_finished())? {
                return Ok(None);
            }
            let event = stream.pooled_event()?;
            event.record(stream)?;
            let future = Self::watched("Stream::completion", Mark::Own(event), Pace::Called)?;
            future.call_after(stream)?;
            Ok(Some(future))
        })
    }

    /// Converts the result of `watch`: a future, a known answer, or an error.
    #[inline]
    fn known_or(watch: impl FnOnce() -> Result<Option<Self>>) -> Self {
        match watch() {
            Ok(Some(future)) => future,
            Ok(None) => Self { state: State::Known(Some(Ok(()))) },
            Err(error) => Self { state: State::Known(Some(Err(error))) },
        }
    }

    #[inline]
    fn watched(operation: &'static str, event: Mark, pace: Pace) -> Result<Self> {
        let point = Arc::new(Point { event, progress: Mutex::new(Progress::Pending(None)) });
        let waiter: Arc<dyn Waiter> = Arc::<Point>::clone(&point);
        let identity = watch::add(operation, waiter, pace)?;
        Ok(Self { state: State::Watched(identity, point) })
    }

    /// Requests a callback of the driver when `stream` reaches this point.
    #[inline]
    fn call_after(&self, stream: &Stream) -> Result<()> {
        match self.state {
            State::Watched(identity, _) => watch::call_after(stream, identity, None),
            State::Known(_) => Ok(()),
        }
    }
}

impl Point {
    #[inline]
    fn poll(&self, context: &Context<'_>) -> Poll<Result<()>> {
        // Cloning a waker may run the executor's code.
        let own = context.waker().clone();
        let mut progress = self.progress.lock();
        let replaced = match &mut *progress {
            Progress::Ended(answer) => return Poll::Ready(given(answer)),
            Progress::Pending(waker) => waker.replace(own),
        };
        drop(progress);
        // Dropping a waker may run the executor's code.
        drop(replaced);
        Poll::Pending
    }
}

impl Waiter for Point {
    #[inline]
    fn event(&self) -> &Event {
        &self.event
    }

    #[inline]
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

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        match &mut self.state {
            State::Known(answer) => Poll::Ready(given(answer)),
            State::Watched(_, point) => point.poll(context),
        }
    }
}

impl Deref for Mark {
    type Target = Event;

    #[inline]
    fn deref(&self) -> &Event {
        match self {
            Self::Shared(event) => event,
            Self::Own(event) => event,
        }
    }
}

impl fmt::Debug for Completion {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.state {
            State::Known(_) => formatter.write_str("Completion(known)"),
            State::Watched(_, point) => write!(formatter, "Completion({:?})", &*point.event),
        }
    }
}

impl Drop for Completion {
    #[inline]
    fn drop(&mut self) {
        if let State::Watched(identity, _) = self.state {
            watch::remove(identity);
        }
    }
}

/// Takes the answer; an error if it was taken before.
#[inline]
fn given(answer: &mut Option<Result<()>>) -> Result<()> {
    answer.take().unwrap_or_else(|| Err(Error::argument("Completion::poll", "polled after completion")))
}

/// A value that is dropped when the work before its event is done.
struct Kept<T>(T);

impl<T: AsRef<Event> + Send + Sync> Waiter for Kept<T> {
    #[inline]
    fn event(&self) -> &Event {
        self.0.as_ref()
    }

    #[inline]
    fn queried(&self, answer: Result<bool>) -> bool {
        // Dropping the value waits for the event, and reports an error.
        !matches!(answer, Ok(false))
    }
}

/// Drops `value` on a background thread when its event has completed.
///
/// Drops it at once if the thread cannot be started.
#[inline]
pub fn drop_on_completion<T: AsRef<Event> + Send + Sync + 'static>(value: T) {
    // Without a thread, the value is dropped with the waiter.
    let _ = watch::add("Pending::detach", Arc::new(Kept(value)), Pace::Polled);
}

const _: () = {
    #[inline]
    const fn is_send_and_sync<T: Send + Sync + Unpin + 'static>() {}
    is_send_and_sync::<Completion>();
};
