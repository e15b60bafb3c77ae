//! Memory that graphs allocate, and its lifetime.

use std::ptr;

use curium_sys::{
    CUDA_MEM_ALLOC_NODE_PARAMS, CUdeviceptr, CUgraph, CUgraphExec, CUgraphMem_attribute,
    CUgraphNode, CUmemAllocationType, CUmemLocationType, CUresult, CUstreamCaptureMode,
};

use crate::support::{Fixture, SUCCESS, cu, get, handle, ok};

const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;

fn graph(fixture: &Fixture) -> CUgraph {
    handle!(fixture.api, cuGraphCreate(_, 0))
}

fn instantiate(fixture: &Fixture, graph: CUgraph) -> CUgraphExec {
    handle!(fixture.api, cuGraphInstantiateWithFlags(_, graph, 0))
}

fn launch(fixture: &Fixture, executable: CUgraphExec) {
    ok!(fixture.api, cuGraphLaunch(executable, ptr::null_mut()));
    ok!(fixture.api, cuCtxSynchronize());
}

/// Returns a graph that allocates memory and does not free it.
fn allocating(fixture: &Fixture) -> (CUgraph, CUdeviceptr) {
    let graph = graph(fixture);
    let mut params = CUDA_MEM_ALLOC_NODE_PARAMS {
        bytesize: 16,
        ..CUDA_MEM_ALLOC_NODE_PARAMS::default()
    };
    params.poolProps.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    let _: CUgraphNode = handle!(
        fixture.api,
        cuGraphAddMemAllocNode(_, graph, ptr::null(), 0, &raw mut params)
    );
    (graph, params.dptr)
}

fn free_node(fixture: &Fixture, graph: CUgraph, address: CUdeviceptr) -> CUresult {
    let mut node = ptr::null_mut();
    cu!(
        fixture.api,
        cuGraphAddMemFreeNode(&raw mut node, graph, ptr::null(), 0, address)
    )
}

/// An allocation outlives its graph and the executable.
#[test]
fn allocation_outlives_its_graph() {
    let fixture = Fixture::new();
    let (graph, memory) = allocating(&fixture);
    let executable = instantiate(&fixture, graph);
    launch(&fixture, executable);
    fixture.upload(memory, &[5; 16]);
    ok!(fixture.api, cuGraphDestroy(graph));
    ok!(fixture.api, cuGraphExecDestroy(executable));
    assert_eq!(fixture.download(memory, 16), [5; 16]);
    assert_eq!(fixture.simulator.live_handles().device_allocations, 1);
    ok!(fixture.api, cuMemFree_v2(memory));
    assert_eq!(fixture.simulator.live_handles().device_allocations, 0);
    assert_eq!(cu!(fixture.api, cuMemFree_v2(memory)), INVALID);
}

#[test]
fn unlaunched_allocation_ends() {
    let fixture = Fixture::new();
    let (graph, memory) = allocating(&fixture);
    let executable = instantiate(&fixture, graph);
    ok!(fixture.api, cuGraphDestroy(graph));
    launch(&fixture, executable);
    ok!(fixture.api, cuMemFree_v2(memory));
    launch(&fixture, executable);
    ok!(fixture.api, cuMemFree_v2(memory));
    ok!(fixture.api, cuGraphExecDestroy(executable));
    assert_eq!(fixture.simulator.live_handles().device_allocations, 0);
}

#[test]
fn orphan_is_freed_in_stream_order() {
    let fixture = Fixture::new();
    let (graph, memory) = allocating(&fixture);
    let executable = instantiate(&fixture, graph);
    launch(&fixture, executable);
    ok!(fixture.api, cuGraphDestroy(graph));
    ok!(fixture.api, cuGraphExecDestroy(executable));
    let stream = fixture.stream(1);
    let gate = fixture.block(stream);
    ok!(fixture.api, cuMemsetD8Async(memory, 1, 16, stream));
    ok!(fixture.api, cuMemFreeAsync(memory, stream));
    gate.open();
    ok!(fixture.api, cuStreamSynchronize(stream));
    assert_eq!(fixture.simulator.live_handles().device_allocations, 0);
}

