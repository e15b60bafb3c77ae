//! The communicator of NCCL, which lives until its owner and every graph that captured it are gone,
//! or until it is aborted.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicUsize};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{ptr, thread};

use curium_driver::extend::{dropping, release_handle};
use curium_driver::{Context, Stream};
use parking_lot::{Mutex, MutexGuard};

use super::outstanding::Outstanding;
use super::registration::ListedRegistration;
use super::watch::Watch;
use crate::error::{Error, Result, TimeoutError, call};
use crate::group;
use crate::library::Nccl;
use crate::library::failed;
use crate::operation::{Call, Description, Form, Membership};
use crate::sys::{Api, ncclComm, ncclComm_t, ncclResult_t};

/// The longest pause between queries of a communicator's state.
const MAX_PAUSE: Duration = Duration::from_millis(1);

/// The stages of a communicator: in use; finalized, so that it can only be destroyed or aborted;
/// destroyed or aborted.
pub(super) const LIVE: u8 = 0;
pub(super) const FINALIZED: u8 = 1;
pub(super) const ENDED: u8 = 2;

#[derive(Debug)]
pub(crate) struct Shared {
    pub(super) raw: ncclComm_t,
    pub(crate) library: Nccl,
    pub(crate) context: Context,
    pub(crate) membership: Membership,
    /// The time limit of waits; with one, the communicator is non-blocking.
    pub(crate) timeout: Option<Duration>,
    /// `false` for a communicator of other code, which is neither destroyed nor aborted.
    ownership: Ownership,
    /// `true` if an operation has failed: the communicator is aborted instead of destroyed.
    has_failed: AtomicBool,
    /// The operation for which the watching thread has aborted the communicator, until a call
    /// returns the error.
    pub(super) expired: Mutex<Option<TimeoutError>>,
    /// The operations that may not have completed.
    outstanding: Arc<Mutex<Outstanding>>,
    /// Of a communicator with a timeout.
    watch: OnceLock<Watch>,
    /// `true` if a graph may have operations of the communicator.
    pub(super) is_captured: AtomicBool,
    /// The thread that aborts the communicator.
    pub(super) aborting: Mutex<Option<JoinHandle<()>>>,
    /// [`LIVE`], [`FINALIZED`] or [`ENDED`].
    pub(super) stage: AtomicU8,
    /// Locked by every call that uses the communicator, and by its end.
    pub(super) in_use: Mutex<()>,
    /// The [identity](group::thread_identity) of the thread that has locked `in_use` for a call, or 0.
    pub(super) user: AtomicUsize,
    /// The memory that is registered, for captures.
    pub(super) registrations: Mutex<Vec<ListedRegistration>>,
    /// Dropped after the communicator has ended.
    _output: Option<Output>,
}

/// The output of a call that creates a communicator or registers memory. A non-blocking call writes
/// it again when it has completed.
#[derive(Debug)]
pub(super) struct Output<T = ncclComm>(Box<AtomicPtr<T>>);

impl<T> Output<T> {
    pub(super) fn new() -> Self {
        Self(Box::new(AtomicPtr::new(ptr::null_mut())))
    }

    pub(super) fn as_ptr(&self) -> *mut *mut T {
        self.0.as_ptr()
    }

    pub(super) fn get(&self) -> *mut T {
        self.0.load(Acquire)
    }
}

// SAFETY: a communicator may be used by any thread, by one at a time: calls are made through
// `Communicator`, which is borrowed exclusively, except for the end, which waits until no call uses
// it, and the queries of its state.
unsafe impl Send for Shared {}
// SAFETY: calls through a shared reference are ordered by `in_use`, or query the state, which NCCL
// allows from any thread.
unsafe impl Sync for Shared {}

impl Shared {
    /// Owns a communicator that a call has created, or is creating.
    pub(super) fn created(
        output: Output,
        library: &Nccl,
        context: &Context,
        membership: Membership,
        timeout: Option<Duration>,
    ) -> Result<Arc<Self>> {
        let shared = Self::with_output(
            output.get(),
            library,
            context,
            membership,
            timeout,
            Ownership::Owned,
            Some(output),
        );
        if let Some(timeout) = timeout.filter(|timeout| *timeout < Duration::MAX) {
            let watch = Watch::start(&shared, Arc::clone(&shared.outstanding), timeout);
            let watch = watch.inspect_err(|_| shared.fail())?;
            shared.watch.get_or_init(|| watch);
        }
        Ok(shared)
    }

    /// Uses a communicator whose calls have no timeout.
    pub(crate) fn new(
        raw: ncclComm_t,
        library: &Nccl,
        context: &Context,
        membership: Membership,
        ownership: Ownership,
    ) -> Arc<Self> {
        Self::with_output(raw, library, context, membership, None, ownership, None)
    }

