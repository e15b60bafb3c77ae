//! The collection of CUPTI's activity records.
//!
//! CUPTI requests buffers, fills them, and returns them on one of its threads. Its callbacks have
//! no argument for the client's data, so the process has one collector at a time. Names are copied
//! when a buffer returns, because records refer to memory of modules.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use curium_driver::sys::cupti::{
    CUpti_ActivityAttribute, CUpti_ActivityFlag, CUpti_ActivityKind, CUpti_CallbackDomain,
    CUpti_CallbackId, CUpti_SubscriberHandle, CUptiResult, Cupti,
};
use curium_driver::{AsRawStream as _, Stream};
use parking_lot::Mutex;

use super::TraceActivities;
use super::activity::{Activity, Names};
use super::error::{ActivitiesError, Error, Result, cupti_call};

/// The size of a buffer in bytes. NVIDIA recommends 1 to 10 MiB.
const BUFFER_BYTES: usize = 4 << 20;

/// The number of unused buffers that are kept.
const MAX_IDLE_BUFFERS: usize = 4;

/// The number of buffers that are allocated when a trace starts, so that no call of the program
/// waits for their pages.
const FIRST_BUFFERS: usize = 2;

/// The kinds of records for the operations of devices.
const KINDS: [(TraceActivities, CUpti_ActivityKind); 5] = [
    (
        TraceActivities::KERNELS,
        CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
    ),
    (
        TraceActivities::COPIES,
        CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMCPY,
    ),
    (
        TraceActivities::MEMSETS,
        CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMSET,
    ),
    (
        TraceActivities::ALLOCATIONS,
        CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMORY2,
    ),
    (
        TraceActivities::WAITS,
        CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
    ),
];

/// The kinds that some libraries and devices lack.
const OPTIONAL_KINDS: [(TraceActivities, CUpti_ActivityKind); 1] = [(
    TraceActivities::COPIES,
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMCPY2,
)];

/// The kinds for host calls. A trace of this process observes its calls itself.
const CALL_KINDS: [CUpti_ActivityKind; 2] = [
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_DRIVER,
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_RUNTIME,
];

/// The receiver of activities.
pub(crate) trait Sink: Send + Sync {
    /// Receives the activities of a buffer, and the number of records that did not fit into CUPTI's
    /// buffers.
    fn receive(&self, activities: Vec<Activity>, dropped: u64);
}

/// The process's attached collector.
struct Collector {
    cupti: Cupti,
    sink: Arc<dyn Sink>,
    names: Mutex<Names>,
}

static COLLECTOR: Mutex<Option<Arc<Collector>>> = Mutex::new(None);

/// Buffers for the next requests, which contain zeros: CUPTI then need not clear them on a thread
/// of the program. It may return one after the collector has ended.
static IDLE_BUFFERS: Mutex<Vec<Box<[u64]>>> = Mutex::new(Vec::new());

/// The subscription to CUPTI, which ends when it is dropped.
pub(crate) struct Subscription {
    cupti: Cupti,
    subscriber: Subscriber,
    enabled: Vec<CUpti_ActivityKind>,
}

/// The handle of the subscription.
struct Subscriber(CUpti_SubscriberHandle);

// SAFETY: CUPTI accepts the handle on any thread.
unsafe impl Send for Subscriber {}
// SAFETY: a shared handle is only read.
unsafe impl Sync for Subscriber {}

/// The host calls that a collector records.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum HostCalls {
    #[cfg_attr(
        not(feature = "injection"),
        expect(
            dead_code,
            reason = "a trace of this process observes its calls itself"
        )
    )]
    Recorded,
    NotRecorded,
}

impl Subscription {
    pub(crate) fn start(
        operation: &'static str,
        cupti: &Cupti,
        sink: Arc<dyn Sink>,
        kinds: TraceActivities,
        calls: HostCalls,
    ) -> Result<Self> {
        let mut collector = COLLECTOR.lock();
        if collector.is_some() {
            return Err(ActivitiesError::refused(
                operation,
                "another trace of this process records the activities; finish it first",
            ));
        }
        let mut subscriber = ptr::null_mut();
        // SAFETY: the place is valid for writes, and the callback ignores its arguments. No
        // callback is enabled.
        let subscribed = unsafe {
            cupti_call!(
                cupti.api(),
                cuptiSubscribe(&raw mut subscriber, Some(ignore), ptr::null_mut())
            )
        };
        subscribed.map_err(|error| is_occupied(operation, error))?;
        let mut subscription = Self {
            cupti: cupti.clone(),
            subscriber: Subscriber(subscriber),
            enabled: Vec::new(),
        };
        *collector = Some(Arc::new(Collector {
            cupti: cupti.clone(),
            sink,
            names: Mutex::default(),
        }));
        drop(collector);
        allocate_buffers();
        subscription.enable(kinds, calls)?;
        Ok(subscription)
    }