/// An allocation outlives its graph until the launch ends.
#[test]
fn allocation_lives_for_a_launch() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let stream = fixture.stream(1);
    let result = fixture.alloc(16);
    ok!(
        api,
        cuStreamBeginCapture_v2(stream, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED)
    );
    let memory = get!(api, cuMemAllocAsync(_, 16, stream));
    ok!(api, cuMemsetD8Async(memory, 7, 16, stream));
    ok!(api, cuMemcpyDtoDAsync_v2(result, memory, 16, stream));
    ok!(api, cuMemFreeAsync(memory, stream));
    let mut graph = ptr::null_mut();
    ok!(api, cuStreamEndCapture(stream, &raw mut graph));
    let executable = instantiate(&fixture, graph);
    let gate = fixture.block(stream);
    ok!(api, cuGraphLaunch(executable, stream));
    ok!(api, cuGraphDestroy(graph));
    ok!(api, cuGraphExecDestroy(executable));
    gate.open();
    ok!(api, cuStreamSynchronize(stream));
    assert_eq!(fixture.download(result, 16), [7; 16]);
    assert_eq!(
        fixture.simulator.live_handles().device_allocations,
        1,
        "the result"
    );
}

#[test]
fn another_graph_frees_an_orphan() {
    for destroys_executable in [false, true] {
        let fixture = Fixture::new();
        let (allocating_graph, memory) = allocating(&fixture);
        let executable = instantiate(&fixture, allocating_graph);
        launch(&fixture, executable);
        ok!(fixture.api, cuGraphDestroy(allocating_graph));
        if destroys_executable {
            ok!(fixture.api, cuGraphExecDestroy(executable));
        }
        let freeing = graph(&fixture);
        assert_eq!(free_node(&fixture, freeing, memory), SUCCESS);
        assert_eq!(
            free_node(&fixture, freeing, memory),
            INVALID,
            "one node of a graph frees it"
        );
        launch(&fixture, instantiate(&fixture, freeing));
        let expected = u64::from(!destroys_executable);
        assert_eq!(
            fixture.simulator.live_handles().device_allocations,
            expected,
            "an executable can allocate it again"
        );
        assert_eq!(cu!(fixture.api, cuMemFree_v2(memory)), INVALID);
    }
}

/// Returns the bytes that a device's graphs use, their maximum, the reserved bytes, and their
/// maximum.
fn graph_memory(fixture: &Fixture) -> [u64; 4] {
    [
        CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT,
        CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH,
        CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
        CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH,
    ]
    .map(|attribute| {
        let mut bytes = 0_u64;
        ok!(
            fixture.api,
            cuDeviceGetGraphMemAttribute(0, attribute, (&raw mut bytes).cast())
        );
        bytes
    })
}

/// Memory that a graph frees is kept until it is trimmed, in steps of 32 MiB.
#[test]
fn graph_memory_is_kept_until_it_is_trimmed() {
    const STEP: u64 = 32 << 20;
    let fixture = Fixture::new();
    let (graph, memory) = allocating(&fixture);
    let executable = instantiate(&fixture, graph);
    assert_eq!(graph_memory(&fixture), [0; 4], "nothing was launched");
    launch(&fixture, executable);
    assert_eq!(graph_memory(&fixture), [STEP; 4]);
    ok!(fixture.api, cuDeviceGraphMemTrim(0));
    assert_eq!(graph_memory(&fixture), [STEP; 4], "it is in use");
    ok!(fixture.api, cuMemFree_v2(memory));
    assert_eq!(graph_memory(&fixture), [STEP; 4]);
    ok!(fixture.api, cuDeviceGraphMemTrim(0));
    assert_eq!(graph_memory(&fixture), [0, STEP, 0, STEP]);
    launch(&fixture, executable);
    assert_eq!(graph_memory(&fixture), [STEP; 4]);
}
