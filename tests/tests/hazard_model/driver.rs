//! A driver that only records the order of work.

use std::cell::RefCell;
use std::ptr;

use curium_driver::AsRawStream as _;
use curium_driver::{Context, Driver, Stream};
use curium_sys::{
    Api, CUDA_GRAPH_INSTANTIATE_PARAMS, CUcontext, CUdevice, CUevent, CUgraph, CUgraphExec,
    CUgraphNode, CUresult, CUstream, CUstreamCaptureMode, CUstreamCaptureStatus,
};

/// A set of work items, identified by number.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct WorkSet(u64);

/// The driver of this thread, and its records.
pub(crate) struct RecordingDriver {
    context: Context,
}

#[derive(Default)]
struct State {
    /// The work ordered before the next item of each stream, and before each event. The index is
    /// the handle.
    past: Vec<WorkSet>,
    /// The stream on which each event was last recorded, by event handle.
    recorded: Vec<usize>,
    /// The inserted waits: the waiting stream, and the stream it waits for.
    waits: Vec<(usize, usize)>,
    /// The number of recorded events.
    records: usize,
    calls: u64,
    /// The capture of each stream; 0 is none.
    captures: Vec<u64>,
    /// `true` if recorded work is not complete yet.
    is_busy: bool,
    /// The number of calls until one fails; 0 if none fails.
    fails_in: u64,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

impl WorkSet {
    pub(crate) fn one(number: usize) -> Self {
        Self(1 << number)
    }

    pub(crate) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl RecordingDriver {
    pub(crate) fn new() -> Self {
        // SAFETY: the functions implement streams and events as far as the model needs.
        let driver = unsafe { Driver::from_api(api()) }.expect("the driver initializes");
        let context = driver
            .device(0)
            .and_then(|device| device.primary_context())
            .expect("no primary context");
        Self { context }
    }

    /// Returns the context of all streams.
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// Returns a new stream.
    pub(crate) fn stream(&self) -> Stream {
        self.context.stream().expect("failed to create a stream")
    }

    /// Discards the records of dropped streams.
    pub(crate) fn clear(&self) {
        STATE.with_borrow_mut(|state| {
            *state = State {
                calls: state.calls,
                ..State::default()
            }
        });
    }

    /// Sets the capture of a stream; 0 ends it.
    pub(crate) fn set_capture(&self, stream: &Stream, capture: u64) {
        STATE.with_borrow_mut(|state| state.captures[index(stream.as_raw())] = capture);
    }

    /// Sets whether queried events are incomplete.
    pub(crate) fn set_busy(&self, is_busy: bool) {
        STATE.with_borrow_mut(|state| state.is_busy = is_busy);
    }

    /// Makes the `call`-th record or wait from now on fail.
    pub(crate) fn fail(&self, call: u64) {
        STATE.with_borrow_mut(|state| state.fails_in = call);
    }

    /// Returns the total number of calls.
    pub(crate) fn calls(&self) -> u64 {
        STATE.with_borrow(|state| state.calls)
    }

    /// Enqueues a work item on a stream, and returns the set of items ordered before it.
    pub(crate) fn work(&self, stream: &Stream, number: usize) -> WorkSet {
        STATE.with_borrow_mut(|state| {
            let past = &mut state.past[index(stream.as_raw())];
            std::mem::replace(past, past.with(WorkSet::one(number)))
        })
    }

    /// Returns the waits since the last call of this function, and the number of recorded events.
    pub(crate) fn take_waits(&self) -> (Vec<(usize, usize)>, usize) {
        STATE.with_borrow_mut(|state| {
            (
                std::mem::take(&mut state.waits),
                std::mem::take(&mut state.records),
            )
        })
    }
}

/// Returns the index of a stream in the records.
pub(crate) fn index(stream: CUstream) -> usize {
    stream.addr() - 1
}

impl State {
    fn add(&mut self) -> usize {
        self.past.push(WorkSet::default());
        self.recorded.push(usize::MAX);
        self.captures.push(0);
        self.past.len()
    }

