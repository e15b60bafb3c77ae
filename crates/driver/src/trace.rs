//! A timeline of driver calls and device work, for `chrome://tracing`, Perfetto and similar viewers.
//!
//! Host calls come from the call hook. Work of a device is measured by a pair of events around it, and placed on the host's clock
//! by an event whose time both clocks know (see [`clock`]).

mod clock;
mod file;
mod json;

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use curium_sys::{CUresult, Function};
use parking_lot::Mutex;

use self::clock::Clock;
pub(crate) use self::file::begin_from_environment;
use crate::base::capture_guard::NOT_WHILE_CAPTURING;
use crate::{Call, CallObserver, CallObserverGuard, PooledEvent, Result, Stream, observe_calls};

/// Records the calls of the driver, and the work of streams that is put into [`Trace::on_stream`], until it is written.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// use curium_driver::Trace;
///
/// let stream = driver.device(0)?.primary_context()?.stream()?;
/// let trace = Trace::start();
/// trace.on_stream(&stream, "step", || {
///     // … work on `stream` …
///     Ok(())
/// })?;
/// let mut json = Vec::new();
/// trace.write(&mut json)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Without a line of code, a program whose environment names a file in `CURIUM_TRACE` appends its calls to that file from its first driver
/// on; `curium trace` runs programs so. Programs that run with more rights than their caller do not.
#[must_use = "the trace ends when it is dropped"]
pub struct Trace {
    recorder: Arc<Recorder>,
    _guard: CallObserverGuard,
}

/// The recorded calls and work.
struct Recorder {
    begin: Instant,
    /// The maximum number of recorded calls, and of recorded pieces of work.
    capacity: usize,
    calls: Mutex<Calls>,
    work: Mutex<Work>,
}

#[derive(Default)]
struct Calls {
    records: Vec<CallRecord>,
    /// The names of the threads that made calls, by their number.
    threads: Vec<(u64, String)>,
    dropped: u64,
}

#[derive(Default)]
struct Work {
    clock: Clock,
    /// Work that may not be done yet, in the order in which it was enqueued.
    pending: Vec<PendingWork>,
    records: Vec<WorkRecord>,
    /// Work whose time is not known, mostly since its context has failed.
    lost: u64,
    dropped: u64,
}

struct CallRecord {
    function: Function,
    code: CUresult,
    thread: u64,
    started: Duration,
    duration: Duration,
}

struct PendingWork {
    name: Cow<'static, str>,
    stream: Stream,
    /// Index of the point in the clock that the times count from.
    origin: usize,
    begin: PooledEvent,
    end: PooledEvent,
}

struct WorkRecord {
    name: Cow<'static, str>,
    device: i32,
    stream: u64,
    started: Duration,
    duration: Duration,
}

/// The default capacity: some hundred megabytes.
const DEFAULT_CAPACITY: usize = 1 << 20;

/// The number of pending pieces of work that triggers a check for completed ones.
const PENDING: usize = 256;

thread_local! {
    static THREAD: Cell<u64> = const { Cell::new(0) };
}

static LAST_THREAD: AtomicU64 = AtomicU64::new(0);

impl Trace {
    /// Begins a trace of all calls of the process. It keeps the first million of them, and the first million pieces of work.
    #[inline]
    pub fn start() -> Self {
        Self::with_capacity(DEFAULT_CAPACITY)
    }

    /// Does the same as [`Trace::start`], keeping at most `capacity` calls and as many pieces of work.
    #[inline]
    pub fn with_capacity(capacity: usize) -> Self {
        let recorder =
            Arc::new(Recorder { begin: Instant::now(), capacity, calls: Mutex::default(), work: Mutex::default() });
        let guard = observe_calls(RecordCalls(Arc::clone(&recorder)));
        Self { recorder, _guard: guard }
    }