    /// Enables the kinds of records. After an error, the drop disables those that were enabled.
    fn enable(&mut self, kinds: TraceActivities, calls: HostCalls) -> Result<()> {
        let api = self.cupti.api();
        // SAFETY: the callbacks have the signatures of the functions, and live as long as the
        // process.
        unsafe {
            cupti_call!(
                api,
                cuptiActivityRegisterCallbacks(Some(request_buffer), Some(complete_buffer))
            )
        }?;
        self.declare_zeroed_buffers();
        for kind in selected(&KINDS, kinds) {
            // SAFETY: the kind is a valid value.
            unsafe { cupti_call!(api, cuptiActivityEnable(kind)) }?;
            self.enabled.push(kind);
        }
        let call_kinds: &[_] = match calls {
            HostCalls::Recorded => &CALL_KINDS,
            HostCalls::NotRecorded => &[],
        };
        for kind in selected(&OPTIONAL_KINDS, kinds).chain(call_kinds.iter().copied()) {
            // SAFETY: the kind is a valid value.
            if unsafe { cupti_call!(api, cuptiActivityEnable(kind)) }.is_ok() {
                self.enabled.push(kind);
            }
        }
        Ok(())
    }

    /// Declares that buffers contain zeros. A library that does not support this clears them
    /// itself.
    fn declare_zeroed_buffers(&self) {
        let mut size = size_of::<u8>();
        let mut is_zeroed = 1_u8;
        // SAFETY: the value of the attribute is one byte, and both pointers are valid.
        let _ = unsafe {
            cupti_call!(
                self.cupti.api(),
                cuptiActivitySetAttribute(
                    CUpti_ActivityAttribute::CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER,
                    &raw mut size,
                    (&raw mut is_zeroed).cast()
                )
            )
        };
    }

    /// Delivers the records of completed operations, and of others with an end of 0.
    pub(crate) fn flush(&self) -> Result<()> {
        let flag = CUpti_ActivityFlag::CUPTI_ACTIVITY_FLAG_FLUSH_FORCED.0;
        // SAFETY: the call takes no pointer.
        unsafe { cupti_call!(self.cupti.api(), cuptiActivityFlushAll(flag)) }
    }

    /// Returns CUPTI's identifier of a stream, which its records have.
    pub(crate) fn stream_id(&self, stream: &Stream) -> Result<u32> {
        let mut id = 0;
        let context = stream.context().as_raw().cast();
        // SAFETY: the stream and its context are live, and the place is valid for writes.
        unsafe {
            cupti_call!(
                self.cupti.api(),
                cuptiGetStreamIdEx(context, stream.as_raw().cast(), 0, &raw mut id)
            )
        }?;
        Ok(id)
    }

    /// Returns the current time on CUPTI's clock.
    pub(crate) fn timestamp(&self) -> Result<u64> {
        let mut timestamp = 0;
        // SAFETY: the place is valid for writes.
        unsafe { cupti_call!(self.cupti.api(), cuptiGetTimestamp(&raw mut timestamp)) }?;
        Ok(timestamp)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let api = self.cupti.api();
        for kind in self.enabled.drain(..) {
            // A kind that stays enabled costs time, and its records are discarded.
            // SAFETY: the kind was enabled.
            let _ = unsafe { cupti_call!(api, cuptiActivityDisable(kind)) };
        }
        let _ = self.flush();
        // SAFETY: the handle is that of this subscription, which ends here.
        let _ = unsafe { cupti_call!(self.cupti.api(), cuptiUnsubscribe(self.subscriber.0)) };
        *COLLECTOR.lock() = None;
    }
}

/// Returns the kinds of records for some operations of devices.
fn selected(
    table: &'static [(TraceActivities, CUpti_ActivityKind)],
    operations: TraceActivities,
) -> impl Iterator<Item = CUpti_ActivityKind> {
    table
        .iter()
        .filter(move |(operation, _)| operations.contains(*operation))
        .map(|(_, kind)| *kind)
}

/// Explains the error of a second subscriber.
fn is_occupied(operation: &'static str, error: Error) -> Error {
    match &error {
        Error::Call(call)
            if call.code == CUptiResult::CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED =>
        {
            ActivitiesError::refused(
                operation,
                "another profiler is attached to this process \
                 (cuptiSubscribe: CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED); run the program without it",
            )
        }
        _ => error,
    }
}

