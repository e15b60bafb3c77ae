//! Injected faults, as programs observe them.

use crate::TestResult;
use std::time::{Duration, Instant};

use curium_sim::{Config, Fault, FaultPlan};
use curium_sys::{CUresult, Function};

use crate::simulator::fresh;
use crate::support::{Fixture, cu, get, ok};

#[test]
fn lost_devices_fail_their_calls() {
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
fn delayed_call() {
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
fn summary_lists_calls() {
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

#[test]
fn planned_fault_applies() -> TestResult {
    let fault = Fault::on(Function::cuInit)
        .call(1)
        .returns(CUresult::CUDA_ERROR_SYSTEM_NOT_READY);
    let (simulator, api) = fresh(Config::new().with_faults(FaultPlan::new().with(fault)))?;
    assert_eq!(cu!(api, cuInit(0)), CUresult::CUDA_ERROR_SYSTEM_NOT_READY);
    ok!(api, cuInit(0));
    simulator.inject(Fault::on(Function::cuInit).always());
    assert_eq!(cu!(api, cuInit(0)), CUresult::CUDA_ERROR_UNKNOWN);
    simulator.clear_faults();
    ok!(api, cuInit(0));
    Ok(())
}

#[test]
fn fault_applies_to_its_call() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    fixture.simulator.inject(
        Fault::on(Function::cuMemAlloc_v2)
            .call(2)
            .returns(CUresult::CUDA_ERROR_OUT_OF_MEMORY),
    );
    let before = fixture.simulator.calls(Function::cuMemAlloc_v2);
    fixture.alloc(4);
    let mut address = 0;
    assert_eq!(
        cu!(api, cuMemAlloc_v2(&raw mut address, 4)),
        CUresult::CUDA_ERROR_OUT_OF_MEMORY
    );
    fixture.alloc(4);
    assert_eq!(fixture.simulator.calls(Function::cuMemAlloc_v2) - before, 3);
    assert_eq!(fixture.simulator.live_handles().device_allocations, 2);
}
