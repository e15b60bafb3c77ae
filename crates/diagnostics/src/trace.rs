//! Timelines of host calls and device work, for programs and for `chrome://tracing`, Perfetto and
//! similar viewers.
//!
//! Host calls are observed with the call hook. Device work is recorded by CUPTI ([`collector`]), or
//! measured with a pair of events and placed on the host's clock with an event whose time is known
//! on both clocks ([`clock`]).

mod activity;
mod calls;
mod clock;
mod collector;
mod error;
#[cfg(feature = "injection")]
mod injection;
mod json;
#[cfg(feature = "tracing")]
mod layer;
mod picture;
mod timeline;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bitflags::bitflags;
use curium_driver::extend::NOT_WHILE_CAPTURING;
use curium_driver::sys::cupti::Cupti;
use curium_driver::{
    Call, CallObserver, Function, HazardWait, ObserverGuard, PooledEvent, Stream, observe_calls,
    observe_hazard_waits,
};
use parking_lot::{Mutex, RwLock};

use self::activity::{Activity, Location, Name};
#[cfg(feature = "tracing")]
use self::calls::SpanRecord;
use self::calls::{CallRecord, Calls, ThreadRecords};
use self::clock::Clock;
use self::collector::{ClockSample, HostCalls, Sink, Subscription};
pub use self::error::{ActivitiesError, CallError as CuptiCallError, Error as TraceError};
#[cfg(feature = "tracing")]
pub use self::layer::TraceLayer;
pub use self::timeline::{Timeline, TraceAggregate, TraceItem, TraceItemKind, TraceRow};

/// Records driver calls and device work until it is finished.
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
/// let timeline = trace.finish();
/// let step = timeline.items().iter().find(|item| &*item.name == "step").ok_or("no item `step`")?;
/// println!("{:?}", step.duration);
/// timeline.write(std::io::sink())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Kernels, copies and allocations
///
/// [`TraceOptions::with_activities`] records every operation of the devices by CUPTI, NVIDIA's
/// library for profilers:
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// use curium_diagnostics::{Trace, TraceOptions};
/// use curium_memory::DeviceBuffer;
///
/// # let cupti = curium_sim_libraries::cupti();
/// # /*
/// let cupti = curium_diagnostics::Cupti::load()?;
/// # */
/// let trace = Trace::with_options(TraceOptions::new().with_activities(&cupti))?;
/// let stream = driver.device(0)?.primary_context()?.stream()?;
/// let buffer = DeviceBuffer::from_slice(&stream, &[1.0_f32; 1_000])?;
/// assert_eq!(buffer.to_vec()?.len(), 1_000);
/// drop(buffer);
/// stream.synchronize()?;
/// let timeline = trace.finish();
/// for aggregate in timeline.aggregate() {
///     println!("{} {}: {} in {:?}", aggregate.kind, aggregate.name, aggregate.count, aggregate.total);
/// }
/// # assert!(timeline.items().iter().any(|item| item.kind == curium_diagnostics::TraceItemKind::Copy));
/// std::fs::write(std::env::temp_dir().join("timeline.html"), timeline.to_html())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A trace costs time per call, most of it in CUPTI, even while CUPTI is attached only: on an H200,
/// a program that only launched kernels took 4.6 µs for each, 6.2 µs with its kernels recorded by
/// CUPTI alone or by a trace, and 6.7 µs with all operations of the device and the calls
/// (`cargo bench -p curium-tests --bench trace`). [`TraceOptions::without_calls`] leaves the calls
/// out, and [`TraceOptions::with_activity_kinds`] some of the operations.
///
/// # Unmodified programs
///
/// The environment variable `CURIUM_TRACE` traces an unmodified program: its driver calls are
/// appended to the named file, starting with its first driver. `curium trace` runs programs in this
/// way, and records the work of the devices of any program. The variable is ignored in processes
/// with elevated privileges.
#[must_use = "the trace ends when it is dropped"]
pub struct Trace {
    recorder: Arc<Recorder>,
    activities: Option<Activities>,
    /// `None` if calls are left out: observed calls are slower.
    calls: Option<ObserverGuard>,
    hazard_waits: ObserverGuard,
}