impl Collector {
    /// Reads the records of a buffer.
    ///
    /// # Safety
    ///
    /// CUPTI has filled the first `valid` bytes of the buffer with records.
    unsafe fn read(&self, buffer: *mut u8, valid: usize) -> Vec<Activity> {
        let mut activities = Vec::new();
        let mut names = self.names.lock();
        let mut record = ptr::null_mut();
        loop {
            // SAFETY: the caller guarantees the buffer, and the place is valid for reads and
            // writes.
            let next = unsafe {
                cupti_call!(
                    self.cupti.api(),
                    cuptiActivityGetNextRecord(buffer, valid, &raw mut record)
                )
            };
            // The last record is followed by an error.
            if next.is_err() || record.is_null() {
                return activities;
            }
            // SAFETY: the loader accepts CUPTI of CUDA 11.8 and newer, which has written the
            // record.
            activities.extend(unsafe { Activity::read(record, &mut names) });
        }
    }

    /// Returns the number of records that CUPTI dropped since the last call.
    fn dropped(&self) -> u64 {
        let mut dropped = 0;
        // SAFETY: null stands for all contexts, and the place is valid for writes.
        let result = unsafe {
            cupti_call!(
                self.cupti.api(),
                cuptiActivityGetNumDroppedRecords(ptr::null_mut(), 0, &raw mut dropped)
            )
        };
        result.map_or(0, |()| dropped as u64)
    }
}

unsafe extern "C" fn ignore(
    _: *mut c_void,
    _: CUpti_CallbackDomain,
    _: CUpti_CallbackId,
    _: *const c_void,
) {
}

/// Allocates buffers, with their pages.
fn allocate_buffers() {
    let mut idle = IDLE_BUFFERS.lock();
    while idle.len() < FIRST_BUFFERS {
        let mut buffer = new_buffer();
        // Otherwise, the compiler may leave the zeros to the system, which maps each page at its
        // first access.
        std::hint::black_box(&mut buffer).fill(0);
        idle.push(buffer);
    }
}

fn new_buffer() -> Box<[u64]> {
    vec![0; BUFFER_BYTES / 8].into_boxed_slice()
}

unsafe extern "C" fn request_buffer(
    buffer: *mut *mut u8,
    size: *mut usize,
    max_records: *mut usize,
) {
    let idle = IDLE_BUFFERS.lock().pop();
    let memory = idle.unwrap_or_else(new_buffer);
    // SAFETY: CUPTI passes a place that is valid for writes.
    unsafe { buffer.write(Box::into_raw(memory).cast()) };
    // SAFETY: CUPTI passes a place that is valid for writes.
    unsafe { size.write(BUFFER_BYTES) };
    // SAFETY: CUPTI passes a place that is valid for writes. 0 stands for no limit.
    unsafe { max_records.write(0) };
}

unsafe extern "C" fn complete_buffer(
    _: curium_driver::sys::cupti::CUcontext,
    _: u32,
    buffer: *mut u8,
    _: usize,
    valid: usize,
) {
    if buffer.is_null() {
        return;
    }
    let collector = COLLECTOR.lock().clone();
    if let Some(collector) = collector {
        // SAFETY: CUPTI returns the buffer with `valid` bytes of records.
        let activities = unsafe { collector.read(buffer, valid) };
        collector.sink.receive(activities, collector.dropped());
    }
    let words = ptr::slice_from_raw_parts_mut(buffer.cast::<u64>(), BUFFER_BYTES / 8);
    // SAFETY: the buffer was made by `request_buffer` with this size, and CUPTI no longer uses it.
    let mut memory = unsafe { Box::from_raw(words) };
    memory.fill(0);
    let mut idle = IDLE_BUFFERS.lock();
    if idle.len() < MAX_IDLE_BUFFERS {
        idle.push(memory);
    }
}

/// The same times on the host's clock and on CUPTI's.
pub(crate) struct ClockSample {
    pub(crate) host: Instant,
    pub(crate) cupti: u64,
}

impl ClockSample {
    pub(crate) fn take(subscription: &Subscription) -> Result<Self> {
        let before = Instant::now();
        let cupti = subscription.timestamp()?;
        Ok(Self {
            host: before + before.elapsed() / 2,
            cupti,
        })
    }

    /// Converts a time on CUPTI's clock, which may run at another rate, as it is adjusted to the
    /// time of day.
    pub(crate) fn convert(&self, later: &Self, cupti: u64) -> Instant {
        let host_span = later.host.saturating_duration_since(self.host).as_nanos() as f64;
        let cupti_span = later.cupti.saturating_sub(self.cupti) as f64;
        let rate = if cupti_span > 0.0 && host_span > 0.0 {
            host_span / cupti_span
        } else {
            1.0
        };
        // A step of the time of day would give an absurd rate.
        let rate = if (0.99..1.01).contains(&rate) {
            rate
        } else {
            1.0
        };
        if cupti >= self.cupti {
            let offset = Duration::from_nanos(((cupti - self.cupti) as f64 * rate) as u64);
            self.host.checked_add(offset).unwrap_or(self.host)
        } else {
            let offset = Duration::from_nanos(((self.cupti - cupti) as f64 * rate) as u64);
            self.host.checked_sub(offset).unwrap_or(self.host)
        }
    }
}
