//! Graphs with nodes that use destroyed objects.

use std::ffi::c_void;
use std::ptr;

use curium_sim::{Checks, Config};
use curium_sim::{ReportKind, Stale};
use curium_sys::{
    CUDA_KERNEL_NODE_PARAMS, CUDA_MEM_ALLOC_NODE_PARAMS, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS,
    CUdeviceptr, CUevent, CUfunction, CUgraph, CUgraphExec, CUgraphNode, CUlibrary,
    CUmemLocationType, CUmemorytype, CUmodule, CUresult,
};

use crate::support::{Fixture, SUCCESS, cu, handle, ok};

const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
const STALE_HANDLE: CUresult = CUresult::CUDA_ERROR_INVALID_HANDLE;

const EMPTY: &[u8] =
    b".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry nothing() { ret; }\n\0";

fn quiet() -> Fixture {
    Fixture::with(
        Config::new()
            .with_workers(2)
            .with_memory_budget(64 << 20)
            .with_checks(Checks::Quiet),
    )
}

fn graph(fixture: &Fixture) -> CUgraph {
    handle!(fixture.api, cuGraphCreate(_, 0))
}

fn add_launch(fixture: &Fixture, graph: CUgraph, function: CUfunction) -> CUgraphNode {
    let params = CUDA_KERNEL_NODE_PARAMS {
        func: function,
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        ..CUDA_KERNEL_NODE_PARAMS::default()
    };
    handle!(
        fixture.api,
        cuGraphAddKernelNode_v2(_, graph, ptr::null(), 0, &raw const params)
    )
}

fn add_fill(
    fixture: &Fixture,
    graph: CUgraph,
    after: &[CUgraphNode],
    dst: CUdeviceptr,
) -> CUgraphNode {
    let params = CUDA_MEMSET_NODE_PARAMS {
        dst,
        pitch: 0,
        value: 3,
        elementSize: 4,
        width: 4,
        height: 1,
    };
    let count = after.len();
    handle!(
        fixture.api,
        cuGraphAddMemsetNode(
            _,
            graph,
            after.as_ptr(),
            count,
            &raw const params,
            fixture.context
        )
    )
}

fn instantiate(fixture: &Fixture, graph: CUgraph) -> Result<CUgraphExec, CUresult> {
    let mut executable = ptr::null_mut();
    match cu!(
        fixture.api,
        cuGraphInstantiateWithFlags(&raw mut executable, graph, 0)
    ) {
        SUCCESS => Ok(executable),
        code => Err(code),
    }
}

fn launch(fixture: &Fixture, executable: CUgraphExec) -> CUresult {
    let code = cu!(fixture.api, cuGraphLaunch(executable, ptr::null_mut()));
    ok!(fixture.api, cuCtxSynchronize());
    code
}

/// Returns the reported nodes and objects.
fn stale_nodes(fixture: &Fixture) -> Vec<(u32, Stale)> {
    fixture
        .simulator
        .reports()
        .iter()
        .filter_map(|fault| match fault.kind {
            ReportKind::StaleNode { node, what } => Some((node, what)),
            _ => None,
        })
        .collect()
}

/// Instantiates and launches a graph, and again after `end` has destroyed an object of a node. Both
/// then fail with `code`.
fn assert_reported(
    fixture: &Fixture,
    graph: CUgraph,
    what: Stale,
    code: CUresult,
    end: impl FnOnce(),
) {
    let executable = instantiate(fixture, graph).expect("everything exists");
    assert_eq!(launch(fixture, executable), SUCCESS);
    assert_eq!(stale_nodes(fixture), []);
    end();
    assert_eq!(launch(fixture, executable), code);
    assert_eq!(instantiate(fixture, graph), Err(code));
    assert_eq!(stale_nodes(fixture), [(1, what); 2]);
}

#[test]
fn unloaded_module_is_reported() {
    let fixture = quiet();
    let module: CUmodule = handle!(fixture.api, cuModuleLoadData(_, EMPTY.as_ptr().cast()));
    let function = handle!(
        fixture.api,
        cuModuleGetFunction(_, module, c"nothing".as_ptr())
    );
    let graph = graph(&fixture);
    add_launch(&fixture, graph, function);
    assert_reported(&fixture, graph, Stale::Kernel, STALE_HANDLE, || {
        ok!(fixture.api, cuModuleUnload(module));
    });
    let text = fixture.simulator.reports()[0].to_string();
    assert_eq!(text, "graph node 1: its kernel was unloaded");
}

