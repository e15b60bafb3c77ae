//! The thread that aborts a communicator whose operations do not complete in time.
//!
//! The threads that use the communicator cannot: a call of the driver, such as the first launch of
//! a kernel, may wait for an operation that waits for a rank that is gone.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;

use super::outstanding::{LateOperation, Outstanding};
use super::shared::{ENDED, Shared, report_failed_end};
use crate::error::{ArgumentError, Error, Result, TimeoutError};
use crate::operation::Membership;

/// The maximum time between two polls of the operations.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// The thread that watches the operations of a communicator. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Watch {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    pub(super) fn start(
        shared: &Arc<Shared>,
        outstanding: Arc<Mutex<Outstanding>>,
        timeout: Duration,
    ) -> Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let shared = Arc::downgrade(shared);
        let ends = Arc::clone(&is_over);
        let thread = thread::Builder::new().name("curium-nccl-watch".to_owned());
        let thread = thread
            .spawn(move || watch(&shared, &outstanding, timeout, &ends))
            .map_err(|error| {
                let problem =
                    format!("the timeout cannot be watched: no thread can be started ({error})");
                ArgumentError::refused("Communicator::with_options", problem)
            })?;
        Ok(Self {
            is_over,
            thread: Some(thread),
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.is_over.store(true, Release);
        // The thread itself drops this if it has the last reference to the communicator.
        if let Some(thread) = self
            .thread
            .take()
            .filter(|thread| thread.thread().id() != thread::current().id())
        {
            thread.thread().unpark();
            // It does not panic.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Aborts the communicator because of an operation that does not complete. The next call, or
    /// one that is waiting, returns the error.
    fn expire(&self, late: LateOperation) -> Result<()> {
        let Membership { rank, size } = self.membership;
        self.fail();
        let mut expired = self.expired.lock();
        if self.stage.swap(ENDED, AcqRel) == ENDED {
            return Ok(());
        }
        // The call that returns the error puts its own name in place of this one.
        *expired = Some(TimeoutError {
            operation: "Communicator",
            outstanding: late.description,
            recent: late.recent,
            rank,
            size,
            waited: late.waited,
        });
        drop(expired);
        drop(self.in_use.lock());
        self.abort_ended()
    }

    /// Takes the error of an operation that did not complete. The error has the name of the
    /// operation that notices it.
    pub(super) fn expired(&self, operation: &'static str) -> Option<Error> {
        let error = self.expired.lock().take()?;
        Some(Error::Timeout(Box::new(TimeoutError {
            operation,
            ..error
        })))
    }

    pub(super) fn check_not_expired(&self, operation: &'static str) -> Result<()> {
        self.expired(operation).map_or(Ok(()), Err)
    }
}

/// Polls outstanding operations until the communicator is destroyed or aborted.
fn watch(
    shared: &Weak<Shared>,
    outstanding: &Mutex<Outstanding>,
    timeout: Duration,
    is_over: &AtomicBool,
) {
    let pause = (timeout / 8).min(MAX_PAUSE);
    while !is_over.load(Acquire) {
        if let Some(late) = late(outstanding, timeout)
            && let Some(shared) = shared.upgrade()
        {
            return report_failed_end(shared.expire(late));
        }
        thread::park_timeout(pause);
    }
}

/// Returns an operation that has not completed for longer than the timeout.
fn late(outstanding: &Mutex<Outstanding>, timeout: Duration) -> Option<LateOperation> {
    // The thread with the lock may be in a call of the driver that returns only after the
    // operation.
    match outstanding.try_lock_for(timeout) {
        Some(mut outstanding) => outstanding.late(timeout),
        None => Some(LateOperation {
            description: "the driver does not return".into(),
            recent: Box::default(),
            waited: timeout,
        }),
    }
}
