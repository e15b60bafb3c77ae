//! Finalizing: waiting for the operations of a communicator before it is destroyed.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use super::use_guard::UseGuard;
use super::{Communicator, wake};
use crate::error::Result;
use crate::group;

/// A future that resolves once the operations of all ranks have completed.
///
/// If it is dropped, the end of the communicator waits instead.
#[must_use = "futures do nothing unless they are polled"]
pub struct Finalizing<'a> {
    communicator: &'a mut Communicator,
    start: Instant,
}

impl Communicator {
    /// Waits for the operations of all ranks. Later operations are errors; a drop and
    /// [`Communicator::close`] then return without a wait.
    ///
    /// CUDA: `ncclCommFinalize`.
    ///
    /// # Errors
    ///
    /// [`Error::Finalized`](crate::Error::Finalized) if it was finalized before. An error of NCCL,
    /// or [`Error::Timeout`](crate::Error::Timeout) if the other ranks did not finish in time; the
    /// communicator is aborted then.
    #[doc(alias = "ncclCommFinalize")]
    pub fn finalize(&mut self) -> Result<()> {
        const OPERATION: &str = "Communicator::finalize";
        self.start_finalizing(OPERATION)?;
        let use_guard = UseGuard::acquire_for_release(&*self.shared, OPERATION)?;
        let settled = self.shared.settle(OPERATION);
        drop(use_guard);
        self.shared.ended_by_timeout(settled)
    }

    /// Returns a future that waits for the operations of all ranks like [`Communicator::finalize`].
    ///
    /// A communicator without a [timeout](crate::CommunicatorOptions::with_timeout) that was not
    /// created by [`Communicator::connect`] is blocking in NCCL's sense: the call waits, and the
    /// future resolves at once.
    ///
    /// # Errors
    ///
    /// As for [`Communicator::finalize`]. Later errors are those of the future.
    pub fn start_finalize(&mut self) -> Result<Finalizing<'_>> {
        self.start_finalizing("Communicator::start_finalize")?;
        Ok(Finalizing {
            communicator: self,
            start: Instant::now(),
        })
    }

    fn start_finalizing(&mut self, operation: &'static str) -> Result<()> {
        group::check_none(operation)?;
        let use_guard = UseGuard::acquire(&*self.shared, operation)?;
        let started = if self.shared.is_owned() {
            self.shared.start_finalizing()
        } else {
            Ok(())
        };
        if started.is_ok() {
            self.shared.set_finalized();
        }
        drop(use_guard);
        self.shared.ended_by_timeout(started)
    }
}

impl Future for Finalizing<'_> {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        const OPERATION: &str = "Communicator::start_finalize";
        let shared = &*self.communicator.shared;
        let state = UseGuard::acquire_for_release(shared, OPERATION)
            .and_then(|use_guard| use_guard.shared().is_settled_since(self.start, OPERATION));
        match shared.ended_by_timeout(state) {
            Ok(true) => Poll::Ready(Ok(())),
            Ok(false) => {
                wake::later(context.waker().clone());
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl fmt::Debug for Finalizing<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "Finalizing({:?}, for {:?})",
            self.communicator,
            self.start.elapsed()
        )
    }
}
