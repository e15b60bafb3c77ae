//! Graphs: their shape, their launches, and updates of executable graphs.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use curium_sys::{
    CUDA_CONDITIONAL_NODE_PARAMS, CUDA_GRAPH_INSTANTIATE_PARAMS, CUDA_HOST_NODE_PARAMS,
    CUDA_MEM_ALLOC_NODE_PARAMS, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUdeviceptr, CUgraph,
    CUgraphConditionalHandle, CUgraphConditionalNodeType, CUgraphExec, CUgraphExecUpdateResult,
    CUgraphExecUpdateResultInfo, CUgraphInstantiateResult, CUgraphNode, CUgraphNodeParams,
    CUgraphNodeType, CUmemLocationType, CUmemorytype, CUresult,
};

use crate::support::{Fixture, cu, get, handle, ok};

const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;

fn graph(fixture: &Fixture) -> CUgraph {
    handle!(fixture.api, cuGraphCreate(_, 0))
}

fn set(
    fixture: &Fixture,
    graph: CUgraph,
    after: &[CUgraphNode],
    dst: CUdeviceptr,
    value: u32,
) -> CUgraphNode {
    let params = fill(dst, value);
    handle!(
        fixture.api,
        cuGraphAddMemsetNode(
            _,
            graph,
            after.as_ptr(),
            after.len(),
            &raw const params,
            fixture.context
        )
    )
}

fn fill(dst: CUdeviceptr, value: u32) -> CUDA_MEMSET_NODE_PARAMS {
    CUDA_MEMSET_NODE_PARAMS {
        dst,
        pitch: 0,
        value,
        elementSize: 4,
        width: 4,
        height: 1,
    }
}

fn copy(
    fixture: &Fixture,
    graph: CUgraph,
    after: &[CUgraphNode],
    to: CUdeviceptr,
    from: CUdeviceptr,
) -> CUgraphNode {
    let params = CUDA_MEMCPY3D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        srcDevice: from,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstDevice: to,
        WidthInBytes: 16,
        Height: 1,
        Depth: 1,
        ..CUDA_MEMCPY3D::default()
    };
    handle!(
        fixture.api,
        cuGraphAddMemcpyNode(
            _,
            graph,
            after.as_ptr(),
            after.len(),
            &raw const params,
            fixture.context
        )
    )
}

fn instantiate(fixture: &Fixture, graph: CUgraph) -> CUgraphExec {
    handle!(fixture.api, cuGraphInstantiateWithFlags(_, graph, 0))
}

fn run(fixture: &Fixture, executable: CUgraphExec) {
    let stream = fixture.stream(1);
    ok!(fixture.api, cuGraphLaunch(executable, stream));
    ok!(fixture.api, cuStreamSynchronize(stream));
    ok!(fixture.api, cuStreamDestroy_v2(stream));
}

fn words(fixture: &Fixture, from: CUdeviceptr) -> [u32; 4] {
    let bytes = fixture.download(from, 16);
    std::array::from_fn(|index| {
        u32::from_le_bytes(bytes[4 * index..][..4].try_into().expect("four bytes"))
    })
}

