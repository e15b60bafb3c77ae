//! Host functions in stream order.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use curium_sys::CUhostTaskSyncMode;
use parking_lot::Mutex;

use crate::base::contain::{TaskWaker, contain};
use crate::base::error::PanicError;
use crate::base::fork;
use crate::completion::timeout::{Subject, Timeout};
use crate::completion::watch::{self, Pace, Waiter};
use crate::{Error, Event, PooledEvent, Result, Stream, emit_event};

/// A future that resolves to the result of a [host function](Stream::launch_host_function). Any
/// executor can poll it.
///
/// Dropping it does not cancel the function; its result is then dropped.
#[must_use = "a panic or an error of the function is returned when this is awaited"]
pub struct HostFunction<T> {
    job: Arc<Job<T>>,
}

/// The way the driver's thread waits to run a [host function](Stream::launch_host_function_with).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum HostFunctionWait {
    /// It blocks.
    Block,
    /// It spins, which has lower latency and keeps a CPU core busy.
    Spin,
}

struct Job<T> {
    /// Recorded before the function, to detect that the context has failed.
    event: PooledEvent,
    state: Mutex<State<T>>,
}

struct State<T> {
    stage: Stage<T>,
    waker: Option<TaskWaker>,
}

enum Stage<T> {
    Queued(Box<dyn FnOnce() -> T + Send>),
    Running,
    /// The result, until it is taken.
    Ended(Option<Result<T>>),
}

impl Stream {
    /// Enqueues a host function. It runs after all work currently enqueued, and later work on the
    /// stream waits for it.
    ///
    /// The function runs on a driver thread that serves other host functions too, so it should be
    /// short. **It must not use this crate, nor own objects of this crate that it would drop:**
    /// every driver call in it fails, and a wait never returns. An object that is dropped there is
    /// leaked, and the failure is reported; an executable graph is destroyed on another thread. To
    /// continue on the device afterwards, `await` the result, or send a message to a thread of your
    /// own.
    ///
    /// If the context fails first, the function never runs: it is dropped, and the future resolves
    /// to the error of the context. A panic of the function is caught, reported to `tracing`, and
    /// returned as an error.
    ///
    /// ```
    /// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
    /// let stream = driver.device(0)?.primary_context()?.stream()?;
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// // … work …
    /// let _running = stream.launch_host_function(move || sender.send("the work is done"))?;
    /// assert_eq!(receiver.recv()?, "the work is done");
    /// # stream.synchronize()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// CUDA: `cuLaunchHostFunc`.
    ///
    /// # Errors
    ///
    /// An argument error if the stream is being captured, since a graph could run the function more
    /// than once; use `CaptureScope::add_host` for functions that allow it. The function is then
    /// dropped.
    #[doc(alias = "cuLaunchHostFunc")]
    #[doc(alias = "cudaLaunchHostFunc")]
    #[doc(alias = "cuStreamAddCallback")]
    #[doc(alias = "cudaStreamAddCallback")]
    pub fn launch_host_function<T, F>(&self, function: F) -> Result<HostFunction<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.launch_host_function_as("Stream::launch_host_function", function, None)
    }

    /// Enqueues a host function like [`Stream::launch_host_function`], and selects how the driver's
    /// thread waits to run it.
    ///
    /// Requires CUDA 13.1. CUDA: `cuLaunchHostFunc_v2`.
    ///
    /// # Errors
    ///
    /// As for [`Stream::launch_host_function`].
    pub fn launch_host_function_with<T, F>(
        &self,
        wait: HostFunctionWait,
        function: F,
    ) -> Result<HostFunction<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.launch_host_function_as("Stream::launch_host_function_with", function, Some(wait))
    }

    fn launch_host_function_as<T, F>(
        &self,
        operation: &'static str,
        function: F,
        wait: Option<HostFunctionWait>,
    ) -> Result<HostFunction<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let enqueued = self.enqueue_now(
            operation,
            "`CaptureScope::add_host` adds a function to the graph",
        )?;
        let event = self.pooled_event()?;
        event.record(self)?;
        let state = State {
            stage: Stage::Queued(Box::new(function)),
            waker: None,
        };
        let job = Arc::new(Job {
            event,
            state: Mutex::new(state),
        });
        let waiter: Arc<dyn Waiter> = Arc::<Job<T>>::clone(&job);
        let identity = watch::add(operation, waiter, Pace::Called)?;
        if let Err(error) =
            watch::call_after(&enqueued, identity, wait.map(HostFunctionWait::as_raw))
        {
            watch::remove(identity);
            return Err(error);
        }
        Ok(HostFunction { job })
    }
}

