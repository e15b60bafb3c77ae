//! Options of the simulator.

use crate::TestResult;
use std::ptr;

use curium_sim::{Config, Simulator};
use curium_sys::{CUgraph, CUgraphNodeParams, CUgraphNodeType, CUresult, CudaVersion, Function};

use crate::support::{Fixture, cu, get, handle, ok};

const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;

/// Returns a simulator that is not initialized, and its functions.
pub(crate) fn fresh(config: Config) -> TestResult<(Simulator, curium_sys::Api)> {
    let simulator = Simulator::new(config)?;
    let api = simulator.api();
    Ok((simulator, api))
}

#[test]
fn driver_without_devices() -> TestResult {
    let (_simulator, api) = fresh(Config::new().with_devices(0))?;
    assert_eq!(cu!(api, cuInit(0)), CUresult::CUDA_ERROR_NO_DEVICE);
    Ok(())
}

#[test]
fn dropped_simulator_ends() -> TestResult {
    let (simulator, api) = fresh(Config::new())?;
    ok!(api, cuInit(0));
    drop(simulator);
    // A later simulator reuses the slot only after all other slots.
    assert_eq!(cu!(api, cuInit(0)), CUresult::CUDA_ERROR_DEINITIALIZED);
    Ok(())
}

#[test]
fn simulators_are_independent() {
    let first = Fixture::new();
    let second = Fixture::new();
    let stream = first.stream(0);
    assert_eq!(
        cu!(second.api, cuStreamSynchronize(stream)),
        CUresult::CUDA_ERROR_INVALID_HANDLE
    );
    let memory = first.alloc(4);
    assert_eq!(cu!(second.api, cuMemFree_v2(memory)), INVALID);
    assert_eq!(second.simulator.live_handles().streams, 0);
}

/// Newer and omitted functions are missing.
#[test]
fn newer_functions_are_missing() -> TestResult {
    let config = Config::new()
        .with_driver_version(CudaVersion::new(12, 0))
        .without(Function::cuMemAllocAsync);
    let (_simulator, api) = fresh(config)?;
    assert_eq!(get!(api, cuDriverGetVersion(_)), 12000);
    assert!(api.cuMemAllocAsync.is_none());
    assert!(api.cuCtxCreate_v4.is_none());
    let expected = Function::all()
        .filter(|function| function.since() > CudaVersion::new(12, 0))
        .count()
        + 1;
    assert_eq!(api.absent().count(), expected);
    Ok(())
}

#[test]
fn unimplemented_functions() {
    let fixture = Fixture::new();
    assert_eq!(
        cu!(fixture.api, cuGraphicsUnregisterResource(ptr::null_mut())),
        CUresult::CUDA_ERROR_NOT_SUPPORTED
    );
    assert_eq!(
        fixture.simulator.unsupported_calls(),
        [(Function::cuGraphicsUnregisterResource, 1)]
    );
    assert_eq!(
        fixture
            .simulator
            .calls(Function::cuGraphicsUnregisterResource),
        1
    );
}

#[test]
fn private_tables_are_missing() {
    let Fixture { api, .. } = &Fixture::new();
    let mut table = ptr::dangling();
    let id = curium_sys::CUuuid { bytes: [1; 16] };
    assert_eq!(
        cu!(api, cuGetExportTable(&raw mut table, &raw const id)),
        INVALID
    );
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
    let streams = [fixture.stream(1), fixture.stream(1)];
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
fn seed_determines_stream_order() {
    assert_eq!(interleaving(1), interleaving(1));
    assert!((2..6).any(|seed| interleaving(seed) != interleaving(1)));
}

#[test]
fn semaphore_nodes() {
    let fixture = Fixture::new();
    let graph: CUgraph = handle!(fixture.api, cuGraphCreate(_, 0));
    for kind in [
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL,
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT,
    ] {
        let mut node = ptr::null_mut();
        let mut params = CUgraphNodeParams {
            type_: kind,
            ..CUgraphNodeParams::default()
        };
        let code = cu!(
            fixture.api,
            cuGraphAddNode_v2(
                &raw mut node,
                graph,
                ptr::null(),
                ptr::null(),
                0,
                &raw mut params
            )
        );
        assert_eq!(code, CUresult::CUDA_ERROR_NOT_SUPPORTED);
    }
}
