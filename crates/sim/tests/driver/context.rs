//! Contexts.

use std::ptr;

use curium_sys::{CUcontext, CUlimit, CUresult};

use crate::support::{Fixture, cu, get, handle, ok};

const INVALID_CONTEXT: CUresult = CUresult::CUDA_ERROR_INVALID_CONTEXT;
const DESTROYED: CUresult = CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED;

fn current(fixture: &Fixture) -> CUcontext {
    handle!(fixture.api, cuCtxGetCurrent(_))
}

#[test]
fn set_current_replaces_the_top_and_create_pushes() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let created = handle!(api, cuCtxCreate_v2(_, 0, 0));
    assert_eq!(current(&fixture), created);
    ok!(api, cuCtxSetCurrent(fixture.context));
    assert_eq!(current(&fixture), fixture.context);
    assert_eq!(handle!(api, cuCtxPopCurrent_v2(_)), fixture.context);
    assert_eq!(current(&fixture), fixture.context);
    ok!(api, cuCtxSetCurrent(ptr::null_mut()));
    assert!(current(&fixture).is_null());
    let mut popped = ptr::null_mut();
    assert_eq!(
        cu!(api, cuCtxPopCurrent_v2(&raw mut popped)),
        INVALID_CONTEXT
    );
    ok!(api, cuCtxPushCurrent_v2(created));
    ok!(api, cuCtxDestroy_v2(created));
    assert!(
        current(&fixture).is_null(),
        "the destroyed context was popped"
    );
}

#[test]
fn stacks_are_per_thread() {
    let fixture = Fixture::new();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| current(&fixture).is_null());
        assert!(other.join().expect("the other thread has not panicked"));
    });
    assert_eq!(current(&fixture), fixture.context);
}

// SAFETY: the functions and handles of a driver may be used on any thread.
unsafe impl Sync for Fixture {}

#[test]
fn calls_without_a_current_context_are_invalid() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    ok!(api, cuCtxSetCurrent(ptr::null_mut()));
    let (mut address, mut stream, mut event, mut device) = (0, ptr::null_mut(), ptr::null_mut(), 0);
    assert_eq!(
        cu!(api, cuMemAlloc_v2(&raw mut address, 4)),
        INVALID_CONTEXT
    );
    assert_eq!(
        cu!(api, cuStreamCreate(&raw mut stream, 0)),
        INVALID_CONTEXT
    );
    assert_eq!(cu!(api, cuEventCreate(&raw mut event, 0)), INVALID_CONTEXT);
    assert_eq!(cu!(api, cuCtxGetDevice(&raw mut device)), INVALID_CONTEXT);
    assert_eq!(cu!(api, cuCtxSynchronize()), INVALID_CONTEXT);
    assert_eq!(
        cu!(api, cuStreamSynchronize(ptr::null_mut())),
        INVALID_CONTEXT
    );
    assert_eq!(cu!(api, cuMemcpyDtoD_v2(1, 2, 0)), INVALID_CONTEXT);
}

#[test]
fn calls_that_name_a_stream_or_memory_need_no_current_context() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let stream = fixture.stream(1);
    let memory = fixture.alloc(4);
    let event = handle!(api, cuEventCreate(_, 0));
    ok!(api, cuCtxSetCurrent(ptr::null_mut()));
    ok!(api, cuMemsetD8Async(memory, 1, 4, stream));
    ok!(api, cuEventRecord(event, stream));
    ok!(api, cuStreamWaitEvent(stream, event, 0));
    ok!(api, cuStreamSynchronize(stream));
    let pooled = get!(api, cuMemAllocAsync(_, 4, stream));
    ok!(api, cuMemFreeAsync(pooled, stream));
    assert_eq!(get_context(&fixture, stream), fixture.context);
    ok!(api, cuEventDestroy_v2(event));
    ok!(api, cuMemFree_v2(memory));
}

fn get_context(fixture: &Fixture, stream: curium_sys::CUstream) -> CUcontext {
    let mut context = ptr::null_mut();
    ok!(fixture.api, cuStreamGetCtx(stream, &raw mut context));
    context
}

