//! Injected faults, as programs observe them.

use std::time::{Duration, Instant};

use curium_sim::{Config, Fault};
use curium_sys::{CUresult, Function};

use crate::support::{Fixture, cu, get, ok};

#[test]
fn lost_devices_fail_their_calls_and_driver_queries_still_succeed() {
    let fixture = Fixture::new();
    let stream = fixture.stream(1);
    fixture.simulator.inject(
        Fault::on(Function::cuStreamSynchronize)
            .call(2)
            .loses_devices(),
    );
    ok!(fixture.api, cuStreamSynchronize(stream));
    let lost = CUresult::CUDA_ERROR_UNKNOWN;
    assert_eq!(cu!(fixture.api, cuStreamSynchronize(stream)), lost);
    assert_eq!(cu!(fixture.api, cuStreamSynchronize(stream)), lost);
    let mut address = 0;
    assert_eq!(cu!(fixture.api, cuMemAlloc_v2(&raw mut address, 16)), lost);
    let count: i32 = get!(fixture.api, cuDeviceGetCount(_));
    assert_eq!(count, 1);
}

#[test]
fn delayed_call_has_its_effect_later() {
    let delay = Duration::from_millis(30);
    let fixture = Fixture::with(Config::new().with_workers(1));
    fixture
        .simulator
        .inject(Fault::on(Function::cuCtxSynchronize).call(1).delays(delay));
    let start = Instant::now();
    ok!(fixture.api, cuCtxSynchronize());
    assert!(start.elapsed() >= delay);
}

#[test]
fn summary_lists_calls_and_live_objects() {
    let fixture = Fixture::new();
    let _leaked = fixture.alloc(64);
    let summary = fixture.simulator.summary();
    assert!(
        summary.calls.contains(&(Function::cuMemAlloc_v2, 1)),
        "{summary}"
    );
    assert!(
        summary.to_string().contains("live device allocations: 1\n"),
        "{summary}"
    );
}