#[test]
fn unloaded_library_is_reported() {
    let fixture = quiet();
    let mut library: CUlibrary = ptr::null_mut();
    ok!(
        fixture.api,
        cuLibraryLoadData(
            &raw mut library,
            EMPTY.as_ptr().cast(),
            ptr::null_mut(),
            ptr::null_mut(),
            0,
            ptr::null_mut(),
            ptr::null_mut(),
            0
        )
    );
    let kernel = handle!(
        fixture.api,
        cuLibraryGetKernel(_, library, c"nothing".as_ptr())
    );
    let graph = graph(&fixture);
    add_launch(&fixture, graph, kernel.cast());
    assert_reported(&fixture, graph, Stale::Kernel, STALE_HANDLE, || {
        ok!(fixture.api, cuLibraryUnload(library));
    });
}

#[test]
fn destroyed_event_is_reported() {
    for waits in [false, true] {
        let fixture = quiet();
        let event: CUevent = handle!(fixture.api, cuEventCreate(_, 0));
        let graph = graph(&fixture);
        let _: CUgraphNode = if waits {
            handle!(
                fixture.api,
                cuGraphAddEventWaitNode(_, graph, ptr::null(), 0, event)
            )
        } else {
            handle!(
                fixture.api,
                cuGraphAddEventRecordNode(_, graph, ptr::null(), 0, event)
            )
        };
        assert_reported(&fixture, graph, Stale::Event, STALE_HANDLE, || {
            ok!(fixture.api, cuEventDestroy_v2(event));
        });
    }
}

#[test]
fn freed_memory_is_reported() {
    let fixture = quiet();
    let memory = fixture.alloc(64);
    let graph = graph(&fixture);
    add_fill(&fixture, graph, &[], memory + 16);
    assert_reported(&fixture, graph, Stale::Memory, INVALID, || {
        ok!(fixture.api, cuMemFree_v2(memory));
    });
    let text = fixture.simulator.reports()[0].to_string();
    let expected = format!(
        "graph node 1: its memory was freed: 16-byte write at {:#x}, \
         16 bytes into a freed 64-byte allocation at {memory:#x}, which was freed by cuMemFree",
        memory + 16
    );
    assert_eq!(text, expected);
}

#[test]
fn freed_host_memory_is_reported() {
    let fixture = quiet();
    let memory = fixture.alloc(16);
    let graph = graph(&fixture);
    let host: *mut c_void = handle!(fixture.api, cuMemHostAlloc(_, 16, 0));
    let params = CUDA_MEMCPY3D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        srcHost: host,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstDevice: memory,
        WidthInBytes: 16,
        Height: 1,
        Depth: 1,
        ..CUDA_MEMCPY3D::default()
    };
    let _: CUgraphNode = handle!(
        fixture.api,
        cuGraphAddMemcpyNode(_, graph, ptr::null(), 0, &raw const params, fixture.context)
    );
    assert_reported(&fixture, graph, Stale::Memory, INVALID, || {
        ok!(fixture.api, cuMemFreeHost(host));
    });
}

#[test]
fn stream_ordered_free_is_reported() {
    let fixture = quiet();
    let stream = fixture.stream(1);
    let graph = graph(&fixture);
    let mut memory: CUdeviceptr = 0;
    ok!(fixture.api, cuMemAllocAsync(&raw mut memory, 16, stream));
    add_fill(&fixture, graph, &[], memory);
    let executable = instantiate(&fixture, graph).expect("the memory exists");
    let gate = fixture.block(stream);
    ok!(fixture.api, cuGraphLaunch(executable, stream));
    ok!(fixture.api, cuMemFreeAsync(memory, stream));
    assert_eq!(cu!(fixture.api, cuGraphLaunch(executable, stream)), INVALID);
    gate.open();
    ok!(fixture.api, cuStreamSynchronize(stream));
    assert_eq!(
        stale_nodes(&fixture),
        [(1, Stale::Memory)],
        "the launch before the free is in order"
    );
}