/// The settings of a [`Trace`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TraceOptions {
    /// The maximum number of recorded calls, and of other items. The default is a million.
    pub capacity: Option<usize>,
    /// The library that records the operations of the devices.
    pub activities: Option<Cupti>,
    /// The operations of the devices that it records. The default is all.
    pub activity_kinds: TraceActivities,
    /// Leaves out the calls of the driver, which makes the trace of a launch-bound program cheaper.
    pub without_calls: bool,
}

bitflags! {
    /// The operations of devices that a [`Trace`] records.
    ///
    /// CUPTI intercepts the calls for each of them, which costs time per call.
    #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
    pub struct TraceActivities: u32 {
        /// Kernels, also those inside graphs.
        const KERNELS = 1;
        /// Copies, also between devices.
        const COPIES = 1 << 1;
        /// Memsets.
        const MEMSETS = 1 << 2;
        /// Allocations and deallocations.
        const ALLOCATIONS = 1 << 3;
        /// Waits of streams for events.
        const WAITS = 1 << 4;
    }
}

/// The connection to CUPTI.
struct Activities {
    subscription: Arc<Subscription>,
    begin: ClockSample,
}

/// The recorded calls and work.
struct Recorder {
    begin: Instant,
    /// The maximum number of recorded calls, and of recorded work items.
    capacity: usize,
    with_calls: bool,
    calls: Calls,
    work: Mutex<Work>,
    /// Locked by callbacks of the driver and of CUPTI, therefore never held during a call.
    device_records: Mutex<DeviceRecords>,
    /// Set while the trace records activities.
    subscription: RwLock<Option<Arc<Subscription>>>,
}

#[derive(Default)]
struct Work {
    clock: Clock,
    /// Work items that may not have completed, in the order in which they were enqueued.
    pending: Vec<PendingWork>,
    items: Vec<TraceItem>,
    /// The number of work items whose time is unknown, usually because their context has failed.
    lost: u64,
    dropped: u64,
}

#[derive(Default)]
struct DeviceRecords {
    activities: Vec<Activity>,
    hazard_waits: Vec<TraceItem>,
    dropped: u64,
}

struct PendingWork {
    name: Arc<str>,
    row: TraceRow,
    /// The index of the clock point that the times are relative to.
    origin: usize,
    begin: PooledEvent,
    end: PooledEvent,
}

/// The default capacity, which requires some hundred megabytes.
const DEFAULT_CAPACITY: usize = 1 << 20;

/// The number of pending work items that triggers a check for completed ones.
const PENDING: usize = 256;

impl TraceOptions {
    /// Returns the default settings: the first million calls, without the operations of the
    /// devices.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of recorded calls, and of other items.
    #[must_use]
    pub fn with_capacity(mut self, capacity: usize) -> Self {
        self.capacity = Some(capacity);
        self
    }

    /// Records the operations of the devices with CUPTI: kernels, also those inside graphs, copies,
    /// fills, allocations, and the waits of streams.
    #[must_use]
    pub fn with_activities(mut self, cupti: &Cupti) -> Self {
        self.activities = Some(cupti.clone());
        self
    }

    /// Sets the operations of the devices that are recorded, if [`TraceOptions::with_activities`]
    /// records them.
    #[must_use]
    pub fn with_activity_kinds(mut self, kinds: TraceActivities) -> Self {
        self.activity_kinds = kinds;
        self
    }

    /// Leaves out the calls of the driver, which makes the trace of a launch-bound program cheaper.
    #[must_use]
    pub fn without_calls(mut self) -> Self {
        self.without_calls = true;
        self
    }
}

impl Default for TraceActivities {
    fn default() -> Self {
        Self::all()
    }
}

impl Trace {
    /// Starts a trace of all driver calls of the process. It keeps the first million calls and the
    /// first million work items.
    pub fn start() -> Self {
        Self::from_parts(Recorder::new(&TraceOptions::new()), None)
    }