    fn with_output(
        raw: ncclComm_t,
        library: &Nccl,
        context: &Context,
        membership: Membership,
        timeout: Option<Duration>,
        ownership: Ownership,
        output: Option<Output>,
    ) -> Arc<Self> {
        Arc::new(Self {
            raw,
            library: library.clone(),
            context: context.clone(),
            membership,
            timeout,
            ownership,
            has_failed: AtomicBool::new(false),
            expired: Mutex::default(),
            outstanding: Arc::default(),
            watch: OnceLock::new(),
            is_captured: AtomicBool::new(false),
            aborting: Mutex::default(),
            stage: AtomicU8::new(LIVE),
            user: AtomicUsize::new(0),
            in_use: Mutex::default(),
            registrations: Mutex::default(),
            _output: output,
        })
    }

    pub(crate) fn api(&self) -> &Api {
        self.library.api()
    }

    pub(crate) fn is_owned(&self) -> bool {
        self.ownership == Ownership::Owned
    }

    /// Returns the state of asynchronous operations: success, in progress or an error.
    fn asynchronous(&self) -> Result<ncclResult_t> {
        let mut code = ncclResult_t::ncclSuccess;
        // SAFETY: the communicator is live, because the caller uses it or ends it, and `code` is
        // valid for writes.
        unsafe { call!(self.api(), ncclCommGetAsyncError(self.raw, &raw mut code)) }?;
        Ok(code)
    }

    /// Records that a graph has operations of the communicator.
    pub(super) fn set_captured(&self) {
        self.is_captured.store(true, Release);
    }

    /// Finishes the operations, and destroys the communicator. Does nothing if it has ended.
    pub(crate) fn destroy(&self) -> Result<()> {
        let is_finalized = self.stage.load(Acquire) == FINALIZED;
        if !self.is_owned() || !self.end() {
            return Ok(());
        }
        if self.has_failed.load(Relaxed) || thread::panicking() {
            return self.abort_unused();
        }
        if let Err(error) = self.finalize_within_timeout(is_finalized) {
            self.abort_unused()?;
            return Err(error);
        }
        // SAFETY: the communicator is live, ended only here, and unused.
        entered(&self.context, || unsafe {
            call!(self.api(), ncclCommDestroy(self.raw))
        })
    }

    /// Finalizes a non-blocking communicator, whose destruction does not wait.
    fn finalize_within_timeout(&self, is_finalized: bool) -> Result<()> {
        if self.timeout.is_none() {
            return Ok(());
        }
        if !is_finalized {
            self.start_finalizing()?;
        }
        self.settle("Communicator::close")
    }

    /// Starts to finish the operations. The caller uses the communicator, or ends it.
    pub(super) fn start_finalizing(&self) -> Result<()> {
        // SAFETY: the communicator is live, and used by this thread alone.
        entered(&self.context, || unsafe {
            call!(self.api(), ncclCommFinalize(self.raw))
        })
    }

    /// Waits until a stream has completed its work, a call has failed, or the time limit has
    /// passed.
    ///
    /// The caller uses the communicator.
    pub(super) fn wait(&self, operation: &'static str, stream: &Stream) -> Result<()> {
        let start = Instant::now();
        let mut pause = Duration::from_micros(5);
        while !stream.is_finished()? {
            self.check_not_expired(operation)?;
            self.is_settled()?;
            let waited = start.elapsed();
            if self.timeout.is_some_and(|timeout| waited > timeout) {
                self.fail();
                let outstanding = self.outstanding().first()?;
                return Err(self.timed_out(operation, outstanding, waited));
            }
            thread::sleep(pause);
            pause = (2 * pause).min(MAX_PAUSE);
        }
        Ok(())
    }

    /// Aborts the communicator if an operation timed out or another rank failed. If
    /// [`Shared::abort`] may not, the next call that waits aborts it.
    #[inline]
    pub(crate) fn ended_by_timeout<T>(&self, result: Result<T>) -> Result<T> {
        if matches!(result, Err(Error::Timeout(_))) || self.has_failed() {
            self.abort()?;
        }
        result
    }

    /// Enqueues an operation, and waits until the call has completed, which a non-blocking one does
    /// later.
    ///
    /// # Safety
    ///
    /// As for [`Form::call`]; the caller uses the communicator.
    #[inline(always)]
    pub(super) unsafe fn call(&self, name: &'static str, form: Form, call: Call<'_>) -> Result<()> {
        // SAFETY: as the caller guarantees.
        let created = unsafe { form.call(call) }?;
        if created.is_none() {
            return self.settle(name);
        }
        // A non-blocking call uses the operator until it has completed.
        let settled = self.settle(name);
        // SAFETY: the call with the operator has completed or failed.
        settled.and(unsafe { created.destroy(call.api, call.communicator) })
    }

