//! A service that computes on a device: a bounded queue, batches, and one thread that owns the
//! stream.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::task::{Context as TaskContext, Poll, Wake, Waker};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use curium::prelude::*;
use parking_lot::Mutex;

const KERNELS: &str = include_str!("../kernels/vectors.ptx");

/// The number of requests that wait for the device. More are refused, so that a client learns early
/// that the service is overloaded.
const QUEUE: usize = 256;

/// The maximum number of requests that are computed together.
const MAX_BATCH: usize = 64;

/// The time for which a batch waits for more requests.
const LINGER: Duration = Duration::from_micros(200);

/// The time limit of a batch on the device.
const BATCH_TIMEOUT: Duration = Duration::from_secs(5);

/// The number of numbers in a request.
pub(crate) const LEN: usize = 64;

/// The steps of the generator that each number goes through.
pub(crate) const STEPS: u32 = 3;

type Step = Kernel<(&'static mut [u32], u32, u32)>;
pub(crate) type Numbers = [u32; LEN];

/// The reason why a request has no result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The queue is full: the client tries again later, or sends the request elsewhere.
    Overloaded,
    /// The time limit of the request passed before it reached the device.
    Expired,
    /// The service has been shut down.
    Closed,
    /// The computation failed.
    Device(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Overloaded => "the queue is full; try again later",
            Self::Expired => "the time limit passed before the request reached the device",
            Self::Closed => "the service has been shut down",
            Self::Device(message) => message,
        })
    }
}

impl Error for Failure {}

/// The service. Requests can be sent from any thread; a drop computes the requests in the queue and
/// ends the thread.
pub(crate) struct Service {
    queue: Option<SyncSender<Request>>,
    worker: Option<JoinHandle<()>>,
}

struct Request {
    numbers: Numbers,
    deadline: Instant,
    reply: Reply,
}

/// The place for the result of a request. Dropping the [`Response`] cancels the request.
#[derive(Clone)]
struct Reply(Arc<Mutex<State>>);

struct State {
    result: Option<Result<Numbers, Failure>>,
    waker: Option<Waker>,
    is_answered: bool,
    is_canceled: bool,
}

/// The future result of a request, for any executor.
pub(crate) struct Response(Reply);

impl Service {
    /// Starts the service on a device.
    pub(crate) fn start(context: &Context) -> curium::driver::Result<Self> {
        Self::with_batch_timeout(context, BATCH_TIMEOUT)
    }

    /// Starts the service with another time limit of batches.
    pub(crate) fn with_batch_timeout(
        context: &Context,
        batch_timeout: Duration,
    ) -> curium::driver::Result<Self> {
        let worker = Worker {
            stream: context.stream()?,
            step: Library::from_ptx(context.driver(), KERNELS)?.kernel("step")?,
            batch_timeout,
        };
        let (queue, requests) = sync_channel(QUEUE);
        Ok(Self {
            queue: Some(queue),
            worker: Some(thread::spawn(move || worker.run(&requests))),
        })
    }

    /// Sends a request, which expires if it has not reached the device within `limit`.
    pub(crate) fn request(&self, numbers: Numbers, limit: Duration) -> Result<Response, Failure> {
        let reply = Reply(Arc::new(Mutex::new(State {
            result: None,
            waker: None,
            is_answered: false,
            is_canceled: false,
        })));
        let request = Request {
            numbers,
            deadline: Instant::now() + limit,
            reply: reply.clone(),
        };
        let Some(queue) = &self.queue else {
            return Err(Failure::Closed);
        };
        match queue.try_send(request) {
            Ok(()) => Ok(Response(reply)),
            Err(TrySendError::Full(_)) => Err(Failure::Overloaded),
            Err(TrySendError::Disconnected(_)) => Err(Failure::Closed),
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // The worker ends when the queue has no sender and no request.
        drop(self.queue.take());
        if let Some(worker) = self.worker.take() {
            // A worker that panicked has dropped its requests, whose responses return `Closed`.
            let _ = worker.join();
        }
    }
}

/// The owner of the stream.
struct Worker {
    stream: Stream,
    step: Step,
    batch_timeout: Duration,
}

impl Worker {
    fn run(&self, requests: &Receiver<Request>) {
        while let Ok(first) = requests.recv() {
            let mut batch = vec![first];
            let end = Instant::now() + LINGER;
            while batch.len() < MAX_BATCH
                && let Ok(next) =
                    requests.recv_timeout(end.saturating_duration_since(Instant::now()))
            {
                batch.push(next);
            }
            self.serve(batch);
        }
    }

