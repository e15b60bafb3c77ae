//! The communicator of NCCL, which lives until its owner and every graph that captured it are gone, or until it is aborted.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicPtr};
use std::time::{Duration, Instant};
use std::{ptr, thread};

use curium_driver::extend::{contain, dropping, report};
use curium_driver::{Context, Stream};
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::outstanding::Outstanding;
use crate::error::{Error, Result, TimeoutError};
use crate::library::{Nccl, failed};
use crate::operation::Place;
use crate::sys::{Api, ncclComm, ncclComm_t, ncclResult_t};
use curium_driver::sys::call;

/// The longest pause between queries of a communicator's state.
const MAX_PAUSE: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(crate) struct Shared {
    raw: ncclComm_t,
    pub(crate) library: Nccl,
    pub(crate) context: Context,
    pub(crate) place: Place,
    /// The time limit of waits; with one, the communicator is non-blocking.
    pub(crate) timeout: Option<Duration>,
    /// `false` for a communicator of other code, which is neither destroyed nor aborted.
    is_owned: bool,
    /// `true` if an operation has failed: the communicator is aborted instead of destroyed.
    has_failed: AtomicBool,
    /// The operations that may not have completed.
    outstanding: Mutex<Outstanding>,
    state: Mutex<State>,
    unused: Condvar,
    /// Dropped after the communicator has ended.
    _output: Option<Output>,
}

/// The place where NCCL writes a new communicator. A non-blocking call writes it again when it has completed.
#[derive(Debug)]
pub(super) struct Output(Box<AtomicPtr<ncclComm>>);

impl Output {
    pub(super) fn new() -> Self {
        Self(Box::new(AtomicPtr::new(ptr::null_mut())))
    }

    pub(super) fn as_ptr(&self) -> *mut ncclComm_t {
        self.0.as_ptr()
    }

    pub(super) fn get(&self) -> ncclComm_t {
        self.0.load(Acquire)
    }
}

#[derive(Debug, Default)]
struct State {
    /// The number of calls that use the communicator.
    users: usize,
    has_ended: bool,
}

/// A use of a communicator, which is not aborted in the meantime.
#[derive(Debug)]
pub(crate) struct Using(Arc<Shared>);