    /// Starts a trace with these settings.
    ///
    /// CUPTI: `cuptiSubscribe`, `cuptiActivityEnable`.
    ///
    /// # Errors
    ///
    /// [`TraceError::Activities`] if another profiler is attached to the process, or another trace
    /// records activities; an error returned by CUPTI.
    pub fn with_options(options: TraceOptions) -> Result<Self, TraceError> {
        let recorder = Recorder::new(&options);
        let Some(cupti) = options.activities else {
            return Ok(Self::from_parts(recorder, None));
        };
        let sink = Arc::clone(&recorder) as Arc<dyn Sink>;
        let subscription = Subscription::start(
            "Trace::with_options",
            &cupti,
            sink,
            options.activity_kinds,
            HostCalls::NotRecorded,
        )?;
        let activities = Activities {
            begin: ClockSample::take(&subscription)?,
            subscription: Arc::new(subscription),
        };
        *recorder.subscription.write() = Some(Arc::clone(&activities.subscription));
        Ok(Self::from_parts(recorder, Some(activities)))
    }

    fn from_parts(recorder: Arc<Recorder>, activities: Option<Activities>) -> Self {
        let observer = RecordCalls(Arc::clone(&recorder));
        let calls = recorder.with_calls.then(|| observe_calls(observer));
        let waits = Arc::clone(&recorder);
        let hazard_waits = observe_hazard_waits(move |wait| waits.add_hazard_wait(wait));
        Self {
            recorder,
            activities,
            calls,
            hazard_waits,
        }
    }

    /// Records the work that `enqueue` enqueues on `stream` as a work item with this name. The host
    /// does not block.
    ///
    /// The first use of a context, and one every ten seconds, waits a few microseconds for an idle
    /// stream to compare the clocks.
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
        enqueue: impl FnOnce() -> curium_driver::Result<T>,
    ) -> curium_driver::Result<T> {
        stream.check_enqueue_now("Trace::on_stream", NOT_WHILE_CAPTURING)?;
        let (origin, begin, end) = self.recorder.work.lock().clock.events(stream.context())?;
        begin.record(stream)?;
        let value = enqueue()?;
        end.record(stream)?;
        self.recorder.add_work(PendingWork {
            name: name.into().into(),
            row: self.recorder.row(stream),
            origin,
            begin,
            end,
        });
        Ok(value)
    }

    /// Returns a layer for `tracing_subscriber` that adds the spans of the program to the timeline,
    /// until the trace ends.
    ///
    /// ```
    /// use curium_diagnostics::Trace;
    /// use tracing_subscriber::layer::SubscriberExt as _;
    ///
    /// let trace = Trace::start();
    /// let subscriber = tracing_subscriber::registry().with(trace.layer());
    /// tracing::subscriber::with_default(subscriber, || {
    ///     tracing::info_span!("load").in_scope(|| { /* … */ });
    /// });
    /// assert_eq!(&*trace.finish().items()[0].name, "load");
    /// ```
    #[cfg(feature = "tracing")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tracing")))]
    pub fn layer(&self) -> TraceLayer {
        TraceLayer::new(&self.recorder)
    }

    /// Ends the trace and returns its items. Waits for the work of [`Trace::on_stream`].
    ///
    /// Other operations that have not completed are counted by [`Timeline::work_lost`]: synchronize
    /// the streams before.
    #[must_use = "the recorded items are lost when the timeline is dropped"]
    pub fn finish(self) -> Timeline {
        let Self {
            recorder,
            activities,
            calls,
            hazard_waits,
        } = self;
        drop(calls);
        drop(hazard_waits);
        recorder.finish(activities)
    }
}

impl Recorder {
    fn new(options: &TraceOptions) -> Arc<Self> {
        let capacity = options.capacity.unwrap_or(DEFAULT_CAPACITY);
        Arc::new(Self {
            begin: Instant::now(),
            capacity,
            with_calls: !options.without_calls,
            calls: Calls::new(capacity),
            work: Mutex::default(),
            device_records: Mutex::default(),
            subscription: RwLock::default(),
        })
    }

