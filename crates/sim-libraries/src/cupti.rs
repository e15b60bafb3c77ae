//! CUPTI's activity API for simulated devices.
//!
//! Records are written into the client's buffer when an operation completes, on the thread that
//! performed it. A buffer is returned to the client when it is full, or when the client flushes.
//! The types of the records are those of CUDA 11.8.

use std::collections::HashMap;
use std::ffi::{CString, c_char};
use std::ptr;
use std::sync::Arc;
use std::sync::LazyLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use curium_sim::{Activity, ActivityMemory, ActivityOperation, observe_activities, stream_number};
use curium_sys::CudaVersion;
use curium_sys::cupti::{
    Api, CUcontext, CUpti_Activity, CUpti_ActivityAttribute, CUpti_ActivityKernel7,
    CUpti_ActivityKind, CUpti_ActivityMemcpy5, CUpti_ActivityMemory3, CUpti_ActivityMemoryKind,
    CUpti_ActivityMemoryOperationType, CUpti_ActivityMemset4, CUpti_ActivitySynchronization,
    CUpti_ActivitySynchronizationType, CUpti_BuffersCallbackCompleteFunc,
    CUpti_BuffersCallbackRequestFunc, CUpti_CallbackFunc, CUpti_SubscriberHandle, CUptiResult,
    CUstream,
};
use parking_lot::Mutex;

/// The version that the library reports: 10 times that of the newest driver, such as 130500 for
/// CUDA 13.5.
const VERSION: u32 = CudaVersion::NEWEST_KNOWN.as_raw() * 10;

/// The alignment of records in buffers.
const ALIGNMENT: usize = 8;

/// The kinds of records that are simulated.
const KINDS: [CUpti_ActivityKind; 5] = [
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMCPY,
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMSET,
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMORY2,
    CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
];

type Result<T = (), E = CUptiResult> = std::result::Result<T, E>;

/// The attached client.
struct Client {
    is_subscribed: bool,
    request: CUpti_BuffersCallbackRequestFunc,
    complete: CUpti_BuffersCallbackCompleteFunc,
    enabled: Vec<CUpti_ActivityKind>,
    /// `true` if the client passes buffers that contain zeros. Records of another buffer are
    /// dropped.
    expects_zeros: bool,
    buffer: Option<Buffer>,
    dropped: usize,
    /// The names of kernels, which live as long as the process, as records refer to them.
    names: Option<HashMap<String, &'static CString>>,
}

/// A buffer of the client that is being filled.
struct Buffer {
    start: *mut u8,
    size: usize,
    used: usize,
    max_records: usize,
    records: usize,
}

// SAFETY: the client hands the buffer over to the library, which uses it with the lock held.
unsafe impl Send for Buffer {}

/// A buffer that is to be returned to the client, with the client's function for it.
struct Completed {
    buffer: Buffer,
    complete: CUpti_BuffersCallbackCompleteFunc,
}

static CLIENT: Mutex<Client> = Mutex::new(Client {
    is_subscribed: false,
    request: None,
    complete: None,
    enabled: Vec::new(),
    expects_zeros: false,
    buffer: None,
    dropped: 0,
    names: None,
});

/// The same time on the clock of activities and on that of CUPTI, whose origin is 1970.
static CLOCK: LazyLock<(Instant, u64)> = LazyLock::new(|| {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    (
        Instant::now(),
        u64::try_from(now.as_nanos()).unwrap_or(u64::MAX),
    )
});

/// Returns a time on CUPTI's clock.
fn timestamp(time: Instant) -> u64 {
    let (instant, nanoseconds) = *CLOCK;
    let later = time.saturating_duration_since(instant).as_nanos() as u64;
    let earlier = instant.saturating_duration_since(time).as_nanos() as u64;
    nanoseconds + later - earlier
}

