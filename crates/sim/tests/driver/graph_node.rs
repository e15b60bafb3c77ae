//! Graph nodes by kind: their parameters, and changes in graphs and executable graphs.

use std::ffi::c_void;
use std::ptr;

use curium_sim::Config;
use curium_sys::{
    CUDA_ARRAY_DESCRIPTOR, CUDA_BATCH_MEM_OP_NODE_PARAMS, CUDA_BATCH_MEM_OP_NODE_PARAMS_v2,
    CUDA_KERNEL_NODE_PARAMS_v1, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUarray_format,
    CUdeviceptr, CUfunction, CUgraph, CUgraphChildGraphNodeOwnership, CUgraphExec,
    CUgraphExecUpdateResult, CUgraphExecUpdateResultInfo, CUgraphInstantiate_flags,
    CUgraphMem_attribute, CUgraphNode, CUgraphNodeParams, CUgraphNodeType, CUkernelNodeAttrValue,
    CUlaunchAttributeID, CUmemLocationType, CUmemorytype, CUresult, CUstreamBatchMemOpParams,
    CUstreamBatchMemOpParams_union_CUstreamMemOpWriteValueParams_st as WriteValue,
    CUstreamBatchMemOpType, CudaVersion,
};

use crate::support::{Fixture, cu, handle, ok};

const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;

/// `store(place, value)` writes one word.
const STORE: &[u8] = b".version 7.0\n.target sm_75\n.address_size 64\n\
    .visible .entry store(.param .u64 place, .param .u32 value) {\n\
    .reg .u64 %rd<3>; .reg .u32 %r<2>;\n\
    ld.param.u64 %rd1, [place]; ld.param.u32 %r1, [value]; cvta.to.global.u64 %rd2, %rd1;\n\
    st.global.u32 [%rd2], %r1; ret; }\n\0";

fn store(fixture: &Fixture) -> CUfunction {
    let module = handle!(fixture.api, cuModuleLoadData(_, STORE.as_ptr().cast()));
    handle!(
        fixture.api,
        cuModuleGetFunction(_, module, c"store".as_ptr())
    )
}

fn graph(fixture: &Fixture) -> CUgraph {
    handle!(fixture.api, cuGraphCreate(_, 0))
}

fn run(fixture: &Fixture, executable: CUgraphExec) {
    let stream = fixture.stream(1);
    ok!(fixture.api, cuGraphLaunch(executable, stream));
    ok!(fixture.api, cuStreamSynchronize(stream));
    ok!(fixture.api, cuStreamDestroy_v2(stream));
}

fn instantiate(fixture: &Fixture, graph: CUgraph) -> CUgraphExec {
    handle!(fixture.api, cuGraphInstantiateWithFlags(_, graph, 0))
}

fn word(fixture: &Fixture, from: CUdeviceptr) -> u32 {
    u32::from_le_bytes(fixture.download(from, 4).try_into().expect("four bytes"))
}

fn described(kind: CUgraphNodeType) -> CUgraphNodeParams {
    CUgraphNodeParams {
        type_: kind,
        ..CUgraphNodeParams::default()
    }
}

fn add(
    fixture: &Fixture,
    graph: CUgraph,
    after: &[CUgraphNode],
    params: &mut CUgraphNodeParams,
) -> CUgraphNode {
    handle!(
        fixture.api,
        cuGraphAddNode_v2(
            _,
            graph,
            after.as_ptr(),
            ptr::null(),
            after.len(),
            &raw mut *params
        )
    )
}

/// Returns a write of one word, as an operation of a batch.
fn write(address: CUdeviceptr, value: u32) -> CUstreamBatchMemOpParams {
    let operation = CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_32;
    let mut write = WriteValue {
        operation,
        address,
        ..WriteValue::default()
    };
    write.__bindgen_anon_1.value = value;
    CUstreamBatchMemOpParams { writeValue: write }
}