    fn finish(&self, activities: Option<Activities>) -> Timeline {
        let mut timeline = Timeline::default();
        self.work
            .lock()
            .measure(self.begin, self.capacity, usize::MAX);
        let mut lost = 0;
        if let Some(activities) = activities {
            let end = ClockSample::take(&activities.subscription);
            // If this fails, the buffered records are lost.
            let _ = activities.subscription.flush();
            *self.subscription.write() = None;
            let Activities {
                subscription,
                begin,
            } = activities;
            drop(subscription);
            let records = std::mem::take(&mut self.device_records.lock().activities);
            let end = end.as_ref().unwrap_or(&begin);
            lost = add_activities(&mut timeline.items, records, self.begin, &begin, end);
        }
        let records = std::mem::take(&mut *self.device_records.lock());
        timeline.items.extend(records.hazard_waits);
        let mut work = self.work.lock();
        timeline.items.append(&mut work.items);
        timeline.work_lost = work.lost + lost;
        timeline.work_dropped = work.dropped + records.dropped;
        drop(work);
        let threads = self.calls.take();
        add_calls(&mut timeline.items, &threads);
        for thread in threads {
            timeline.calls_dropped += thread.calls_dropped;
            timeline.thread_names.insert(thread.number, thread.name);
        }
        timeline.items.sort_by_key(|item| (item.start, item.row));
        timeline
    }

    /// Returns the row of a stream: that of CUPTI's records, if the trace has them.
    fn row(&self, stream: &Stream) -> TraceRow {
        let subscription = self.subscription.read().clone();
        let id = subscription.and_then(|subscription| subscription.stream_id(stream).ok());
        TraceRow::Stream {
            device: stream.device().as_raw(),
            stream: id.map_or_else(|| stream.identity(), u64::from),
        }
    }

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

    #[inline]
    fn add_call(&self, call: &Call<'_>) {
        self.calls.add_call(CallRecord {
            function: call.function,
            code: call.code,
            started: nanoseconds(call.started.saturating_duration_since(self.begin)),
            duration: nanoseconds(call.duration),
        });
    }

    #[cfg(feature = "tracing")]
    fn add_span(&self, name: &'static str, started: Instant) {
        self.calls.add_span(SpanRecord {
            name,
            started: nanoseconds(started.saturating_duration_since(self.begin)),
            duration: nanoseconds(started.elapsed()),
        });
    }

    fn add_hazard_wait(&self, wait: &HazardWait<'_>) {
        let item = TraceItem {
            kind: TraceItemKind::HazardWait,
            name: format!("{} hazard", wait.hazard).into(),
            row: self.row(wait.waiting_stream),
            start: self.begin.elapsed(),
            duration: Duration::ZERO,
            bytes: Some(wait.bytes),
            graph_node: None,
            code: None,
        };
        let mut records = self.device_records.lock();
        if records.hazard_waits.len() >= self.capacity {
            records.dropped += 1;
        } else {
            records.hazard_waits.push(item);
        }
    }
}

impl Sink for Recorder {
    fn receive(&self, mut activities: Vec<Activity>, dropped: u64) {
        let mut records = self.device_records.lock();
        let space = self.capacity.saturating_sub(records.activities.len());
        let excess = activities.len().saturating_sub(space);
        activities.truncate(space);
        records.activities.append(&mut activities);
        records.dropped += excess as u64 + dropped;
    }
}

/// The observer of a trace.
struct RecordCalls(Arc<Recorder>);

impl CallObserver for RecordCalls {
    fn after(&self, call: &Call<'_>) {
        self.0.add_call(call);
    }
}