    /// Counts a call that may fail, and returns its result.
    fn admit(&mut self) -> CUresult {
        self.calls += 1;
        if self.fails_in > 0 {
            self.fails_in -= 1;
            if self.fails_in == 0 {
                return CUresult::CUDA_ERROR_UNKNOWN;
            }
        }
        CUresult::CUDA_SUCCESS
    }
}

fn api() -> Api {
    let mut api = Api::empty();
    api.cuDriverGetVersion = Some(version);
    api.cuInit = Some(init);
    api.cuDeviceGet = Some(device);
    api.cuDevicePrimaryCtxRetain = Some(retain);
    api.cuDevicePrimaryCtxRelease_v2 = Some(release);
    api.cuCtxGetCurrent = Some(current);
    api.cuStreamCreateWithPriority = Some(create_stream);
    api.cuStreamDestroy_v2 = Some(destroy_stream);
    api.cuStreamIsCapturing = Some(is_capturing);
    api.cuStreamGetCaptureInfo_v2 = Some(capture_info);
    api.cuThreadExchangeStreamCaptureMode = Some(exchange_mode);
    api.cuEventQuery = Some(query);
    api.cuEventCreate = Some(create_event);
    api.cuEventDestroy_v2 = Some(destroy_event);
    api.cuEventRecord = Some(record);
    api.cuStreamWaitEvent = Some(wait);
    api.cuStreamBeginCapture_v2 = Some(begin_capture);
    api.cuStreamEndCapture = Some(end_capture);
    api.cuGraphDestroy = Some(destroy_graph);
    api.cuGraphInstantiateWithParams = Some(instantiate);
    api.cuGraphLaunch = Some(launch);
    api.cuGraphExecDestroy = Some(destroy_executable);
    api
}

/// Writes `value` to an output pointer.
///
/// # Safety
///
/// `output` is valid for writes.
unsafe fn answer<T>(output: *mut T, value: T) -> CUresult {
    STATE.with_borrow_mut(|state| state.calls += 1);
    // SAFETY: the caller guarantees the pointer.
    unsafe { output.write(value) };
    CUresult::CUDA_SUCCESS
}

unsafe extern "C" fn version(output: *mut i32) -> CUresult {
    // SAFETY: the wrapper under test passes an output pointer that is valid for writes.
    unsafe { answer(output, 13_000) }
}

unsafe extern "C" fn init(_: u32) -> CUresult {
    CUresult::CUDA_SUCCESS
}

unsafe extern "C" fn device(output: *mut CUdevice, ordinal: i32) -> CUresult {
    // SAFETY: the wrapper under test passes an output pointer that is valid for writes.
    unsafe { answer(output, ordinal) }
}

unsafe extern "C" fn retain(output: *mut CUcontext, _: CUdevice) -> CUresult {
    // SAFETY: the wrapper under test passes an output pointer that is valid for writes.
    unsafe { answer(output, ptr::without_provenance_mut(1)) }
}

unsafe extern "C" fn release(_: CUdevice) -> CUresult {
    CUresult::CUDA_SUCCESS
}

/// Returns the only context, which is current on every thread.
unsafe extern "C" fn current(output: *mut CUcontext) -> CUresult {
    // SAFETY: the wrapper under test passes an output pointer that is valid for writes.
    unsafe { answer(output, ptr::without_provenance_mut(1)) }
}

unsafe extern "C" fn create_stream(output: *mut CUstream, _: u32, _: i32) -> CUresult {
    let handle = STATE.with_borrow_mut(State::add);
    // SAFETY: the wrapper under test passes an output pointer that is valid for writes.
    unsafe { answer(output, ptr::without_provenance_mut(handle)) }
}

unsafe extern "C" fn destroy_stream(_: CUstream) -> CUresult {
    CUresult::CUDA_SUCCESS
}

unsafe extern "C" fn is_capturing(
    stream: CUstream,
    output: *mut CUstreamCaptureStatus,
) -> CUresult {
    let status = match stream_capture(stream) {
        0 => CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE,
        _ => CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE,
    };
    // SAFETY: the wrapper under test passes an output pointer that is valid for writes.
    unsafe { answer(output, status) }
}

unsafe extern "C" fn capture_info(
    stream: CUstream,
    _: *mut CUstreamCaptureStatus,
    output: *mut u64,
    _: *mut CUgraph,
    _: *mut *const CUgraphNode,
    _: *mut usize,
) -> CUresult {
    // SAFETY: the wrapper under test passes an output pointer that is valid for writes.
    unsafe { answer(output, stream_capture(stream)) }
}

fn stream_capture(stream: CUstream) -> u64 {
    STATE.with_borrow(|state| state.captures[index(stream)])
}

/// Begins a capture, which is identified by the stream's handle.
unsafe extern "C" fn begin_capture(stream: CUstream, _: CUstreamCaptureMode) -> CUresult {
    STATE.with_borrow_mut(|state| state.captures[index(stream)] = stream.addr() as u64);
    CUresult::CUDA_SUCCESS
}

unsafe extern "C" fn end_capture(stream: CUstream, output: *mut CUgraph) -> CUresult {
    STATE.with_borrow_mut(|state| state.captures[index(stream)] = 0);
    // SAFETY: the wrapper under test passes an output pointer that is valid for writes.
    unsafe { answer(output, ptr::without_provenance_mut(1)) }
}

unsafe extern "C" fn destroy_graph(_: CUgraph) -> CUresult {
    CUresult::CUDA_SUCCESS
}

unsafe extern "C" fn instantiate(
    output: *mut CUgraphExec,
    _: CUgraph,
    _: *mut CUDA_GRAPH_INSTANTIATE_PARAMS,
) -> CUresult {
    // SAFETY: the wrapper under test passes an output pointer that is valid for writes.
    unsafe { answer(output, ptr::without_provenance_mut(1)) }
}

unsafe extern "C" fn launch(_: CUgraphExec, _: CUstream) -> CUresult {
    CUresult::CUDA_SUCCESS
}

unsafe extern "C" fn destroy_executable(_: CUgraphExec) -> CUresult {
    CUresult::CUDA_SUCCESS
}

/// Leaves the mode unchanged: there is no other capture to invalidate.
unsafe extern "C" fn exchange_mode(_: *mut CUstreamCaptureMode) -> CUresult {
    CUresult::CUDA_SUCCESS
}

unsafe extern "C" fn query(_: CUevent) -> CUresult {
    let is_busy = STATE.with_borrow(|state| state.is_busy);
    if is_busy {
        CUresult::CUDA_ERROR_NOT_READY
    } else {
        CUresult::CUDA_SUCCESS
    }
}

unsafe extern "C" fn create_event(output: *mut CUevent, _: u32) -> CUresult {
    let handle = STATE.with_borrow_mut(State::add);
    // SAFETY: the wrapper under test passes an output pointer that is valid for writes.
    unsafe { answer(output, ptr::without_provenance_mut(handle)) }
}

unsafe extern "C" fn destroy_event(_: CUevent) -> CUresult {
    CUresult::CUDA_SUCCESS
}

unsafe extern "C" fn record(event: CUevent, stream: CUstream) -> CUresult {
    STATE.with_borrow_mut(|state| {
        let code = state.admit();
        if code == CUresult::CUDA_SUCCESS {
            let event = event.addr() - 1;
            let stream = index(stream);
            state.past[event] = state.past[stream];
            state.recorded[event] = stream;
            state.records += 1;
        }
        code
    })
}

unsafe extern "C" fn wait(stream: CUstream, event: CUevent, _: u32) -> CUresult {
    STATE.with_borrow_mut(|state| {
        let code = state.admit();
        if code == CUresult::CUDA_SUCCESS {
            let event = event.addr() - 1;
            let stream = index(stream);
            state.past[stream] = state.past[stream].with(state.past[event]);
            let recorded = state.recorded[event];
            state.waits.push((stream, recorded));
        }
        code
    })
}