#[test]
fn batch_of_memory_operations_is_described_read_and_changed() {
    let fixture = Fixture::new();
    let memory = fixture.alloc(8);
    let mut operations = [write(memory, 1), write(memory + 4, 2)];
    let batch = |operations: &mut [CUstreamBatchMemOpParams]| CUDA_BATCH_MEM_OP_NODE_PARAMS {
        ctx: fixture.context,
        count: operations.len() as u32,
        paramArray: operations.as_mut_ptr(),
        flags: 0,
    };
    let graph = graph(&fixture);
    let params = batch(&mut operations);
    let node = handle!(
        fixture.api,
        cuGraphAddBatchMemOpNode(_, graph, ptr::null(), 0, &raw const params)
    );
    let executable = instantiate(&fixture, graph);
    run(&fixture, executable);
    assert_eq!((word(&fixture, memory), word(&fixture, memory + 4)), (1, 2));
    let mut read = CUDA_BATCH_MEM_OP_NODE_PARAMS::default();
    ok!(
        fixture.api,
        cuGraphBatchMemOpNodeGetParams(node, &raw mut read)
    );
    assert_eq!((read.count, read.ctx), (2, fixture.context));
    // SAFETY: the node has two operations, which stay for as long as it has them.
    let kept = unsafe { std::slice::from_raw_parts(read.paramArray, 2) };
    // SAFETY: the second is a write.
    let second = unsafe { kept[1].writeValue };
    // SAFETY: the write is one of a narrow value.
    assert_eq!(unsafe { second.__bindgen_anon_1.value }, 2);
    let params = batch(&mut operations[..0]);
    assert_eq!(
        cu!(
            fixture.api,
            cuGraphBatchMemOpNodeSetParams(node, &raw const params)
        ),
        INVALID
    );
    operations[0] = write(memory, 9);
    let params = batch(&mut operations);
    ok!(
        fixture.api,
        cuGraphBatchMemOpNodeSetParams(node, &raw const params)
    );
    run(&fixture, executable);
    assert_eq!(
        word(&fixture, memory),
        1,
        "an executable keeps what it took over"
    );
    ok!(
        fixture.api,
        cuGraphExecBatchMemOpNodeSetParams(executable, node, &raw const params)
    );
    run(&fixture, executable);
    assert_eq!(word(&fixture, memory), 9);
}

#[test]
fn kernel_node_has_two_forms_of_description_and_attributes() {
    let fixture = Fixture::new();
    let (function, memory) = (store(&fixture), fixture.alloc(4));
    let (mut place, mut value) = (memory, 5_u32);
    let mut values: [*mut c_void; 2] = [(&raw mut place).cast(), (&raw mut value).cast()];
    let params = CUDA_KERNEL_NODE_PARAMS_v1 {
        func: function,
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        kernelParams: values.as_mut_ptr(),
        ..CUDA_KERNEL_NODE_PARAMS_v1::default()
    };
    let graph = graph(&fixture);
    let node = handle!(
        fixture.api,
        cuGraphAddKernelNode(_, graph, ptr::null(), 0, &raw const params)
    );
    value = 6;
    ok!(
        fixture.api,
        cuGraphKernelNodeSetParams(node, &raw const params)
    );
    let mut read = CUDA_KERNEL_NODE_PARAMS_v1::default();
    ok!(fixture.api, cuGraphKernelNodeGetParams(node, &raw mut read));
    // SAFETY: the kernel has two parameters.
    let places = unsafe { std::slice::from_raw_parts(read.kernelParams, 2) };
    // SAFETY: the second is a word.
    let kept = unsafe { places[1].cast::<u32>().read() };
    assert_eq!((read.func, kept), (function, value));
    let priority = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PRIORITY;
    let cooperative = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    let attribute = CUkernelNodeAttrValue { priority: -2 };
    ok!(
        fixture.api,
        cuGraphKernelNodeSetAttribute(node, priority, &raw const attribute)
    );
    let attribute = CUkernelNodeAttrValue { cooperative: 1 };
    ok!(
        fixture.api,
        cuGraphKernelNodeSetAttribute(node, cooperative, &raw const attribute)
    );
    let of_streams = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY;
    assert_eq!(
        cu!(
            fixture.api,
            cuGraphKernelNodeSetAttribute(node, of_streams, &raw const attribute)
        ),
        INVALID
    );
    let other = handle!(
        fixture.api,
        cuGraphAddKernelNode(_, graph, &raw const node, 1, &raw const params)
    );
    ok!(fixture.api, cuGraphKernelNodeCopyAttributes(other, node));
    let mut found = CUkernelNodeAttrValue::default();
    ok!(
        fixture.api,
        cuGraphKernelNodeGetAttribute(other, priority, &raw mut found)
    );
    // SAFETY: the attribute is a priority.
    assert_eq!(unsafe { found.priority }, -2);
    run(&fixture, instantiate(&fixture, graph));
    assert_eq!(word(&fixture, memory), 6);
}