// SAFETY: a communicator may be used by any thread, by one at a time: calls are made through `Communicator`, which is borrowed exclusively,
// except for the end, which waits until no call uses it, and the queries of its state.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    /// Owns a communicator that a call has created, or is creating.
    pub(super) fn created(
        output: Output,
        library: &Nccl,
        context: &Context,
        place: Place,
        timeout: Option<Duration>,
    ) -> Arc<Self> {
        Self::with_output(output.get(), library, context, place, (timeout, true), Some(output))
    }

    /// Uses a communicator, and owns it if `is_owned`.
    pub(crate) fn new(raw: ncclComm_t, library: &Nccl, context: &Context, place: Place, is_owned: bool) -> Arc<Self> {
        Self::with_output(raw, library, context, place, (None, is_owned), None)
    }

    fn with_output(
        raw: ncclComm_t,
        library: &Nccl,
        context: &Context,
        place: Place,
        (timeout, is_owned): (Option<Duration>, bool),
        output: Option<Output>,
    ) -> Arc<Self> {
        Arc::new(Self {
            raw,
            library: library.clone(),
            context: context.clone(),
            place,
            timeout,
            is_owned,
            has_failed: AtomicBool::new(false),
            outstanding: Mutex::default(),
            state: Mutex::default(),
            unused: Condvar::new(),
            _output: output,
        })
    }

    pub(crate) fn api(&self) -> &Api {
        self.library.api()
    }

    pub(crate) fn is_owned(&self) -> bool {
        self.is_owned
    }

    /// Starts a use. Returns an error if the communicator was aborted.
    pub(crate) fn begin(self: &Arc<Self>, operation: &'static str) -> Result<Using> {
        let mut state = self.state.lock();
        if state.has_ended {
            let Place { rank, size } = self.place;
            return Err(Error::Aborted { operation, rank, size });
        }
        state.users += 1;
        Ok(Using(Arc::clone(self)))
    }

    /// Returns the state of asynchronous operations: success, in progress or an error.
    fn asynchronous(&self) -> Result<ncclResult_t> {
        let mut code = ncclResult_t::ncclSuccess;
        // SAFETY: the communicator is live, because the caller uses it or ends it, and `code` is valid for writes.
        unsafe { call!(self.api(), ncclCommGetAsyncError(self.raw, &raw mut code)) }?;
        Ok(code)
    }

    /// Aborts the communicator, once no call uses it. Kernels that wait for other ranks end. Does nothing if it has ended.
    pub(crate) fn abort(&self) -> Result<()> {
        if !self.is_owned || !self.end() {
            return Ok(());
        }
        // SAFETY: the communicator is live, ended only here, and unused.
        entered(&self.context, || unsafe { call!(self.api(), ncclCommAbort(self.raw)) })
    }

    /// Finishes the operations, and destroys the communicator. Does nothing if it has ended.
    pub(crate) fn destroy(&self) -> Result<()> {
        if !self.is_owned || !self.end() {
            return Ok(());
        }
        if self.has_failed.load(Relaxed) || thread::panicking() {
            // SAFETY: the communicator is live, ended only here, and unused.
            return entered(&self.context, || unsafe { call!(self.api(), ncclCommAbort(self.raw)) });
        }
        if let Err(error) = self.finalize_within_timeout() {
            // SAFETY: as above.
            entered(&self.context, || unsafe { call!(self.api(), ncclCommAbort(self.raw)) })?;
            return Err(error);
        }
        // SAFETY: as above.
        entered(&self.context, || unsafe { call!(self.api(), ncclCommDestroy(self.raw)) })
    }

    /// Finalizes a non-blocking communicator, whose destruction does not wait.
    fn finalize_within_timeout(&self) -> Result<()> {
        if self.timeout.is_none() {
            return Ok(());
        }
        // SAFETY: the communicator is live, and unused.
        entered(&self.context, || unsafe { call!(self.api(), ncclCommFinalize(self.raw)) })?;
        self.settle("Communicator::close")
    }

    /// Waits until a call has completed on a non-blocking communicator.
    ///
    /// The caller uses the communicator, or ends it.
    pub(crate) fn settle(&self, operation: &'static str) -> Result<()> {
        let Some(timeout) = self.timeout else { return Ok(()) };
        let (start, mut pause) = (Instant::now(), Duration::from_micros(1));
        loop {
            match self.asynchronous()? {
                ncclResult_t::ncclSuccess => return Ok(()),
                ncclResult_t::ncclInProgress if start.elapsed() < timeout => {}
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
    pub(crate) fn is_settled(&self) -> Result<bool> {
        match self.asynchronous()? {
            ncclResult_t::ncclSuccess => Ok(true),
            ncclResult_t::ncclInProgress => Ok(false),
            code => {
                self.fail();
                Err(failed(self.api(), "ncclCommGetAsyncError", code))
            }
        }
    }

    /// Records an operation that was enqueued on a stream, if waits have a time limit.
    pub(crate) fn record(&self, stream: &Stream, name: &'static str, count: usize) -> Result<()> {
        if self.timeout.is_some() { self.outstanding.lock().add(stream, name, count) } else { Ok(()) }
    }

    pub(crate) fn outstanding(&self) -> MutexGuard<'_, Outstanding> {
        self.outstanding.lock()
    }

    /// Returns `true` if an operation has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Relaxed)
    }

    /// Forgets a failure.
    pub(crate) fn recover(&self) {
        self.has_failed.store(false, Relaxed);
    }

    pub(crate) fn fail(&self) {
        self.has_failed.store(true, Relaxed);
    }

    pub(crate) fn timed_out(&self, operation: &'static str, outstanding: Box<str>, waited: Duration) -> Error {
        let Place { rank, size } = self.place;
        Error::Timeout(Box::new(TimeoutError { operation, outstanding, rank, size, waited }))
    }

    /// Marks the communicator as ended, and waits until no call uses it. Returns `false` if it has ended before.
    fn end(&self) -> bool {
        let mut state = self.state.lock();
        let ends = !std::mem::replace(&mut state.has_ended, true);
        while ends && state.users > 0 {
            self.unused.wait(&mut state);
        }
        ends
    }
}

impl Using {
    pub(crate) fn raw(&self) -> ncclComm_t {
        self.0.raw
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0
    }
}

impl Drop for Using {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.users -= 1;
        if state.users == 0 && state.has_ended {
            self.0.unused.notify_all();
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        match dropping(|| self.destroy()) {
            Some(Err(Error::Driver(error))) => report(&error),
            Some(Err(error)) => {
                contain(|| tracing::error!(%error, "a communicator could not be destroyed"));
            }
            _ => {}
        }
        self.raw = ptr::null_mut();
    }
}

/// Calls the library with the communicator's context current.
pub(crate) fn entered<T>(context: &Context, operation: impl FnOnce() -> Result<T>) -> Result<T> {
    context.entered(|_| Ok(operation()))?
}