unsafe extern "C" fn count(data: *mut c_void) {
    // SAFETY: the tests pass a counter that outlives the work.
    unsafe { &*data.cast::<AtomicU32>() }.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn launched_graph_does_its_nodes_in_their_order() {
    for seed in 0..20 {
        let fixture = Fixture::with(curium_sim::Config::new().with_seed(seed));
        let (a, b, c) = (fixture.alloc(16), fixture.alloc(16), fixture.alloc(16));
        let graph = graph(&fixture);
        let first = set(&fixture, graph, &[], a, 7);
        let second = copy(&fixture, graph, &[first], b, a);
        let third = set(&fixture, graph, &[second], a, 9);
        copy(&fixture, graph, &[third], c, a);
        let executable = instantiate(&fixture, graph);
        ok!(fixture.api, cuGraphDestroy(graph));
        for _ in 0..2 {
            run(&fixture, executable);
            assert_eq!(
                (words(&fixture, b), words(&fixture, c)),
                ([7; 4], [9; 4]),
                "seed {seed}"
            );
        }
        ok!(fixture.api, cuGraphExecDestroy(executable));
    }
}

#[test]
fn host_and_child_nodes_run_once_for_each_launch() {
    let fixture = Fixture::new();
    let calls = AtomicU32::new(0);
    let params = CUDA_HOST_NODE_PARAMS {
        fn_: Some(count),
        userData: (&raw const calls).cast_mut().cast(),
    };
    let child = graph(&fixture);
    let node: CUgraphNode = handle!(
        fixture.api,
        cuGraphAddHostNode(_, child, ptr::null(), 0, &raw const params)
    );
    let mut kind = CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY;
    ok!(fixture.api, cuGraphNodeGetType(node, &raw mut kind));
    assert_eq!(kind, CUgraphNodeType::CU_GRAPH_NODE_TYPE_HOST);
    let parent = graph(&fixture);
    let first: CUgraphNode = handle!(
        fixture.api,
        cuGraphAddChildGraphNode(_, parent, ptr::null(), 0, child)
    );
    let _second: CUgraphNode = handle!(
        fixture.api,
        cuGraphAddChildGraphNode(_, parent, &raw const first, 1, child)
    );
    let mut itself = ptr::null_mut();
    assert_eq!(
        cu!(
            fixture.api,
            cuGraphAddChildGraphNode(&raw mut itself, parent, ptr::null(), 0, parent)
        ),
        INVALID
    );
    let executable = instantiate(&fixture, parent);
    run(&fixture, executable);
    run(&fixture, executable);
    assert_eq!(calls.load(Ordering::Relaxed), 4);
}

#[test]
fn circle_cannot_be_instantiated_and_a_node_of_it_is_named() {
    let fixture = Fixture::new();
    let memory = fixture.alloc(16);
    let graph = graph(&fixture);
    let first = set(&fixture, graph, &[], memory, 1);
    let second = set(&fixture, graph, &[first], memory, 2);
    ok!(
        fixture.api,
        cuGraphAddDependencies(graph, &raw const second, &raw const first, 1)
    );
    let mut params = CUDA_GRAPH_INSTANTIATE_PARAMS::default();
    let mut executable = ptr::null_mut();
    let code = cu!(
        fixture.api,
        cuGraphInstantiateWithParams(&raw mut executable, graph, &raw mut params)
    );
    assert_eq!(code, INVALID);
    assert_eq!(
        params.result_out,
        CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE
    );
    assert!([first, second].contains(&params.hErrNode_out));
    ok!(
        fixture.api,
        cuGraphRemoveDependencies(graph, &raw const second, &raw const first, 1)
    );
    instantiate(&fixture, graph);
}

#[test]
fn shape_of_a_graph_can_be_read_and_found_in_its_clone() {
    let fixture = Fixture::new();
    let memory = fixture.alloc(16);
    let graph = graph(&fixture);
    let first = set(&fixture, graph, &[], memory, 1);
    let second = set(&fixture, graph, &[first], memory, 2);
    let clone: CUgraph = handle!(fixture.api, cuGraphClone(_, graph));
    let found: CUgraphNode = handle!(fixture.api, cuGraphNodeFindInClone(_, second, clone));
    let (mut before, mut count) = (ptr::null_mut(), 1_usize);
    ok!(
        fixture.api,
        cuGraphNodeGetDependencies(found, &raw mut before, &raw mut count)
    );
    assert_eq!(count, 1);
    assert_eq!(
        before,
        handle!(fixture.api, cuGraphNodeFindInClone(_, first, clone))
    );
    let mut nodes = 0_usize;
    ok!(
        fixture.api,
        cuGraphGetNodes(graph, ptr::null_mut(), &raw mut nodes)
    );
    let mut edges = 0_usize;
    ok!(
        fixture.api,
        cuGraphGetEdges(graph, ptr::null_mut(), ptr::null_mut(), &raw mut edges)
    );
    assert_eq!((nodes, edges), (2, 1));
    ok!(fixture.api, cuGraphDestroyNode(first));
    ok!(
        fixture.api,
        cuGraphGetRootNodes(graph, ptr::null_mut(), &raw mut nodes)
    );
    assert_eq!(nodes, 1, "the node behind a destroyed one is a root");
}

#[test]
fn executable_is_updated_node_by_node_and_from_a_graph_of_its_shape() {
    let fixture = Fixture::new();
    let memory = fixture.alloc(16);
    let first = graph(&fixture);
    let node = set(&fixture, first, &[], memory, 1);
    let executable = instantiate(&fixture, first);
    let params = fill(memory, 5);
    ok!(
        fixture.api,
        cuGraphExecMemsetNodeSetParams(executable, node, &raw const params, fixture.context)
    );
    run(&fixture, executable);
    assert_eq!(words(&fixture, memory), [5; 4]);
    ok!(fixture.api, cuGraphNodeSetEnabled(executable, node, 0));
    fixture.upload(memory, &[0; 16]);
    run(&fixture, executable);
    assert_eq!(words(&fixture, memory), [0; 4]);
    ok!(fixture.api, cuGraphNodeSetEnabled(executable, node, 1));
    let same = graph(&fixture);
    let only = set(&fixture, same, &[], memory, 8);
    let mut info = CUgraphExecUpdateResultInfo::default();
    ok!(
        fixture.api,
        cuGraphExecUpdate_v2(executable, same, &raw mut info)
    );
    run(&fixture, executable);
    assert_eq!(words(&fixture, memory), [8; 4]);
    let other = set(&fixture, same, &[only], memory, 9);
    let code = cu!(
        fixture.api,
        cuGraphExecUpdate_v2(executable, same, &raw mut info)
    );
    assert_eq!(code, CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    assert_eq!(
        info.result,
        CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED
    );
    assert_eq!(info.errorNode, other);
    run(&fixture, executable);
    assert_eq!(
        words(&fixture, memory),
        [8; 4],
        "a failed update changes nothing"
    );
}

/// Adds a conditional node that runs a body if the value of the handle is not zero.
fn add_condition(
    fixture: &Fixture,
    graph: CUgraph,
    handle: CUgraphConditionalHandle,
) -> (CUgraphNode, CUgraph) {
    let mut params = CUgraphNodeParams {
        type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL,
        ..Default::default()
    };
    params.__bindgen_anon_1.conditional = CUDA_CONDITIONAL_NODE_PARAMS {
        handle,
        type_: CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_IF,
        size: 1,
        phGraph_out: ptr::null_mut(),
        ctx: fixture.context,
    };
    let node = handle!(
        fixture.api,
        cuGraphAddNode_v2(_, graph, ptr::null(), ptr::null(), 0, &raw mut params)
    );
    // SAFETY: the type of the description is a conditional node.
    let bodies = unsafe { params.__bindgen_anon_1.conditional.phGraph_out };
    // SAFETY: the driver has written the list of bodies, which has one.
    let body = unsafe { bodies.read() };
    (node, body)
}

/// Returns a graph whose node writes 3 to memory if the default of its condition is not zero.
fn conditional_graph(fixture: &Fixture, memory: CUdeviceptr, default: u32) -> CUgraph {
    let graph = graph(fixture);
    let handle = get!(
        fixture.api,
        cuGraphConditionalHandleCreate(_, graph, fixture.context, default, 1)
    );
    let (_, body) = add_condition(fixture, graph, handle);
    set(fixture, body, &[], memory, 3);
    graph
}

#[test]
fn conditional_node_runs_the_body_that_its_value_chooses() {
    for value in 0..2 {
        let fixture = Fixture::new();
        let memory = fixture.alloc(16);
        fixture.upload(memory, &[0; 16]);
        let graph = conditional_graph(&fixture, memory, value);
        run(&fixture, instantiate(&fixture, graph));
        assert_eq!(words(&fixture, memory), [3 * value; 4]);
    }
}

/// An updated executable starts with the default of the new graph's condition, and its kernels may name the new handle.
#[test]
fn update_takes_the_default_of_a_condition() {
    let fixture = Fixture::new();
    let memory = fixture.alloc(16);
    fixture.upload(memory, &[0; 16]);
    let executable = instantiate(&fixture, conditional_graph(&fixture, memory, 0));
    run(&fixture, executable);
    assert_eq!(words(&fixture, memory), [0; 4]);
    let other = conditional_graph(&fixture, memory, 1);
    let mut result = CUgraphExecUpdateResultInfo::default();
    ok!(
        fixture.api,
        cuGraphExecUpdate_v2(executable, other, &raw mut result)
    );
    run(&fixture, executable);
    assert_eq!(words(&fixture, memory), [3; 4]);
}

/// A conditional node in a body may use a handle of the graph around it.
#[test]
fn handle_of_an_outer_graph_is_known_in_a_body() {
    let fixture = Fixture::new();
    let memory = fixture.alloc(16);
    fixture.upload(memory, &[0; 16]);
    let graph = graph(&fixture);
    let handle = get!(
        fixture.api,
        cuGraphConditionalHandleCreate(_, graph, fixture.context, 1, 1)
    );
    let (_, body) = add_condition(&fixture, graph, handle);
    let (_, inner) = add_condition(&fixture, body, handle);
    set(&fixture, inner, &[], memory, 5);
    run(&fixture, instantiate(&fixture, graph));
    assert_eq!(words(&fixture, memory), [5; 4]);
}

#[test]
fn description_of_a_conditional_node_has_its_bodies() {
    let fixture = Fixture::new();
    let graph = graph(&fixture);
    let handle = get!(
        fixture.api,
        cuGraphConditionalHandleCreate(_, graph, fixture.context, 1, 1)
    );
    let (node, body) = add_condition(&fixture, graph, handle);
    let described = get!(fixture.api, cuGraphNodeGetParams(node, _));
    // SAFETY: the type of the description is a conditional node.
    let bodies = unsafe { described.__bindgen_anon_1.conditional.phGraph_out };
    // SAFETY: the list has one body.
    let listed = unsafe { bodies.read() };
    assert_eq!(listed, body);
}

#[test]
fn memory_of_a_graph_lives_until_its_last_executable_is_destroyed() {
    let fixture = Fixture::new();
    let live = || fixture.simulator.live_handles().device_allocations;
    let graph = graph(&fixture);
    let mut params = CUDA_MEM_ALLOC_NODE_PARAMS {
        bytesize: 16,
        ..Default::default()
    };
    params.poolProps.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    let node: CUgraphNode = handle!(
        fixture.api,
        cuGraphAddMemAllocNode(_, graph, ptr::null(), 0, &raw mut params)
    );
    let filled = set(&fixture, graph, &[node], params.dptr, 4);
    let target = fixture.alloc(16);
    let copied = copy(&fixture, graph, &[filled], target, params.dptr);
    let _: CUgraphNode = handle!(
        fixture.api,
        cuGraphAddMemFreeNode(_, graph, &raw const copied, 1, params.dptr)
    );
    let executable = instantiate(&fixture, graph);
    ok!(fixture.api, cuGraphDestroy(graph));
    run(&fixture, executable);
    assert_eq!(words(&fixture, target), [4; 4]);
    assert_eq!(live(), 2);
    ok!(fixture.api, cuGraphExecDestroy(executable));
    assert_eq!(live(), 1);
}

#[test]
fn user_object_is_destroyed_with_the_last_graph_that_keeps_it() {
    let fixture = Fixture::new();
    let destroyed = AtomicU32::new(0);
    let data = (&raw const destroyed).cast_mut().cast();
    let object = handle!(fixture.api, cuUserObjectCreate(_, data, Some(count), 1, 1));
    let graph = graph(&fixture);
    ok!(fixture.api, cuGraphRetainUserObject(graph, object, 1, 1));
    let executable = instantiate(&fixture, graph);
    ok!(fixture.api, cuGraphDestroy(graph));
    assert_eq!(destroyed.load(Ordering::Relaxed), 0);
    ok!(fixture.api, cuGraphExecDestroy(executable));
    assert_eq!(destroyed.load(Ordering::Relaxed), 1);
    assert_eq!(fixture.simulator.live_handles().user_objects, 0);
}