#[test]
fn node_of_any_kind_is_added_read_and_changed_by_one_description() {
    let fixture = Fixture::with(Config::new().with_driver_version(CudaVersion::new(13, 5)));
    let memory = fixture.alloc(16);
    let graph = graph(&fixture);
    let mut params = described(CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET);
    params.__bindgen_anon_1.memset.dst = memory;
    // SAFETY: by its type, this is a fill.
    let set = unsafe { &mut params.__bindgen_anon_1.memset };
    (set.value, set.elementSize, set.width, set.height) = (3, 4, 4, 1);
    let fill = add(&fixture, graph, &[], &mut params);
    let mut operations = [write(memory + 4, 8)];
    let mut params = described(CUgraphNodeType::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
    params.__bindgen_anon_1.memOp = CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 {
        ctx: fixture.context,
        count: 1,
        paramArray: operations.as_mut_ptr(),
        flags: 0,
    };
    let batch = add(&fixture, graph, &[fill], &mut params);
    let mut params = described(CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY);
    let empty = add(&fixture, graph, &[batch], &mut params);
    assert_eq!(
        cu!(fixture.api, cuGraphNodeSetParams(batch, &raw mut params)),
        INVALID,
        "the kind differs"
    );
    let mut read = CUgraphNodeParams::default();
    ok!(fixture.api, cuGraphNodeGetParams(fill, &raw mut read));
    assert_eq!(read.type_, CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET);
    read.__bindgen_anon_1.memset.value = 4;
    ok!(fixture.api, cuGraphNodeSetParams(fill, &raw mut read));
    ok!(fixture.api, cuGraphNodeGetParams(empty, &raw mut read));
    assert_eq!(read.type_, CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY);
    let executable = instantiate(&fixture, graph);
    run(&fixture, executable);
    let words = || [0, 4, 8].map(|offset| word(&fixture, memory + offset));
    assert_eq!(words(), [4, 8, 4]);
    let mut params = described(CUgraphNodeType::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
    operations[0] = write(memory + 4, 7);
    params.__bindgen_anon_1.memOp = CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 {
        ctx: fixture.context,
        count: 1,
        paramArray: operations.as_mut_ptr(),
        flags: 0,
    };
    ok!(
        fixture.api,
        cuGraphExecNodeSetParams(executable, batch, &raw mut params)
    );
    run(&fixture, executable);
    assert_eq!(words(), [4, 7, 4]);
}

#[test]
fn semaphores_of_other_interfaces_are_not_supported() {
    let fixture = Fixture::new();
    let graph = graph(&fixture);
    for kind in [
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL,
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT,
    ] {
        let (mut node, mut params) = (ptr::null_mut(), described(kind));
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

#[test]
fn child_that_is_moved_belongs_to_its_node() {
    let fixture = Fixture::new();
    let memory = fixture.alloc(4);
    let (parent, child) = (graph(&fixture), graph(&fixture));
    let params = CUDA_MEMSET_NODE_PARAMS {
        dst: memory,
        pitch: 0,
        value: 2,
        elementSize: 4,
        width: 1,
        height: 1,
    };
    let _: CUgraphNode = handle!(
        fixture.api,
        cuGraphAddMemsetNode(_, child, ptr::null(), 0, &raw const params, fixture.context)
    );
    let mut params = described(CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH);
    params.__bindgen_anon_1.graph.graph = child;
    params.__bindgen_anon_1.graph.ownership =
        CUgraphChildGraphNodeOwnership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    let node = add(&fixture, parent, &[], &mut params);
    let mut inside = ptr::null_mut();
    ok!(
        fixture.api,
        cuGraphChildGraphNodeGetGraph(node, &raw mut inside)
    );
    assert_eq!(inside, child);
    assert_eq!(cu!(fixture.api, cuGraphDestroy(child)), INVALID);
    run(&fixture, instantiate(&fixture, parent));
    assert_eq!(word(&fixture, memory), 2);
    ok!(fixture.api, cuGraphDestroy(parent));
    assert_eq!(fixture.simulator.live_handles().graphs, 0);
}

#[test]
fn array_is_copied_by_nodes() {
    let fixture = Fixture::new();
    let shape = CUDA_ARRAY_DESCRIPTOR {
        Width: 4,
        Height: 2,
        Format: CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8,
        NumChannels: 1,
    };
    let array = handle!(fixture.api, cuArrayCreate_v2(_, &raw const shape));
    let (source, target) = ([1_u8, 2, 3, 4, 5, 6, 7, 8], [0_u8; 8]);
    let rows = CUDA_MEMCPY3D {
        WidthInBytes: 4,
        Height: 2,
        Depth: 1,
        ..CUDA_MEMCPY3D::default()
    };
    let to_array = CUDA_MEMCPY3D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        srcHost: source.as_ptr().cast(),
        srcPitch: 4,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
        dstArray: array,
        ..rows
    };
    let from_array = CUDA_MEMCPY3D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
        srcArray: array,
        srcXInBytes: 1,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        dstHost: target.as_ptr().cast_mut().cast(),
        dstPitch: 4,
        WidthInBytes: 3,
        ..rows
    };
    let graph = graph(&fixture);
    let context = fixture.context;
    let first = handle!(
        fixture.api,
        cuGraphAddMemcpyNode(_, graph, ptr::null(), 0, &raw const to_array, context)
    );
    let _: CUgraphNode = handle!(
        fixture.api,
        cuGraphAddMemcpyNode(
            _,
            graph,
            &raw const first,
            1,
            &raw const from_array,
            context
        )
    );
    let mut node = ptr::null_mut();
    let outside = CUDA_MEMCPY3D {
        srcXInBytes: 2,
        ..from_array
    };
    let code = cu!(
        fixture.api,
        cuGraphAddMemcpyNode(
            &raw mut node,
            graph,
            &raw const first,
            1,
            &raw const outside,
            context
        )
    );
    assert_eq!(code, INVALID);
    run(&fixture, instantiate(&fixture, graph));
    // The node wrote through the address.
    assert_eq!(std::hint::black_box(&target), &[2, 3, 4, 0, 6, 7, 8, 0]);
}

#[test]
fn memory_that_a_launch_leaves_allocated_is_freed_before_the_next_launch() {
    let fixture = Fixture::new();
    let graph = graph(&fixture);
    let mut params = described(CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    params.__bindgen_anon_1.alloc.bytesize = 64;
    // SAFETY: by its type, this is an allocation.
    unsafe { &mut params.__bindgen_anon_1.alloc }
        .poolProps
        .location
        .type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    add(&fixture, graph, &[], &mut params);
    // SAFETY: the driver has written the address.
    let memory = unsafe { params.__bindgen_anon_1.alloc }.dptr;
    let used = |attribute| {
        let mut bytes = 0_u64;
        ok!(
            fixture.api,
            cuDeviceGetGraphMemAttribute(0, attribute, (&raw mut bytes).cast())
        );
        bytes
    };
    let (current, high) = (
        CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT,
        CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH,
    );
    let executable = instantiate(&fixture, graph);
    assert_eq!(
        cu!(fixture.api, cuMemFree_v2(memory)),
        INVALID,
        "nothing has allocated it"
    );
    run(&fixture, executable);
    assert_eq!(used(current), 64);
    let stream = fixture.stream(1);
    assert_eq!(
        cu!(fixture.api, cuGraphLaunch(executable, stream)),
        INVALID,
        "it is allocated"
    );
    ok!(fixture.api, cuMemFreeAsync(memory, stream));
    assert_eq!(cu!(fixture.api, cuMemFreeAsync(memory, stream)), INVALID);
    assert_eq!((used(current), used(high)), (0, 64));
    let mut zero = 0_u64;
    ok!(
        fixture.api,
        cuDeviceSetGraphMemAttribute(0, high, (&raw mut zero).cast())
    );
    assert_eq!(used(high), 0);
    run(&fixture, executable);
    ok!(fixture.api, cuMemFree_v2(memory));
    let freeing = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH.0;
    let executable = handle!(
        fixture.api,
        cuGraphInstantiateWithFlags(_, graph, freeing.into())
    );
    run(&fixture, executable);
    run(&fixture, executable);
}

#[test]
fn failed_update_names_the_new_edge() {
    let fixture = Fixture::new();
    let memory = fixture.alloc(4);
    let two_fills = |is_chained: bool| {
        let graph = graph(&fixture);
        let params = CUDA_MEMSET_NODE_PARAMS {
            dst: memory,
            pitch: 0,
            value: 1,
            elementSize: 4,
            width: 1,
            height: 1,
        };
        let fill = |after: &[CUgraphNode]| -> CUgraphNode {
            let (after, count) = (after.as_ptr(), after.len());
            handle!(
                fixture.api,
                cuGraphAddMemsetNode(_, graph, after, count, &raw const params, fixture.context)
            )
        };
        let first = fill(&[]);
        let second = if is_chained {
            fill(&[first])
        } else {
            fill(&[])
        };
        (graph, first, second)
    };
    let executable = instantiate(&fixture, two_fills(false).0);
    let (graph, first, second) = two_fills(true);
    let mut info = CUgraphExecUpdateResultInfo::default();
    let code = cu!(
        fixture.api,
        cuGraphExecUpdate_v2(executable, graph, &raw mut info)
    );
    assert_eq!(code, CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    assert_eq!(
        info.result,
        CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED
    );
    assert_eq!((info.errorFromNode, info.errorNode), (first, second));
}

#[test]
fn attribute_of_memory_that_does_not_exist_is_invalid() {
    let fixture = Fixture::new();
    let unknown = CUgraphMem_attribute(9);
    let mut bytes = 0_u64;
    assert_eq!(
        cu!(
            fixture.api,
            cuDeviceGetGraphMemAttribute(0, unknown, (&raw mut bytes).cast())
        ),
        INVALID
    );
    let current = CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT;
    assert_eq!(
        cu!(
            fixture.api,
            cuDeviceSetGraphMemAttribute(0, current, (&raw mut bytes).cast())
        ),
        INVALID
    );
}
