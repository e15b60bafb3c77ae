//! Events.

use std::ptr;

use curium_sys::{CUevent, CUresult};

use crate::support::{Fixture, cu, handle, ok};

const INVALID_HANDLE: CUresult = CUresult::CUDA_ERROR_INVALID_HANDLE;
const DISABLE_TIMING: u32 = 2;

fn event(fixture: &Fixture, flags: u32) -> CUevent {
    handle!(fixture.api, cuEventCreate(_, flags))
}

fn elapsed(fixture: &Fixture, start: CUevent, end: CUevent) -> (CUresult, f32) {
    let mut milliseconds = 0.0;
    (
        cu!(
            fixture.api,
            cuEventElapsedTime(&raw mut milliseconds, start, end)
        ),
        milliseconds,
    )
}

#[test]
fn event_that_was_never_recorded_has_happened_and_has_no_time() {
    let fixture = Fixture::new();
    let (first, second) = (event(&fixture, 0), event(&fixture, 0));
    ok!(fixture.api, cuEventQuery(first));
    ok!(fixture.api, cuEventSynchronize(first));
    assert_eq!(elapsed(&fixture, first, second).0, INVALID_HANDLE);
}

#[test]
fn pending_event_is_not_ready() {
    let fixture = Fixture::new();
    let stream = fixture.stream(1);
    let (first, second) = (event(&fixture, 0), event(&fixture, 0));
    ok!(fixture.api, cuEventRecord(first, stream));
    let gate = fixture.block(stream);
    ok!(fixture.api, cuEventRecord(second, stream));
    assert_eq!(
        cu!(fixture.api, cuEventQuery(second)),
        CUresult::CUDA_ERROR_NOT_READY
    );
    assert_eq!(
        elapsed(&fixture, first, second).0,
        CUresult::CUDA_ERROR_NOT_READY
    );
    gate.open();
    ok!(fixture.api, cuEventSynchronize(second));
    ok!(fixture.api, cuEventQuery(second));
}

#[test]
fn elapsed_time_covers_the_work_between_and_is_negative_backwards() {
    let fixture = Fixture::new();
    let stream = fixture.stream(1);
    let (first, second) = (event(&fixture, 0), event(&fixture, 0));
    ok!(fixture.api, cuEventRecord(first, stream));
    ok!(fixture.api, cuEventSynchronize(first));
    let gate = fixture.block(stream);
    ok!(fixture.api, cuEventRecord(second, stream));
    std::thread::sleep(std::time::Duration::from_millis(20));
    gate.open();
    ok!(fixture.api, cuEventSynchronize(second));
    let (code, forward) = elapsed(&fixture, first, second);
    assert_eq!(code, CUresult::CUDA_SUCCESS);
    assert!((20.0..10_000.0).contains(&forward), "{forward} ms");
    assert_eq!(elapsed(&fixture, second, first).1, -forward);
}

#[test]
fn event_without_timing_has_no_time() {
    let fixture = Fixture::new();
    let (timed, untimed) = (event(&fixture, 0), event(&fixture, DISABLE_TIMING));
    ok!(fixture.api, cuEventRecord(timed, ptr::null_mut()));
    ok!(fixture.api, cuEventRecord(untimed, ptr::null_mut()));
    ok!(fixture.api, cuEventSynchronize(untimed));
    assert_eq!(elapsed(&fixture, timed, untimed).0, INVALID_HANDLE);
}

#[test]
fn unknown_flags_and_interprocess_with_timing_are_invalid_values() {
    let fixture = Fixture::new();
    let mut event = ptr::null_mut();
    for flags in [4, 8, 0x80] {
        let code = cu!(fixture.api, cuEventCreate(&raw mut event, flags));
        assert_eq!(code, CUresult::CUDA_ERROR_INVALID_VALUE, "{flags}");
    }
    ok!(
        fixture.api,
        cuEventCreate(&raw mut event, 4 | DISABLE_TIMING)
    );
}

#[test]
fn event_is_recorded_in_its_own_context_and_waited_for_in_any() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let first = event(&fixture, 0);
    ok!(api, cuEventRecord(first, ptr::null_mut()));
    let other = handle!(api, cuCtxCreate_v2(_, 0, 0));
    assert_eq!(
        cu!(api, cuEventRecord(first, ptr::null_mut())),
        INVALID_HANDLE
    );
    ok!(api, cuStreamWaitEvent(ptr::null_mut(), first, 0));
    let second = event(&fixture, 0);
    ok!(api, cuEventRecord(second, ptr::null_mut()));
    ok!(api, cuCtxSynchronize());
    assert_eq!(elapsed(&fixture, first, second).0, INVALID_HANDLE);
    ok!(api, cuCtxDestroy_v2(other));
}

#[test]
fn destroyed_event_returns_context_is_destroyed_and_an_unknown_one_invalid_handle() {
    let fixture = Fixture::new();
    let event = event(&fixture, 0);
    ok!(fixture.api, cuEventDestroy_v2(event));
    assert_eq!(
        cu!(fixture.api, cuEventDestroy_v2(event)),
        CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED
    );
    assert_eq!(
        cu!(fixture.api, cuEventQuery(ptr::null_mut())),
        INVALID_HANDLE
    );
    assert_eq!(fixture.simulator.live_handles().events, 0);
}

#[test]
fn event_recorded_again_is_pending_again() {
    let fixture = Fixture::new();
    let stream = fixture.stream(1);
    let event = event(&fixture, 0);
    ok!(fixture.api, cuEventRecord(event, stream));
    ok!(fixture.api, cuEventSynchronize(event));
    let gate = fixture.block(stream);
    ok!(fixture.api, cuEventRecord(event, stream));
    assert_eq!(
        cu!(fixture.api, cuEventQuery(event)),
        CUresult::CUDA_ERROR_NOT_READY
    );
    gate.open();
    ok!(fixture.api, cuEventSynchronize(event));
}