    /// Waits until a call has completed on a non-blocking communicator.
    ///
    /// The caller uses the communicator, or ends it.
    #[inline]
    pub(crate) fn settle(&self, operation: &'static str) -> Result<()> {
        match self.timeout {
            None => Ok(()),
            Some(timeout) => self.settle_within(timeout, operation),
        }
    }

    #[cold]
    fn settle_within(&self, timeout: Duration, operation: &'static str) -> Result<()> {
        let start = Instant::now();
        let mut pause = Duration::from_micros(1);
        loop {
            match self.asynchronous()? {
                ncclResult_t::ncclSuccess => return Ok(()),
                ncclResult_t::ncclInProgress if start.elapsed() < timeout => {
                    self.check_not_expired(operation)?;
                }
                ncclResult_t::ncclInProgress => {
                    self.fail();
                    return Err(self.timed_out(operation, operation.into(), start.elapsed()));
                }
                code => {
                    self.fail();
                    return Err(failed(self.api(), operation, code));
                }
            }
            thread::sleep(pause);
            pause = (2 * pause).min(MAX_PAUSE);
        }
    }

    /// Returns `true` if no call is in progress.
    fn is_settled(&self) -> Result<bool> {
        match self.asynchronous()? {
            ncclResult_t::ncclSuccess => Ok(true),
            ncclResult_t::ncclInProgress => Ok(false),
            code => {
                self.fail();
                Err(failed(self.api(), "ncclCommGetAsyncError", code))
            }
        }
    }

    /// Returns `true` if no call is in progress. Returns an error if one still is when the time
    /// limit since `start` has passed.
    pub(super) fn is_settled_since(&self, start: Instant, operation: &'static str) -> Result<bool> {
        let is_settled = self.is_settled()?;
        let waited = start.elapsed();
        if !is_settled && self.timeout.is_some_and(|timeout| waited > timeout) {
            return Err(self.timed_out(operation, operation.into(), waited));
        }
        Ok(is_settled)
    }

    /// Records an operation that was enqueued on a stream, for waits with a time limit.
    #[cold]
    pub(crate) fn record(&self, stream: &Stream, operation: Description) -> Result<()> {
        self.outstanding.lock().add(stream, operation)
    }

    pub(crate) fn outstanding(&self) -> MutexGuard<'_, Outstanding> {
        self.outstanding.lock()
    }

    /// Returns `true` if an operation has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Relaxed)
    }

    /// Clears the recorded failure.
    pub(crate) fn recover(&self) {
        self.has_failed.store(false, Relaxed);
    }

    pub(crate) fn fail(&self) {
        self.has_failed.store(true, Relaxed);
    }

    pub(crate) fn timed_out(
        &self,
        operation: &'static str,
        outstanding: Box<str>,
        waited: Duration,
    ) -> Error {
        let Membership { rank, size } = self.membership;
        // One error is enough.
        *self.expired.lock() = None;
        // Another thread may hold the lock in a call of the driver that does not return.
        let recent = self.outstanding.try_lock();
        let recent = recent.map_or_else(Box::default, |outstanding| outstanding.recent());
        Error::Timeout(Box::new(TimeoutError {
            operation,
            outstanding,
            recent,
            rank,
            size,
            waited,
        }))
    }

    /// Returns `true` if a call of this thread uses the communicator: the thread is in a group, or
    /// runs a call observer.
    pub(crate) fn is_in_use_here(&self) -> bool {
        self.user.load(Relaxed) == group::thread_identity()
    }

    /// Marks the communicator as ended, and waits until no call uses it. Returns `false` if it has
    /// ended before.
    ///
    /// The caller is not in a call that uses it.
    pub(super) fn end(&self) -> bool {
        let ends = self.stage.swap(ENDED, AcqRel) != ENDED;
        if ends {
            drop(self.in_use.lock());
        }
        ends
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.stage.load(Acquire) == ENDED
    }

    /// Marks the communicator as finalized: it can only be destroyed or aborted.
    pub(super) fn set_finalized(&self) {
        // A communicator that another thread has ended stays ended.
        let _ = self
            .stage
            .compare_exchange(LIVE, FINALIZED, AcqRel, Relaxed);
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        dropping(|| {
            drop(self.watch.take());
            report_failed_end(self.destroy());
            let aborting = self.aborting.get_mut().take();
            // No graph uses the communicator, so the thread terminates. It does not panic.
            let _ = aborting.map(JoinHandle::join);
        });
    }
}

/// Reports that a communicator could not be destroyed or aborted.
pub(super) fn report_failed_end(result: Result<()>) {
    release_handle("Communicator::drop", || result);
}

/// The owner of a communicator.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Ownership {
    /// It is destroyed with the last reference.
    Owned,
    /// Other code destroys it.
    Borrowed,
}

/// Calls the library with the communicator's context current.
#[inline(always)]
pub(crate) fn entered<T>(context: &Context, operation: impl FnOnce() -> Result<T>) -> Result<T> {
    let _entered = context.enter()?;
    operation()
}
