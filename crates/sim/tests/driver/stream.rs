//! Streams and host functions.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use curium_sim::Config;
use curium_sys::{Api, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, CUresult, CUstream};

use crate::support::{Fixture, cu, get, handle, ok};

const NOT_READY: CUresult = CUresult::CUDA_ERROR_NOT_READY;
const BLOCKING: u32 = 0;
const NON_BLOCKING: u32 = 1;

/// Returns `true` if a stream becomes idle while other streams stay blocked. Only a failed test waits for the whole time, which a busy
/// machine and an emulator need.
fn comes_to_rest(fixture: &Fixture, stream: CUstream) -> bool {
    is_idle_within(fixture, stream, Duration::from_secs(60))
}

/// Returns `true` if a stream is still busy after some time.
fn stays_busy(fixture: &Fixture, stream: CUstream) -> bool {
    !is_idle_within(fixture, stream, Duration::from_millis(200))
}

fn is_idle_within(fixture: &Fixture, stream: CUstream, time: Duration) -> bool {
    let deadline = Instant::now() + time;
    while Instant::now() < deadline {
        match cu!(fixture.api, cuStreamQuery(stream)) {
            CUresult::CUDA_SUCCESS => return true,
            code => assert_eq!(code, NOT_READY),
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    false
}

fn put_work(fixture: &Fixture, stream: CUstream) {
    let memory = fixture.alloc(4);
    ok!(fixture.api, cuMemsetD8Async(memory, 1, 4, stream));
}

#[test]
fn work_is_pending_until_it_has_run() {
    let fixture = Fixture::new();
    let stream = fixture.stream(NON_BLOCKING);
    let gate = fixture.block(stream);
    put_work(&fixture, stream);
    assert_eq!(cu!(fixture.api, cuStreamQuery(stream)), NOT_READY);
    gate.open();
    ok!(fixture.api, cuStreamSynchronize(stream));
    ok!(fixture.api, cuStreamQuery(stream));
}

#[test]
fn independent_streams_do_not_wait_for_each_other() {
    let fixture = Fixture::new();
    let (blocked, free) = (fixture.stream(BLOCKING), fixture.stream(BLOCKING));
    let gate = fixture.block(blocked);
    put_work(&fixture, free);
    assert!(comes_to_rest(&fixture, free));
    gate.open();
}

#[test]
fn legacy_stream_waits_for_blocking_streams_only() {
    let fixture = Fixture::new();
    let (blocking, non_blocking) = (fixture.stream(BLOCKING), fixture.stream(NON_BLOCKING));
    let gate = fixture.block(non_blocking);
    put_work(&fixture, ptr::null_mut());
    assert!(comes_to_rest(&fixture, ptr::null_mut()));
    gate.open();
    let gate = fixture.block(blocking);
    put_work(&fixture, CU_STREAM_LEGACY);
    assert!(stays_busy(&fixture, CU_STREAM_LEGACY));
    gate.open();
    ok!(fixture.api, cuStreamSynchronize(CU_STREAM_LEGACY));
}

#[test]
fn blocking_and_per_thread_streams_wait_for_the_legacy_stream_and_non_blocking_do_not() {
    let fixture = Fixture::new();
    let (blocking, non_blocking) = (fixture.stream(BLOCKING), fixture.stream(NON_BLOCKING));
    let gate = fixture.block(ptr::null_mut());
    for stream in [blocking, non_blocking, CU_STREAM_PER_THREAD] {
        put_work(&fixture, stream);
    }
    assert!(comes_to_rest(&fixture, non_blocking));
    assert!(stays_busy(&fixture, blocking));
    assert!(stays_busy(&fixture, CU_STREAM_PER_THREAD));
    gate.open();
    ok!(fixture.api, cuCtxSynchronize());
}

#[test]
fn legacy_stream_waits_for_the_work_of_a_destroyed_stream() {
    let fixture = Fixture::new();
    let stream = fixture.stream(BLOCKING);
    let gate = fixture.block(stream);
    ok!(fixture.api, cuStreamDestroy_v2(stream));
    put_work(&fixture, ptr::null_mut());
    assert!(stays_busy(&fixture, ptr::null_mut()));
    gate.open();
    ok!(fixture.api, cuStreamSynchronize(ptr::null_mut()));
}

#[test]
fn stream_waits_for_the_record_at_the_time_of_the_enqueued_wait() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let (producer, consumer) = (fixture.stream(NON_BLOCKING), fixture.stream(NON_BLOCKING));
    let event = handle!(api, cuEventCreate(_, 2));
    ok!(api, cuStreamWaitEvent(consumer, event, 0));
    assert!(comes_to_rest(&fixture, consumer));
    let gate = fixture.block(producer);
    ok!(api, cuEventRecord(event, producer));
    ok!(api, cuStreamWaitEvent(consumer, event, 0));
    put_work(&fixture, consumer);
    ok!(api, cuEventDestroy_v2(event));
    assert!(stays_busy(&fixture, consumer));
    gate.open();
    ok!(api, cuStreamSynchronize(consumer));
}

#[test]
fn free_waits_for_all_streams_and_allocation_for_none() {
    let fixture = Fixture::new();
    let stream = fixture.stream(NON_BLOCKING);
    let memory = fixture.alloc(4);
    let gate = fixture.block(stream);
    fixture.alloc(4);
    fixture.upload(memory, &[1]);
    std::thread::scope(|scope| {
        let opener = scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            gate.open();
        });
        let started = Instant::now();
        ok!(fixture.api, cuMemFree_v2(memory));
        assert!(started.elapsed() >= Duration::from_millis(40));
        opener.join().expect("the gate was opened");
    });
}