    /// Computes the requests that somebody still waits for, and replies.
    fn serve(&self, batch: Vec<Request>) {
        let now = Instant::now();
        let mut wanted = Vec::new();
        for request in batch {
            if request.deadline < now {
                request.reply.send(Err(Failure::Expired));
            } else if !request.reply.is_canceled() {
                wanted.push(request);
            }
        }
        self.compute(wanted);
    }

    /// Computes a batch. If memory does not suffice, the halves are computed one after the other.
    fn compute(&self, mut batch: Vec<Request>) {
        if batch.is_empty() {
            return;
        }
        match self.launch(&batch) {
            Ok(results) => {
                for (request, numbers) in batch.iter().zip(results) {
                    request.reply.send(Ok(numbers));
                }
            }
            Err(error) if error.is_out_of_memory() && batch.len() > 1 => {
                let second = batch.split_off(batch.len() / 2);
                self.compute(batch);
                self.compute(second);
            }
            Err(error) => {
                for request in &batch {
                    request.reply.send(Err(Failure::Device(error.to_string())));
                }
            }
        }
    }

    fn launch(&self, batch: &[Request]) -> curium::driver::Result<Vec<Numbers>> {
        let numbers: Vec<u32> = batch.iter().flat_map(|request| request.numbers).collect();
        let mut data = DeviceBuffer::from_slice(&self.stream, &numbers)?;
        let len = data.len() as u32;
        // SAFETY: `step` writes the first `len` elements, which `data` has.
        unsafe {
            self.step.launch(
                &self.stream,
                LaunchConfig::for_elements(data.len()),
                (&mut data, len, STEPS),
            )
        }?;
        // A device that does not answer ends this batch with an error, and not the service.
        block_on(self.stream.completion().timeout(self.batch_timeout))?;
        let results = data.to_vec()?;
        let (results, _) = results.as_chunks();
        Ok(results.to_vec())
    }
}

impl Reply {
    #[expect(
        clippy::disallowed_methods,
        reason = "the executor of the program is trusted not to panic"
    )]
    fn send(&self, result: Result<Numbers, Failure>) {
        let waker = {
            let mut state = self.0.lock();
            if state.is_answered {
                return;
            }
            state.is_answered = true;
            state.result = Some(result);
            state.waker.take()
        };
        // The waker is code of the executor, which is called without the lock.
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn is_canceled(&self) -> bool {
        self.0.lock().is_canceled
    }
}

impl Drop for Request {
    /// Replies to a request that was dropped without a result, because the worker has ended.
    fn drop(&mut self) {
        self.reply.send(Err(Failure::Closed));
    }
}

impl Future for Response {
    type Output = Result<Numbers, Failure>;

    fn poll(self: std::pin::Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let mut state = self.0.0.lock();
        if let Some(result) = state.result.take() {
            return Poll::Ready(result);
        }
        state.waker = Some(task.waker().clone());
        Poll::Pending
    }
}

impl Drop for Response {
    fn drop(&mut self) {
        self.0.0.lock().is_canceled = true;
    }
}

/// Wakes a thread that waits in [`block_on`].
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future without an executor.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut task = TaskContext::from_waker(&waker);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut task) {
            return value;
        }
        thread::park();
    }
}

/// Returns the result that a request must have.
pub(crate) fn expected(numbers: Numbers) -> Numbers {
    numbers.map(|number| {
        (0..STEPS).fold(number, |value, _| {
            value.wrapping_mul(1_664_525).wrapping_add(1_013_904_223)
        })
    })
}