/// Adds the items of records, and returns the number of those without an end.
fn add_activities(
    items: &mut Vec<TraceItem>,
    records: Vec<Activity>,
    trace_begin: Instant,
    begin: &ClockSample,
    end: &ClockSample,
) -> u64 {
    let devices = devices(&records);
    let mut names: HashMap<&'static str, Arc<str>> = HashMap::new();
    let mut lost = 0;
    for record in records {
        if record.end == 0 {
            lost += 1;
            continue;
        }
        let name = match record.name {
            Name::Text(name) => name,
            Name::Fixed(name) => Arc::clone(names.entry(name).or_insert_with(|| name.into())),
            Name::Callback { .. } => continue,
        };
        let row = match record.location {
            Location::Stream {
                device,
                context,
                stream,
            } => TraceRow::Stream {
                device: device
                    .or_else(|| devices.get(&context).copied())
                    .and_then(|device| i32::try_from(device).ok())
                    .unwrap_or_default(),
                stream: stream.into(),
            },
            Location::Thread(number) => TraceRow::Thread {
                number: number.into(),
            },
        };
        let started = begin.convert(end, record.start);
        let ended = begin.convert(end, record.end);
        items.push(TraceItem {
            kind: record.kind,
            name,
            row,
            start: started.saturating_duration_since(trace_begin),
            duration: ended.saturating_duration_since(started),
            bytes: record.bytes,
            graph_node: record.graph_node,
            code: record.code,
        });
    }
    lost
}

/// Returns the device of each context, which the records of waits lack.
fn devices(records: &[Activity]) -> HashMap<u32, u32> {
    records
        .iter()
        .filter_map(|record| match record.location {
            Location::Stream {
                device: Some(device),
                context,
                ..
            } => Some((context, device)),
            _ => None,
        })
        .collect()
}

/// Adds the calls and the spans of each thread.
fn add_calls(items: &mut Vec<TraceItem>, threads: &[ThreadRecords]) {
    let mut functions: HashMap<Function, Arc<str>> = HashMap::new();
    let mut spans: HashMap<&'static str, Arc<str>> = HashMap::new();
    for thread in threads {
        let row = TraceRow::Thread {
            number: thread.number,
        };
        items.extend(thread.calls.iter().map(|call| {
            let function = call.function;
            let name = functions
                .entry(function)
                .or_insert_with(|| function.name().into());
            TraceItem {
                kind: TraceItemKind::Call,
                name: Arc::clone(name),
                row,
                start: Duration::from_nanos(call.started),
                duration: Duration::from_nanos(call.duration),
                bytes: None,
                graph_node: None,
                code: Some(call.code.0),
            }
        }));
        items.extend(thread.spans.iter().map(|span| {
            let name = spans.entry(span.name).or_insert_with(|| span.name.into());
            TraceItem {
                kind: TraceItemKind::Span,
                name: Arc::clone(name),
                row,
                start: Duration::from_nanos(span.started),
                duration: Duration::from_nanos(span.duration),
                bytes: None,
                graph_node: None,
                code: None,
            }
        }));
    }
}

/// Returns the nanoseconds of a duration, of which 64 bits hold 584 years.
#[inline]
fn nanoseconds(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

impl PendingWork {
    /// Returns `true` if the end event has completed, or never will.
    fn is_done(&self) -> bool {
        self.end.is_finished().unwrap_or(true)
    }

    fn measure(&self, clock: &Clock, trace_begin: Instant) -> curium_driver::Result<TraceItem> {
        self.end.synchronize()?;
        let begin = clock.time(self.origin, &self.begin)?;
        let end = clock.time(self.origin, &self.end)?;
        Ok(TraceItem {
            kind: TraceItemKind::Work,
            name: Arc::clone(&self.name),
            row: self.row,
            start: begin.saturating_duration_since(trace_begin),
            duration: end.saturating_duration_since(begin),
            bytes: None,
            graph_node: None,
            code: None,
        })
    }
}

impl Work {
    /// Queries the times of the first `count` work items.
    fn measure(&mut self, trace_begin: Instant, capacity: usize, count: usize) {
        let count = count.min(self.pending.len());
        for pending in self.pending.drain(..count).collect::<Vec<_>>() {
            match pending.measure(&self.clock, trace_begin) {
                Ok(item) => self.add(item, capacity),
                Err(_) => self.lost += 1,
            }
        }
    }

    fn add(&mut self, item: TraceItem, capacity: usize) {
        if self.items.len() >= capacity {
            self.dropped += 1;
        } else {
            self.items.push(item);
        }
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Trace({} calls)", self.recorder.calls.len())
    }
}