#[test]
fn child_graphs_are_searched() {
    let fixture = quiet();
    let event: CUevent = handle!(fixture.api, cuEventCreate(_, 0));
    let child = graph(&fixture);
    let parent = graph(&fixture);
    let _: CUgraphNode = handle!(
        fixture.api,
        cuGraphAddEventRecordNode(_, child, ptr::null(), 0, event)
    );
    let _: CUgraphNode = handle!(
        fixture.api,
        cuGraphAddChildGraphNode(_, parent, ptr::null(), 0, child)
    );
    ok!(fixture.api, cuGraphDestroy(child));
    assert_reported(&fixture, parent, Stale::Event, STALE_HANDLE, || {
        ok!(fixture.api, cuEventDestroy_v2(event));
    });
}

#[test]
fn graph_memory_is_not_reported() {
    let fixture = quiet();
    let graph = graph(&fixture);
    let mut params = CUDA_MEM_ALLOC_NODE_PARAMS {
        bytesize: 16,
        ..CUDA_MEM_ALLOC_NODE_PARAMS::default()
    };
    params.poolProps.allocType = curium_sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    let allocation = handle!(
        fixture.api,
        cuGraphAddMemAllocNode(_, graph, ptr::null(), 0, &raw mut params)
    );
    let fill = add_fill(&fixture, graph, &[allocation], params.dptr);
    let _: CUgraphNode = handle!(
        fixture.api,
        cuGraphAddMemFreeNode(_, graph, &raw const fill, 1, params.dptr)
    );
    let executable = instantiate(&fixture, graph).expect("the graph allocates its memory");
    for _ in 0..3 {
        assert_eq!(launch(&fixture, executable), SUCCESS);
    }
    assert_eq!(stale_nodes(&fixture), []);
}

/// A node that was updated or disabled is not reported.
#[test]
fn updated_node_is_not_reported() {
    let fixture = quiet();
    let first = fixture.alloc(16);
    let second = fixture.alloc(16);
    let graph = graph(&fixture);
    let node = add_fill(&fixture, graph, &[], first);
    let executable = instantiate(&fixture, graph).expect("the memory exists");
    ok!(fixture.api, cuMemFree_v2(first));
    ok!(fixture.api, cuGraphNodeSetEnabled(executable, node, 0));
    assert_eq!(launch(&fixture, executable), SUCCESS);
    ok!(fixture.api, cuGraphNodeSetEnabled(executable, node, 1));
    let params = CUDA_MEMSET_NODE_PARAMS {
        dst: second,
        pitch: 0,
        value: 3,
        elementSize: 4,
        width: 4,
        height: 1,
    };
    ok!(
        fixture.api,
        cuGraphExecMemsetNodeSetParams(executable, node, &raw const params, fixture.context)
    );
    assert_eq!(launch(&fixture, executable), SUCCESS);
    assert_eq!(stale_nodes(&fixture), []);
}

#[test]
fn report_does_not_abort() {
    let fixture = Fixture::with(
        Config::new()
            .with_memory_budget(64 << 20)
            .with_checks(Checks::Report),
    );
    let event: CUevent = handle!(fixture.api, cuEventCreate(_, 0));
    let memory = fixture.alloc(16);
    let graph = graph(&fixture);
    let _: CUgraphNode = handle!(
        fixture.api,
        cuGraphAddEventRecordNode(_, graph, ptr::null(), 0, event)
    );
    add_fill(&fixture, graph, &[], memory);
    ok!(fixture.api, cuEventDestroy_v2(event));
    let executable = instantiate(&fixture, graph).expect("the report is enough");
    assert_eq!(launch(&fixture, executable), SUCCESS);
    assert_eq!(fixture.download(memory, 4), [3, 0, 0, 0]);
    assert_eq!(stale_nodes(&fixture), [(1, Stale::Event)]);
    let reports = fixture.simulator.reports();
    assert_eq!(
        reports[0].count, 2,
        "at the instantiation and at the launch"
    );
}
