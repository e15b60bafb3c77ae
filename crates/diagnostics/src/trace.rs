//! A timeline of driver calls and device work, for `chrome://tracing`, Perfetto and similar viewers.
//!
//! Host calls are observed with the call hook. Device work is measured with a pair of events, and placed on the host's
//! clock with an event whose time is known on both clocks (see [`clock`]).

mod clock;
mod json;

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use curium_driver::extend::{NOT_WHILE_CAPTURING, thread_number};
use curium_driver::sys::CUresult;
use curium_driver::{
    Call, CallObserver, CallObserverGuard, Function, PooledEvent, Result, Stream, observe_calls,
};
use parking_lot::Mutex;

use self::clock::Clock;

/// Records driver calls, and the device work enqueued in [`Trace::on_stream`], until it is written.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// use curium_diagnostics::Trace;
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
/// The environment variable `CURIUM_TRACE` traces an unmodified program: its driver calls are appended to the named
/// file, starting with its first driver. `curium trace` runs programs in this way. The variable is ignored in processes
/// with elevated privileges.
#[must_use = "the trace ends when it is dropped"]
pub struct Trace {
    recorder: Arc<Recorder>,
    _guard: CallObserverGuard,
}

/// The recorded calls and work.
struct Recorder {
    begin: Instant,
    /// The maximum number of recorded calls, and of recorded work items.
    capacity: usize,
    calls: Mutex<Calls>,
    work: Mutex<Work>,
}

#[derive(Default)]
struct Calls {
    records: Vec<CallRecord>,
    /// The names of the threads that made calls, by thread number.
    threads: Vec<(u64, String)>,
    dropped: u64,
}

#[derive(Default)]
struct Work {
    clock: Clock,
    /// Work items that may not have completed, in the order in which they were enqueued.
    pending: Vec<PendingWork>,
    records: Vec<WorkRecord>,
    /// The number of work items whose time is unknown, usually because their context has failed.
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
    /// The index of the clock point that the times are relative to.
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

/// The default capacity, which requires some hundred megabytes.
const DEFAULT_CAPACITY: usize = 1 << 20;

/// The number of pending work items that triggers a check for completed ones.
const PENDING: usize = 256;

impl Trace {
    /// Starts a trace of all driver calls of the process. It keeps the first million calls and the first million work
    /// items.
    pub fn start() -> Self {
        Self::with_capacity(DEFAULT_CAPACITY)
    }

    /// Starts a trace like [`Trace::start`] that keeps at most `capacity` calls and `capacity` work items.
    pub fn with_capacity(capacity: usize) -> Self {
        let recorder = Arc::new(Recorder {
            begin: Instant::now(),
            capacity,
            calls: Mutex::default(),
            work: Mutex::default(),
        });
        let guard = observe_calls(RecordCalls(Arc::clone(&recorder)));
        Self {
            recorder,
            _guard: guard,
        }
    }

    /// Records the work that `enqueue` enqueues on `stream` as a work item with this name. The host does not block.
    ///
    /// The first use of a context, and one every ten seconds, waits a few microseconds for an idle stream to compare
    /// the clocks.
    ///
    /// CUDA: `cuEventRecord`.
    ///
    /// # Errors
    ///
    /// The error of `enqueue`; an argument error if the stream is being captured.
    pub fn on_stream<T>(
        &self,
        stream: &Stream,
        name: impl Into<Cow<'static, str>>,
        enqueue: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        stream.check_enqueue_now("Trace::on_stream", NOT_WHILE_CAPTURING)?;
        let (origin, begin, end) = self.recorder.work.lock().clock.events(stream.context())?;
        begin.record(stream)?;
        let value = enqueue()?;
        end.record(stream)?;
        self.recorder.add_work(PendingWork {
            name: name.into(),
            stream: stream.clone(),
            origin,
            begin,
            end,
        });
        Ok(value)
    }

    /// Ends the trace and writes it as JSON in the trace event format. Waits for the recorded work.
    ///
    /// The trace reports what is missing: the fields `calls_dropped` and `work_dropped` count records beyond the
    /// capacity, and `work_lost` counts work items whose context has failed.
    ///
    /// # Errors
    ///
    /// An error of `writer`.
    pub fn write(self, mut writer: impl io::Write) -> io::Result<()> {
        let Self { recorder, _guard } = self;
        drop(_guard);
        let mut work = recorder.work.lock();
        work.measure(recorder.begin, recorder.capacity, usize::MAX);
        json::write(&mut writer, &recorder.calls.lock(), &work)
    }
}

impl Recorder {
    fn add_work(&self, pending: PendingWork) {
        let mut work = self.work.lock();
        work.pending.push(pending);
        if work.pending.len() >= PENDING {
            let done = work
                .pending
                .iter()
                .take_while(|pending| pending.is_done())
                .count();
            work.measure(self.begin, self.capacity, done);
        }
    }

    fn add_call(&self, call: &Call<'_>) {
        let thread = thread_number();
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
        let Call {
            function,
            code,
            duration,
            ..
        } = *call;
        calls.records.push(CallRecord {
            function,
            code,
            thread,
            started,
            duration,
        });
    }
}

/// The observer of a trace.
struct RecordCalls(Arc<Recorder>);

impl CallObserver for RecordCalls {
    fn after(&self, call: &Call<'_>) {
        self.0.add_call(call);
    }
}

impl PendingWork {
    /// Returns `true` if the end event has completed, or never will.
    fn is_done(&self) -> bool {
        self.end.is_finished().unwrap_or(true)
    }

    fn measure(&self, clock: &Clock, trace_begin: Instant) -> Result<WorkRecord> {
        self.end.synchronize()?;
        let begin = clock.time(self.origin, &self.begin)?;
        let end = clock.time(self.origin, &self.end)?;
        let started = begin.saturating_duration_since(trace_begin);
        let device = self.stream.device().as_raw();
        let name = self.name.clone();
        let duration = end.saturating_duration_since(begin);
        Ok(WorkRecord {
            name,
            device,
            stream: self.stream.identity(),
            started,
            duration,
        })
    }
}

impl Work {
    /// Queries the times of the first `count` work items.
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
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "Trace({} calls)",
            self.recorder.calls.lock().records.len()
        )
    }
}