#[test]
fn primary_context_keeps_its_handle_and_ends_with_its_last_release() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    assert_eq!(
        handle!(api, cuDevicePrimaryCtxRetain(_, 0)),
        fixture.context
    );
    ok!(api, cuDevicePrimaryCtxRelease_v2(0));
    let stream = fixture.stream(0);
    ok!(api, cuDevicePrimaryCtxRelease_v2(0));
    assert_eq!(cu!(api, cuDevicePrimaryCtxRelease_v2(0)), INVALID_CONTEXT);
    assert_eq!(cu!(api, cuCtxSynchronize()), DESTROYED);
    assert_eq!(cu!(api, cuStreamSynchronize(stream)), DESTROYED);
    assert_eq!(current(&fixture), fixture.context);
    assert_eq!(
        handle!(api, cuDevicePrimaryCtxRetain(_, 0)),
        fixture.context
    );
    ok!(api, cuCtxSynchronize());
    assert_eq!(cu!(api, cuStreamSynchronize(stream)), DESTROYED);
    assert_eq!(fixture.simulator.live_handles().total(), 1);
}

#[test]
fn reset_ends_the_primary_context_until_it_is_retained_again() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    handle!(api, cuDevicePrimaryCtxRetain(_, 0));
    ok!(api, cuDevicePrimaryCtxReset_v2(0));
    assert_eq!(cu!(api, cuCtxSynchronize()), DESTROYED);
    handle!(api, cuDevicePrimaryCtxRetain(_, 0));
    ok!(api, cuCtxSynchronize());
    assert_eq!(cu!(api, cuCtxDestroy_v2(fixture.context)), INVALID_CONTEXT);
}

#[test]
fn context_destroyed_while_current_on_another_thread_is_destroyed_there() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let created = handle!(api, cuCtxCreate_v2(_, 0, 0));
    ok!(api, cuCtxPushCurrent_v2(fixture.context));
    ok!(api, cuCtxDestroy_v2(created));
    handle!(api, cuCtxPopCurrent_v2(_));
    assert_eq!(current(&fixture), created);
    let mut address = 0;
    assert_eq!(cu!(api, cuMemAlloc_v2(&raw mut address, 4)), DESTROYED);
    assert_eq!(cu!(api, cuCtxDestroy_v2(created)), DESTROYED);
    assert_eq!(cu!(api, cuCtxDestroy_v2(ptr::null_mut())), INVALID_CONTEXT);
}

#[test]
fn flags_of_the_primary_context_are_read_back() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    ok!(api, cuDevicePrimaryCtxSetFlags_v2(0, 4));
    let (mut flags, mut active) = (0, 0);
    ok!(
        api,
        cuDevicePrimaryCtxGetState(0, &raw mut flags, &raw mut active)
    );
    // A context can always map host memory, regardless of its flags.
    let map_host = 8;
    assert_eq!((flags | map_host, active), (4 | map_host, 1));
    assert_eq!(get!(api, cuCtxGetFlags(_)), 4 | map_host);
    assert_eq!(
        cu!(api, cuDevicePrimaryCtxSetFlags_v2(0, 0x400)),
        CUresult::CUDA_ERROR_INVALID_VALUE
    );
}

#[test]
fn limits_have_the_defaults_of_hardware_and_can_be_set() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    assert_eq!(
        get!(api, cuCtxGetLimit(_, CUlimit::CU_LIMIT_STACK_SIZE)),
        1024
    );
    assert_eq!(
        get!(api, cuCtxGetLimit(_, CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE)),
        8 << 20
    );
    ok!(api, cuCtxSetLimit(CUlimit::CU_LIMIT_STACK_SIZE, 2001));
    assert_eq!(
        get!(api, cuCtxGetLimit(_, CUlimit::CU_LIMIT_STACK_SIZE)),
        2016
    );
    let mut value = 0;
    let unknown = cu!(api, cuCtxGetLimit(&raw mut value, CUlimit(99)));
    assert_eq!(unknown, CUresult::CUDA_ERROR_INVALID_VALUE);
}

#[test]
fn ids_of_contexts_are_never_used_again() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let id = |context| get!(api, cuCtxGetId(context, _));
    let first = id(fixture.context);
    assert_eq!(id(ptr::null_mut()), first);
    ok!(api, cuDevicePrimaryCtxRelease_v2(0));
    handle!(api, cuDevicePrimaryCtxRetain(_, 0));
    assert_ne!(id(fixture.context), first);
}