impl<T> HostFunction<T> {
    /// Returns a future that resolves like this one, or to [`Error::Timeout`] once `limit` has
    /// passed from this call. The function still runs.
    pub fn timeout(self, limit: Duration) -> Timeout<Self> {
        Timeout::new(self, limit)
    }
}

impl<T> Subject for HostFunction<T> {
    fn operation(&self) -> &'static str {
        "Stream::launch_host_function"
    }

    fn subject(&self) -> String {
        format!("{self:?}")
    }
}

impl HostFunctionWait {
    const fn as_raw(self) -> CUhostTaskSyncMode {
        match self {
            Self::Block => CUhostTaskSyncMode::CU_HOST_TASK_BLOCKING,
            Self::Spin => CUhostTaskSyncMode::CU_HOST_TASK_SPINWAIT,
        }
    }
}

impl<T> Job<T> {
    fn poll(&self, context: &Context<'_>) -> Poll<Result<T>> {
        if fork::is_child() {
            // The driver's threads do not exist in this process. The query is refused.
            let refused = self.event.is_finished().err();
            return refused.map_or(Poll::Pending, |error| Poll::Ready(Err(error)));
        }
        // Cloning a waker may run user code, so no lock is held.
        let waker = TaskWaker::new(context.waker().clone());
        let mut state = self.state.lock();
        if let Stage::Ended(result) = &mut state.stage {
            let result = result.take().unwrap_or_else(|| {
                Err(Error::argument(
                    "HostFunction::poll",
                    "polled after completion",
                ))
            });
            return Poll::Ready(result);
        }
        let replaced = state.waker.replace(waker);
        drop(state);
        // Dropping a waker may run user code.
        drop(replaced);
        Poll::Pending
    }

    /// Sets the error in place of the result, unless the function runs or has run.
    fn abandon(&self, error: Error) {
        let mut state = self.state.lock();
        if matches!(state.stage, Stage::Queued(_)) {
            let function = std::mem::replace(&mut state.stage, Stage::Ended(Some(Err(error))));
            drop(state);
            // A destructor of a captured value may panic; the task is woken nevertheless.
            contain(move || drop(function));
        }
    }
}

impl<T: Send> Waiter for Job<T> {
    fn event(&self) -> &Event {
        &self.event
    }

    fn called(&self) {
        let mut state = self.state.lock();
        if !matches!(state.stage, Stage::Queued(_)) {
            return;
        }
        let Stage::Queued(function) = std::mem::replace(&mut state.stage, Stage::Running) else {
            return;
        };
        drop(state);
        let result = catch_unwind(AssertUnwindSafe(function)).map_err(panicked);
        self.state.lock().stage = Stage::Ended(Some(result));
    }

    fn queried(&self, answer: Result<bool>) -> bool {
        if let Err(error) = answer {
            self.abandon(error);
        }
        let mut state = self.state.lock();
        if !matches!(state.stage, Stage::Ended(_)) {
            return false;
        }
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }
}

impl<T> Future for HostFunction<T> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        self.job.poll(context)
    }
}

impl<T> fmt::Debug for HostFunction<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self.job.state.lock().stage {
            Stage::Queued(_) => "queued",
            Stage::Running => "running",
            Stage::Ended(_) => "ended",
        };
        write!(formatter, "HostFunction({stage})")
    }
}

/// Reports the panic of a function and converts it to an error.
#[cold]
fn panicked(payload: Box<dyn Any + Send>) -> Error {
    let error = PanicError::new(payload);
    emit_event!(ERROR, %error);
    Error::Panic(Box::new(error))
}
