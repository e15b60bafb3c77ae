//! Non-blocking creation of a communicator.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use super::shared::Shared;
use super::{Communicator, wake};
use crate::error::Result;

/// A future that resolves to the communicator once all ranks have connected.
///
/// Dropping the future before that aborts the communicator.
#[must_use = "futures do nothing unless they are polled"]
pub struct Connecting {
    shared: Option<Arc<Shared>>,
    start: Instant,
}

impl Connecting {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        // A communicator that does not connect is aborted.
        shared.fail();
        Self {
            shared: Some(shared),
            start: Instant::now(),
        }
    }
}

impl Future for Connecting {
    type Output = Result<Communicator>;

    /// # Panics
    ///
    /// Panics if it has resolved before.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let shared = self
            .shared
            .take()
            .expect("a future is not polled after it has resolved");
        match shared.is_settled_since(self.start, "Communicator::connect") {
            Ok(true) => {
                shared.recover();
                Poll::Ready(Ok(Communicator::from_shared(shared)))
            }
            Ok(false) => {
                self.shared = Some(shared);
                wake::later(context.waker().clone());
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl fmt::Debug for Connecting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Connecting")
            .field("waited", &self.start.elapsed())
            .finish_non_exhaustive()
    }
}