#[test]
fn flags_and_priorities_are_kept_within_limits() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let (mut least, mut greatest) = (9, 9);
    ok!(
        api,
        cuCtxGetStreamPriorityRange(&raw mut least, &raw mut greatest)
    );
    assert_eq!((least, greatest), (0, -5));
    let stream = handle!(api, cuStreamCreateWithPriority(_, NON_BLOCKING, -100));
    assert_eq!(get!(api, cuStreamGetPriority(stream, _)), -5);
    assert_eq!(get!(api, cuStreamGetFlags(stream, _)), NON_BLOCKING);
    let mut stream = ptr::null_mut();
    assert_eq!(
        cu!(api, cuStreamCreate(&raw mut stream, 2)),
        CUresult::CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(
        cu!(api, cuStreamCreate(ptr::null_mut(), 0)),
        CUresult::CUDA_ERROR_INVALID_VALUE
    );
}

#[test]
fn default_streams_cannot_be_destroyed_and_share_an_id() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    for stream in [ptr::null_mut(), CU_STREAM_LEGACY, CU_STREAM_PER_THREAD] {
        assert_eq!(
            cu!(api, cuStreamDestroy_v2(stream)),
            CUresult::CUDA_ERROR_INVALID_HANDLE
        );
    }
    let id = |stream| get!(api, cuStreamGetId(stream, _));
    assert_eq!(id(ptr::null_mut()), id(CU_STREAM_LEGACY));
    assert_ne!(id(ptr::null_mut()), id(CU_STREAM_PER_THREAD));
}

#[test]
fn destroyed_stream_is_an_invalid_handle() {
    let fixture = Fixture::new();
    let stream = fixture.stream(BLOCKING);
    ok!(fixture.api, cuStreamDestroy_v2(stream));
    assert_eq!(
        cu!(fixture.api, cuStreamDestroy_v2(stream)),
        CUresult::CUDA_ERROR_INVALID_HANDLE
    );
    assert_eq!(
        cu!(fixture.api, cuStreamSynchronize(stream)),
        CUresult::CUDA_ERROR_INVALID_HANDLE
    );
    assert_eq!(fixture.simulator.live_handles().streams, 0);
}

/// The observations of a host function, and the functions that it calls.
struct Seen {
    api: Api,
    code: AtomicU32,
    thread: std::sync::Mutex<Option<std::thread::ThreadId>>,
}

unsafe extern "C" fn call_the_driver(data: *mut c_void) {
    // SAFETY: the test passes a `Seen` that outlives the stream's work.
    let seen = unsafe { &*data.cast_const().cast::<Seen>() };
    let mut count = 0;
    seen.code.store(
        cu!(seen.api, cuDeviceGetCount(&raw mut count)).0,
        Ordering::Release,
    );
    *seen.thread.lock().expect("no other thread has panicked") = Some(std::thread::current().id());
}

#[test]
fn host_function_runs_on_another_thread_where_the_driver_is_not_permitted() {
    let fixture = Fixture::new();
    let seen = Seen {
        api: fixture.api.clone(),
        code: AtomicU32::new(0),
        thread: std::sync::Mutex::new(None),
    };
    let data = (&raw const seen).cast_mut().cast();
    ok!(
        fixture.api,
        cuLaunchHostFunc(ptr::null_mut(), Some(call_the_driver), data)
    );
    ok!(fixture.api, cuStreamSynchronize(ptr::null_mut()));
    assert_eq!(
        CUresult(seen.code.load(Ordering::Acquire)),
        CUresult::CUDA_ERROR_NOT_PERMITTED
    );
    let thread = seen
        .thread
        .into_inner()
        .expect("the host function has not panicked");
    assert!(thread.is_some_and(|thread| thread != std::thread::current().id()));
    let null = cu!(
        fixture.api,
        cuLaunchHostFunc(ptr::null_mut(), None, ptr::null_mut())
    );
    assert_eq!(null, CUresult::CUDA_ERROR_INVALID_VALUE);
}

/// Returns the order in which two streams with 8 writers each ran, as their interleaved marks.
fn interleaving(seed: u64) -> Vec<u8> {
    let fixture = Fixture::with(
        Config::new()
            .with_seed(seed)
            .with_workers(1)
            .with_memory_budget(1 << 20),
    );
    let api = &fixture.api;
    let streams = [fixture.stream(NON_BLOCKING), fixture.stream(NON_BLOCKING)];
    let memory = fixture.alloc(32);
    // Each step moves the marks by one position, and inserts the stream's own mark at the front.
    ok!(api, cuMemsetD8_v2(memory, 0, 32));
    ok!(api, cuCtxSynchronize());
    for _ in 0..8 {
        for (stream, mark) in streams.into_iter().zip(1_u8..) {
            ok!(api, cuMemcpyDtoDAsync_v2(memory + 1, memory, 31, stream));
            ok!(api, cuMemsetD8Async(memory, mark, 1, stream));
        }
    }
    ok!(api, cuCtxSynchronize());
    fixture.download(memory, 32)
}

#[test]
fn same_seed_gives_the_same_order_and_some_seed_another() {
    assert_eq!(interleaving(1), interleaving(1));
    assert!((2..6).any(|seed| interleaving(seed) != interleaving(1)));
}
