//! Waits for several points.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use super::Completion;
use super::timeout::{Subject, Timeout};
use crate::{Error, Result};

/// A future that resolves when several [`Completion`]s have. Created by [`Completion::join`].
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct Join {
    pending: VecDeque<Completion>,
    /// The first error.
    error: Option<Error>,
}

impl Completion {
    /// Returns a future that resolves when all of `completions` have, to the first error in their
    /// order. An error does not end the wait for the others, whose work may still use memory.
    ///
    /// One of them is polled at a time: the last one to end decides when all have. A wait with a
    /// deadline is [`Join::timeout`].
    ///
    /// ```
    /// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
    /// use curium_driver::{Completion, Stream};
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
    /// # let context = driver.device(0)?.primary_context()?;
    /// let streams = [context.stream()?, context.stream()?];
    /// # block_on(async {
    /// // … work on both …
    /// Completion::join(streams.iter().map(Stream::completion)).await?;
    /// # Ok::<(), curium_driver::Error>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn join(completions: impl IntoIterator<Item = Self>) -> Join {
        Join {
            pending: completions.into_iter().collect(),
            error: None,
        }
    }
}

impl Join {
    /// Returns a future that resolves like this one, or to [`Error::Timeout`] once `limit` has
    /// passed from this call. The error names the points that were not reached.
    ///
    /// The timeout ends the wait, not the work: buffers and streams stay in use.
    /// [`Timeout::into_inner`] continues the wait.
    pub fn timeout(self, limit: Duration) -> Timeout<Self> {
        Timeout::new(self, limit)
    }
}

impl Subject for Join {
    fn operation(&self) -> &'static str {
        "Completion::join"
    }

    fn subject(&self) -> String {
        /// The number of points that an error names.
        const MAX_NAMED: usize = 8;
        let is_pending = |completion: &&Completion| !completion.is_reached();
        let mut pending = self.pending.iter().filter(is_pending);
        let mut names: Vec<String> = pending
            .by_ref()
            .take(MAX_NAMED)
            .map(Completion::subject)
            .collect();
        let others = pending.count();
        if others > 0 {
            names.push(format!("{others} more"));
        }
        if names.is_empty() {
            // The last point was reached after the poll.
            return String::from("points that were reached");
        }
        names.join(", ")
    }
}

impl Future for Join {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        while let Some(first) = self.pending.front_mut() {
            let Poll::Ready(result) = Pin::new(first).poll(context) else {
                return Poll::Pending;
            };
            self.pending.pop_front();
            if let Err(error) = result {
                self.error.get_or_insert(error);
            }
        }
        Poll::Ready(self.error.take().map_or(Ok(()), Err))
    }
}
