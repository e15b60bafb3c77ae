//! Aborting a communicator, also from another thread.

use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Acquire;
use std::sync::{Arc, Weak};
use std::thread;

use crate::error::call;

use super::Communicator;
use super::shared::{Shared, entered, report_failed_end};
use crate::error::{ArgumentError, Result};
use crate::group;

/// Aborts a communicator, also from another thread, such as a watchdog.
///
/// It does not keep the communicator alive.
#[derive(Clone, Debug)]
pub struct AbortHandle(Weak<Shared>);

impl Communicator {
    /// Aborts the communicator: its kernels that wait for other ranks end, with unspecified
    /// results.
    ///
    /// CUDA: `ncclCommAbort`.
    ///
    /// # Errors
    ///
    /// As for [`AbortHandle::abort`].
    #[doc(alias = "ncclCommAbort")]
    pub fn abort(self) -> Result<()> {
        self.abort_handle().abort()
    }

    /// Returns a handle that aborts the communicator from any thread.
    #[must_use]
    pub fn abort_handle(&self) -> AbortHandle {
        AbortHandle(Arc::downgrade(&self.shared))
    }
}

impl AbortHandle {
    /// Aborts the communicator, once no call uses it. Later calls return
    /// [`Error::Aborted`](crate::Error::Aborted). Does nothing if the communicator was aborted or
    /// destroyed.
    ///
    /// If graphs have operations of the communicator, the function returns before NCCL has released
    /// it: that happens when the last of these graphs is dropped.
    ///
    /// Calls on a communicator with a [timeout](super::CommunicatorOptions::with_timeout) return in
    /// time. Without a timeout, a call may wait for another rank, and `abort` waits for that call.
    ///
    /// CUDA: `ncclCommAbort`.
    ///
    /// # Errors
    ///
    /// An argument error if the communicator is borrowed, or the calling thread is in a group or in
    /// an operation of the communicator, which a call observer may be. An error of NCCL.
    pub fn abort(&self) -> Result<()> {
        const OPERATION: &str = "AbortHandle::abort";
        group::check_none(OPERATION)?;
        match self.0.upgrade() {
            Some(shared) if !shared.is_owned() => Err(ArgumentError::refused(
                OPERATION,
                "the communicator is borrowed; abort it where it was created",
            )),
            Some(shared) if shared.is_in_use_here() => Err(ArgumentError::refused(
                OPERATION,
                "this thread is in an operation of the communicator",
            )),
            Some(shared) => shared.abort(),
            None => Ok(()),
        }
    }
}

impl Shared {
    /// Aborts the communicator, once no call uses it. Kernels that wait for other ranks end. Does
    /// nothing if it has ended, if a call of this thread uses it, or in a group, where NCCL would
    /// abort it only at the end.
    ///
    /// NCCL waits until the graphs with operations of the communicator are destroyed, which the
    /// calling thread may own: a thread waits for it then, until the last graph is gone.
    pub(crate) fn abort(&self) -> Result<()> {
        let may_abort = self.is_owned() && !self.is_in_use_here() && !group::is_open();
        if may_abort && self.end() {
            self.abort_ended()
        } else {
            Ok(())
        }
    }

    /// Aborts the communicator, which the caller has ended, like [`Shared::abort`].
    pub(super) fn abort_ended(&self) -> Result<()> {
        if !self.is_captured.load(Acquire) {
            return self.abort_unused();
        }
        let library = self.library.clone();
        let context = self.context.clone();
        let raw = AtomicPtr::new(self.raw);
        let started = thread::Builder::new()
            .name("curium-nccl-abort".to_owned())
            .spawn(move || {
                // SAFETY: the communicator is live, ended only here, and unused.
                let aborted = entered(&context, || unsafe {
                    call!(library.api(), ncclCommAbort(raw.into_inner()))
                });
                report_failed_end(aborted);
            });
        *self.aborting.lock() = Some(started.map_err(|error| {
            let problem =
                format!("the communicator is not released: no thread can be started ({error})");
            ArgumentError::refused("AbortHandle::abort", problem)
        })?);
        Ok(())
    }

    /// Aborts the communicator, which the caller has ended, and waits until NCCL has released it.
    pub(super) fn abort_unused(&self) -> Result<()> {
        // SAFETY: the communicator is live, ended only by the caller, and unused.
        entered(&self.context, || unsafe {
            call!(self.api(), ncclCommAbort(self.raw))
        })
    }
}
