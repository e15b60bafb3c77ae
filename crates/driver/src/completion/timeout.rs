//! Waits with a deadline.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::watch;
use crate::base::contain::TaskWaker;
use crate::base::identity::Identity;
use crate::{Completion, Error, Result, TimeoutError};

/// A wait with a deadline. Created by [`Completion::timeout`],
/// [`Join::timeout`](crate::Join::timeout) and
/// [`HostFunction::timeout`](crate::HostFunction::timeout).
///
/// The background thread of [`Completion`] has the timer, so any executor can poll it.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Timeout<F> {
    future: F,
    limit: Duration,
    /// `None` if the time limit is longer than a clock can represent.
    deadline: Option<Instant>,
    /// `None` before the first poll.
    timer: Option<Timer>,
}

/// A timer of the background thread, which is cancelled when this value is dropped.
struct Timer(Identity);

/// A future that can name its subject.
pub(crate) trait Subject {
    /// Returns the operation that created the future.
    fn operation(&self) -> &'static str;

    fn subject(&self) -> String;
}

impl Completion {
    /// Returns a future that resolves like this one, or to [`Error::Timeout`] once `limit` has
    /// passed from this call.
    ///
    /// The timeout ends the wait, not the work: buffers and streams stay in use.
    /// [`Timeout::into_inner`] continues the wait.
    ///
    /// ```
    /// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
    /// use std::time::Duration;
    ///
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
    /// stream.completion().timeout(Duration::from_secs(10)).await?;
    /// # Ok::<(), curium_driver::Error>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn timeout(self, limit: Duration) -> Timeout<Self> {
        Timeout::new(self, limit)
    }
}

impl Subject for Completion {
    fn operation(&self) -> &'static str {
        Self::operation(self)
    }

    fn subject(&self) -> String {
        Self::subject(self)
    }
}

impl<F> Timeout<F> {
    pub(crate) fn new(future: F, limit: Duration) -> Self {
        Self {
            future,
            limit,
            deadline: Instant::now().checked_add(limit),
            timer: None,
        }
    }

    /// Returns the future without the deadline.
    pub fn into_inner(self) -> F {
        self.future
    }
}

impl<T, F> Future for Timeout<F>
where
    F: Future<Output = Result<T>> + Subject + Unpin,
{
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        let this = self.get_mut();
        if let Poll::Ready(result) = Pin::new(&mut this.future).poll(context) {
            this.timer = None;
            return Poll::Ready(result);
        }
        let Some(deadline) = this.deadline else {
            return Poll::Pending;
        };
        let operation = this.future.operation();
        if Instant::now() >= deadline {
            this.timer = None;
            let error = TimeoutError::new(operation, this.future.subject(), this.limit);
            return Poll::Ready(Err(Error::Timeout(Box::new(error))));
        }
        // Cloning a waker may run user code.
        let waker = TaskWaker::new(context.waker().clone());
        match &this.timer {
            Some(timer) => watch::set_timer_waker(timer.0, waker),
            None => match watch::add_timer(operation, deadline, waker) {
                Ok(identity) => this.timer = Some(Timer(identity)),
                Err(error) => return Poll::Ready(Err(error)),
            },
        }
        Poll::Pending
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        watch::remove(self.0);
    }
}

impl<F: fmt::Debug> fmt::Debug for Timeout<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Timeout({:?}, {:?})", self.future, self.limit)
    }
}