macro_rules! functions {
    ($(fn $name:ident($($parameter:ident: $ty:ty),* $(,)?) $body:block)*) => {
        $(
            #[allow(non_snake_case, reason = "this is C's name")]
            unsafe extern "C" fn $name($($parameter: $ty),*) -> CUptiResult {
                let result = || -> Result { $body };
                result().err().unwrap_or(CUptiResult::CUPTI_SUCCESS)
            }
        )*

        /// Returns the functions that are simulated.
        pub(crate) fn api() -> Api {
            let mut api = <Api as curium_sys::FunctionTable>::EMPTY;
            $(api.$name = Some($name);)*
            api
        }
    };
}

functions! {
    fn cuptiGetVersion(version: *mut u32) {
        // SAFETY: the caller passes null or a place that is valid for writes.
        unsafe { write(version, VERSION) }
    }

    fn cuptiGetTimestamp(time: *mut u64) {
        // SAFETY: the caller passes null or a place that is valid for writes.
        unsafe { write(time, timestamp(Instant::now())) }
    }

    fn cuptiGetResultString(result: CUptiResult, text: *mut *const c_char) {
        let text_of_result = match result {
            CUptiResult::CUPTI_SUCCESS => c"CUPTI_SUCCESS",
            CUptiResult::CUPTI_ERROR_INVALID_PARAMETER => c"CUPTI_ERROR_INVALID_PARAMETER",
            CUptiResult::CUPTI_ERROR_INVALID_KIND => c"CUPTI_ERROR_INVALID_KIND",
            CUptiResult::CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED => {
                c"CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
            }
            CUptiResult::CUPTI_ERROR_MAX_LIMIT_REACHED => c"CUPTI_ERROR_MAX_LIMIT_REACHED",
            _ => c"CUPTI_ERROR_UNKNOWN",
        };
        // SAFETY: the caller passes null or a place that is valid for writes.
        unsafe { write(text, text_of_result.as_ptr()) }
    }

    fn cuptiSubscribe(
        subscriber: *mut CUpti_SubscriberHandle,
        callback: CUpti_CallbackFunc,
        _user_data: *mut std::ffi::c_void,
    ) {
        if callback.is_none() {
            return Err(CUptiResult::CUPTI_ERROR_INVALID_PARAMETER);
        }
        let mut client = CLIENT.lock();
        if client.is_subscribed {
            return Err(CUptiResult::CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
        }
        // SAFETY: the caller passes null or a place that is valid for writes.
        unsafe { write(subscriber, ptr::without_provenance_mut(1)) }?;
        client.is_subscribed = true;
        Ok(())
    }

    fn cuptiUnsubscribe(subscriber: CUpti_SubscriberHandle) {
        if subscriber.addr() != 1 {
            return Err(CUptiResult::CUPTI_ERROR_INVALID_PARAMETER);
        }
        CLIENT.lock().is_subscribed = false;
        Ok(())
    }

    fn cuptiActivityRegisterCallbacks(
        request: CUpti_BuffersCallbackRequestFunc,
        complete: CUpti_BuffersCallbackCompleteFunc,
    ) {
        if request.is_none() || complete.is_none() {
            return Err(CUptiResult::CUPTI_ERROR_INVALID_PARAMETER);
        }
        let mut client = CLIENT.lock();
        client.request = request;
        client.complete = complete;
        Ok(())
    }

    fn cuptiActivityEnable(kind: CUpti_ActivityKind) {
        enable(kind)
    }

    fn cuptiActivityDisable(kind: CUpti_ActivityKind) {
        if !KINDS.contains(&kind) {
            return Err(CUptiResult::CUPTI_ERROR_INVALID_KIND);
        }
        let mut client = CLIENT.lock();
        client.enabled.retain(|enabled| *enabled != kind);
        let is_idle = client.enabled.is_empty();
        drop(client);
        if is_idle {
            observe_activities(None);
        }
        Ok(())
    }

    fn cuptiActivitySetAttribute(
        attribute: CUpti_ActivityAttribute,
        size: *mut usize,
        value: *mut std::ffi::c_void,
    ) {
        if size.is_null() || value.is_null() {
            return Err(CUptiResult::CUPTI_ERROR_INVALID_PARAMETER);
        }
        if attribute != CUpti_ActivityAttribute::CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER {
            return Err(CUptiResult::CUPTI_ERROR_NOT_SUPPORTED);
        }
        // SAFETY: the caller passes the size of the value.
        if unsafe { size.read() } < size_of::<u8>() {
            return Err(CUptiResult::CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
        }
        // SAFETY: the value has at least one byte.
        let is_zeroed = unsafe { value.cast::<u8>().read() };
        CLIENT.lock().expects_zeros = is_zeroed != 0;
        Ok(())
    }

    fn cuptiActivityFlushAll(_flag: u32) {
        let completed = CLIENT.lock().take_buffer();
        if let Some(completed) = completed {
            completed.deliver();
        }
        Ok(())
    }

    fn cuptiActivityGetNextRecord(
        buffer: *mut u8,
        valid: usize,
        record: *mut *mut CUpti_Activity,
    ) {
        // SAFETY: the caller passes a buffer that this library filled, and a place for the record.
        unsafe { next_record(buffer, valid, record) }
    }

    fn cuptiActivityGetNumDroppedRecords(
        _context: CUcontext,
        _stream: u32,
        dropped: *mut usize,
    ) {
        let count = std::mem::take(&mut CLIENT.lock().dropped);
        // SAFETY: the caller passes null or a place that is valid for writes.
        unsafe { write(dropped, count) }
    }

    fn cuptiGetStreamIdEx(
        _context: CUcontext,
        stream: CUstream,
        _per_thread: u8,
        id: *mut u32,
    ) {
        let number = stream_number(stream.cast())
            .map_err(|_| CUptiResult::CUPTI_ERROR_INVALID_STREAM)?;
        // SAFETY: the caller passes null or a place that is valid for writes.
        unsafe { write(id, number as u32) }
    }
}

/// Writes a value that a function returns.
///
/// # Safety
///
/// `output` is null or valid for writes.
unsafe fn write<T>(output: *mut T, value: T) -> Result {
    if output.is_null() {
        return Err(CUptiResult::CUPTI_ERROR_INVALID_PARAMETER);
    }
    // SAFETY: the caller guarantees that the output is valid for writes.
    unsafe { output.write(value) };
    Ok(())
}

fn enable(kind: CUpti_ActivityKind) -> Result {
    if !KINDS.contains(&kind) {
        return Err(CUptiResult::CUPTI_ERROR_INVALID_KIND);
    }
    LazyLock::force(&CLOCK);
    let mut client = CLIENT.lock();
    if client.request.is_none() {
        return Err(CUptiResult::CUPTI_ERROR_INVALID_OPERATION);
    }
    if !client.enabled.contains(&kind) {
        client.enabled.push(kind);
    }
    drop(client);
    observe_activities(Some(Arc::new(record)));
    Ok(())
}

/// Moves `record` to the next record of a buffer, or to the first one if it is null.
///
/// # Safety
///
/// The first `valid` bytes of the buffer were filled by this library, and `record` is valid for
/// reads and writes.
unsafe fn next_record(buffer: *mut u8, valid: usize, record: *mut *mut CUpti_Activity) -> Result {
    if buffer.is_null() || record.is_null() {
        return Err(CUptiResult::CUPTI_ERROR_INVALID_PARAMETER);
    }
    // SAFETY: the caller guarantees that the place is valid for reads.
    let current = unsafe { record.read() };
    let offset = if current.is_null() {
        0
    } else {
        // SAFETY: the record is one of the buffer, and begins with its kind.
        let kind = unsafe { (*current).kind };
        current.addr() - buffer.addr() + record_size(kind)
    };
    if offset >= valid {
        return Err(CUptiResult::CUPTI_ERROR_MAX_LIMIT_REACHED);
    }
    let next = buffer.wrapping_add(offset).cast();
    // SAFETY: the place is valid for writes.
    unsafe { record.write(next) };
    Ok(())
}

fn record_size(kind: CUpti_ActivityKind) -> usize {
    match kind {
        CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL => {
            size_of::<CUpti_ActivityKernel7>()
        }
        CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMCPY => size_of::<CUpti_ActivityMemcpy5>(),
        CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMSET => size_of::<CUpti_ActivityMemset4>(),
        CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMORY2 => size_of::<CUpti_ActivityMemory3>(),
        _ => size_of::<CUpti_ActivitySynchronization>(),
    }
}

/// Writes the record of an activity, if its kind is enabled.
fn record(activity: &Activity<'_>) {
    let mut completed = Vec::new();
    let mut client = CLIENT.lock();
    client.record(activity, &mut completed);
    drop(client);
    // The client may call the library, or flush.
    for completed in completed {
        completed.deliver();
    }
}

impl Client {
    fn record(&mut self, activity: &Activity<'_>, completed: &mut Vec<Completed>) {
        let device = activity.device as u32;
        let context = activity.context as u32;
        let stream = activity.stream as u32;
        let start = timestamp(activity.start);
        let end = timestamp(activity.end);
        let graph_node = activity.graph_node.unwrap_or_default();
        match activity.operation {
            ActivityOperation::Kernel { name, grid, block } => {
                let kind = CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
                let name = self.intern(name);
                let [grid_x, grid_y, grid_z] = grid.map(|size| size as i32);
                let [block_x, block_y, block_z] = block.map(|size| size as i32);
                let record = CUpti_ActivityKernel7 {
                    kind,
                    start,
                    end,
                    completed: end,
                    deviceId: device,
                    contextId: context,
                    streamId: stream,
                    gridX: grid_x,
                    gridY: grid_y,
                    gridZ: grid_z,
                    blockX: block_x,
                    blockY: block_y,
                    blockZ: block_z,
                    name,
                    graphNodeId: graph_node,
                    ..CUpti_ActivityKernel7::default()
                };
                self.add(kind, record, completed);
            }
            ActivityOperation::Copy { from, to, bytes } => {
                let kind = CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMCPY;
                let record = CUpti_ActivityMemcpy5 {
                    kind,
                    srcKind: memory_kind(from).0 as u8,
                    dstKind: memory_kind(to).0 as u8,
                    bytes,
                    start,
                    end,
                    deviceId: device,
                    contextId: context,
                    streamId: stream,
                    graphNodeId: graph_node,
                    ..CUpti_ActivityMemcpy5::default()
                };
                self.add(kind, record, completed);
            }
            ActivityOperation::Set { bytes } => {
                let kind = CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMSET;
                let record = CUpti_ActivityMemset4 {
                    kind,
                    bytes,
                    start,
                    end,
                    deviceId: device,
                    contextId: context,
                    streamId: stream,
                    graphNodeId: graph_node,
                    ..CUpti_ActivityMemset4::default()
                };
                self.add(kind, record, completed);
            }
            ActivityOperation::Allocation {
                address,
                bytes,
                memory,
            }
            | ActivityOperation::Free {
                address,
                bytes,
                memory,
            } => {
                let kind = CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMORY2;
                let operation = match activity.operation {
                    ActivityOperation::Free { .. } => {
                        CUpti_ActivityMemoryOperationType::CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE
                    }
                    _ => CUpti_ActivityMemoryOperationType::CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION,
                };
                let record = CUpti_ActivityMemory3 {
                    kind,
                    memoryOperationType: operation,
                    memoryKind: memory_kind(memory),
                    address,
                    bytes,
                    timestamp: start,
                    processId: std::process::id(),
                    deviceId: device,
                    contextId: context,
                    streamId: stream,
                    isAsync: (stream != 0).into(),
                    ..CUpti_ActivityMemory3::default()
                };
                self.add(kind, record, completed);
            }
            ActivityOperation::Wait => {
                let kind = CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
                let record = CUpti_ActivitySynchronization {
                    kind,
                    type_: CUpti_ActivitySynchronizationType::CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT,
                    start,
                    end,
                    contextId: context,
                    streamId: stream,
                    ..CUpti_ActivitySynchronization::default()
                };
                self.add(kind, record, completed);
            }
            _ => {}
        }
    }

    /// Returns a copy of a name that lives as long as the process.
    fn intern(&mut self, name: &str) -> *const c_char {
        let names = self.names.get_or_insert_default();
        if let Some(interned) = names.get(name) {
            return interned.as_ptr();
        }
        let interned: &'static CString =
            Box::leak(Box::new(CString::new(name).unwrap_or_default()));
        names.insert(name.to_owned(), interned);
        interned.as_ptr()
    }

    /// Appends a record to the buffer. A buffer without space is completed, and another one is
    /// requested.
    fn add<R>(&mut self, kind: CUpti_ActivityKind, record: R, completed: &mut Vec<Completed>) {
        if !self.enabled.contains(&kind) {
            return;
        }
        if self
            .buffer
            .as_ref()
            .is_some_and(|buffer| !buffer.has_space(size_of::<R>()))
        {
            completed.extend(self.take_buffer());
        }
        if self.buffer.is_none() {
            self.buffer = self.request_buffer();
        }
        match &mut self.buffer {
            Some(buffer) if buffer.has_space(size_of::<R>()) => buffer.push(record),
            _ => self.dropped += 1,
        }
    }

    fn request_buffer(&self) -> Option<Buffer> {
        let request = self.request?;
        let mut start = ptr::null_mut();
        let mut size = 0;
        let mut max_records = 0;
        // SAFETY: the places are valid for writes, as the function expects.
        unsafe { request(&raw mut start, &raw mut size, &raw mut max_records) };
        if start.is_null() || !start.addr().is_multiple_of(ALIGNMENT) {
            return None;
        }
        let buffer = Buffer {
            start,
            size,
            used: 0,
            max_records,
            records: 0,
        };
        // SAFETY: a client that declares its buffers to be zeroed passes initialized bytes.
        if self.expects_zeros && unsafe { !buffer.contains_zeros() } {
            return None;
        }
        Some(buffer)
    }

    fn take_buffer(&mut self) -> Option<Completed> {
        Some(Completed {
            buffer: self.buffer.take()?,
            complete: self.complete,
        })
    }
}

impl Buffer {
    /// Returns `true` if all bytes are 0.
    ///
    /// # Safety
    ///
    /// The bytes are initialized.
    unsafe fn contains_zeros(&self) -> bool {
        // SAFETY: the client passed the buffer with this size, and the caller guarantees that it is
        // initialized.
        let bytes = unsafe { std::slice::from_raw_parts(self.start, self.size) };
        bytes.iter().all(|byte| *byte == 0)
    }

    fn has_space(&self, bytes: usize) -> bool {
        self.size - self.used >= bytes && (self.max_records == 0 || self.records < self.max_records)
    }

    fn push<R>(&mut self, record: R) {
        let end = self.start.wrapping_add(self.used).cast::<R>();
        // SAFETY: the buffer has space for the record, whose size is a multiple of the alignment of
        // the buffer.
        unsafe { end.write(record) };
        self.used += size_of::<R>();
        self.records += 1;
    }
}

impl Completed {
    fn deliver(self) {
        if let Some(complete) = self.complete {
            let Buffer {
                start, size, used, ..
            } = self.buffer;
            // SAFETY: the buffer is the client's, and its first `used` bytes are records.
            unsafe { complete(ptr::null_mut(), 0, start, size, used) };
        }
    }
}

fn memory_kind(memory: ActivityMemory) -> CUpti_ActivityMemoryKind {
    match memory {
        ActivityMemory::Pageable => CUpti_ActivityMemoryKind::CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE,
        ActivityMemory::Pinned => CUpti_ActivityMemoryKind::CUPTI_ACTIVITY_MEMORY_KIND_PINNED,
        ActivityMemory::Device => CUpti_ActivityMemoryKind::CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
        ActivityMemory::Managed => CUpti_ActivityMemoryKind::CUPTI_ACTIVITY_MEMORY_KIND_MANAGED,
        _ => CUpti_ActivityMemoryKind::CUPTI_ACTIVITY_MEMORY_KIND_UNKNOWN,
    }
}