    /// Records the work that `enqueue` puts on `stream`, under this name. The host does not block.
    ///
    /// The first use of a context, and one every ten seconds, waits some microseconds for an idle stream, to compare the clocks.
    ///
    /// CUDA: `cuEventRecord`.
    ///
    /// # Errors
    ///
    /// Those of `enqueue`; an argument error if the stream is being captured.
    #[inline]
    pub fn on_stream<T>(
        &self,
        stream: &Stream,
        name: impl Into<Cow<'static, str>>,
        enqueue: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        stream.refuse_capture("Trace::on_stream", NOT_WHILE_CAPTURING)?;
        let (origin, begin, end) = self.recorder.work.lock().clock.events(stream.context())?;
        begin.record(stream)?;
        let value = enqueue()?;
        end.record(stream)?;
        self.recorder.add_work(PendingWork { name: name.into(), stream: stream.clone(), origin, begin, end });
        Ok(value)
    }

    /// Ends the trace and writes it as JSON in the trace event format. Waits for the work that was recorded.
    ///
    /// What is missing is part of the trace: the fields `calls_dropped` and `work_dropped` count what did not fit, and `work_lost` work
    /// whose context has failed.
    ///
    /// # Errors
    ///
    /// Those of `writer`.
    #[inline]
    pub fn write(self, mut writer: impl io::Write) -> io::Result<()> {
        let Self { recorder, _guard } = self;
        drop(_guard);
        let mut work = recorder.work.lock();
        work.measure(recorder.begin, recorder.capacity, usize::MAX);
        json::write(&mut writer, &recorder.calls.lock(), &work)
    }
}

impl Recorder {
    #[inline]
    fn add_work(&self, pending: PendingWork) {
        let mut work = self.work.lock();
        work.pending.push(pending);
        if work.pending.len() >= PENDING {
            let done = work.pending.iter().take_while(|pending| pending.is_done()).count();
            work.measure(self.begin, self.capacity, done);
        }
    }

    #[inline]
    fn add_call(&self, call: &Call<'_>) {
        let thread = this_thread();
        let started = call.started.saturating_duration_since(self.begin);
        let mut calls = self.calls.lock();
        if calls.records.len() >= self.capacity {
            calls.dropped += 1;
            return;
        }
        if !calls.threads.iter().any(|(number, _)| *number == thread) {
            let name = thread::current().name().unwrap_or("thread").to_owned();
            calls.threads.push((thread, name));
        }
        let Call { function, code, duration, .. } = *call;
        calls.records.push(CallRecord { function, code, thread, started, duration });
    }
}

/// The observer of a trace.
struct RecordCalls(Arc<Recorder>);

impl CallObserver for RecordCalls {
    #[inline]
    fn after(&self, call: &Call<'_>) {
        self.0.add_call(call);
    }
}

impl PendingWork {
    /// Returns `true` if the end was reached, or will never be.
    #[inline]
    fn is_done(&self) -> bool {
        self.end.is_finished().unwrap_or(true)
    }

    #[inline]
    fn measure(&self, clock: &Clock, trace_begin: Instant) -> Result<WorkRecord> {
        self.end.synchronize()?;
        let (begin, end) = (clock.time(self.origin, &self.begin)?, clock.time(self.origin, &self.end)?);
        let started = begin.saturating_duration_since(trace_begin);
        let device = self.stream.device().as_raw();
        let name = self.name.clone();
        let duration = end.saturating_duration_since(begin);
        Ok(WorkRecord { name, device, stream: self.stream.identity(), started, duration })
    }
}

impl Work {
    /// Asks for the times of the first `count` pieces of work.
    #[inline]
    fn measure(&mut self, trace_begin: Instant, capacity: usize, count: usize) {
        let count = count.min(self.pending.len());
        for pending in self.pending.drain(..count) {
            match pending.measure(&self.clock, trace_begin) {
                Ok(_) if self.records.len() >= capacity => self.dropped += 1,
                Ok(record) => self.records.push(record),
                Err(_) => self.lost += 1,
            }
        }
    }
}

impl fmt::Debug for Trace {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Trace({} calls)", self.recorder.calls.lock().records.len())
    }
}

/// Returns a number for the calling thread that no other thread has.
#[inline]
fn this_thread() -> u64 {
    if THREAD.get() == 0 {
        THREAD.set(LAST_THREAD.fetch_add(1, Ordering::Relaxed) + 1);
    }
    THREAD.get()
}
