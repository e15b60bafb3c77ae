//! Graph nodes that the C API describes by one structure, and memory nodes.

use std::ptr;

use curium_driver::Driver;
use curium_sys::{
    CUDA_ARRAY_DESCRIPTOR, CUDA_BATCH_MEM_OP_NODE_PARAMS_v2, CUDA_MEMCPY3D,
    CUDA_MEMSET_NODE_PARAMS_v2, CUarray, CUarray_format, CUcontext, CUdeviceptr, CUgraph,
    CUgraphChildGraphNodeOwnership, CUgraphExec, CUgraphInstantiate_flags, CUgraphMem_attribute,
    CUgraphNode, CUgraphNodeParams, CUgraphNodeType, CUmemAllocationType, CUmemorytype, CUstream,
    CUstreamBatchMemOpParams,
    CUstreamBatchMemOpParams_union_CUstreamMemOpWriteValueParams_st as WriteValue,
    CUstreamBatchMemOpType,
};
use curium_tests::on_driver;

use super::call::{alloc, create, succeed, word};
use super::{INVALID_VALUE, in_created_context};

pub(super) fn graph(driver: &Driver) -> CUgraph {
    create!(driver, cuGraphCreate(_, 0))
}

pub(super) fn instantiate(driver: &Driver, graph: CUgraph) -> CUgraphExec {
    create!(driver, cuGraphInstantiateWithFlags(_, graph, 0))
}

/// Launches an executable graph, and waits.
pub(super) fn run(driver: &Driver, executable: CUgraphExec) {
    let stream: CUstream = create!(driver, cuStreamCreate(_, 1));
    succeed!(driver, cuGraphLaunch(executable, stream));
    succeed!(driver, cuStreamSynchronize(stream));
    succeed!(driver, cuStreamDestroy_v2(stream));
}

pub(super) fn params(kind: CUgraphNodeType) -> CUgraphNodeParams {
    CUgraphNodeParams {
        type_: kind,
        ..CUgraphNodeParams::default()
    }
}

/// Returns the description of a node that fills words.
pub(super) fn fill(
    context: CUcontext,
    dst: CUdeviceptr,
    value: u32,
    words: usize,
) -> CUgraphNodeParams {
    let mut params = params(CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET);
    params.__bindgen_anon_1.memset = CUDA_MEMSET_NODE_PARAMS_v2 {
        dst,
        value,
        elementSize: 4,
        width: words,
        height: 1,
        ctx: context,
        ..CUDA_MEMSET_NODE_PARAMS_v2::default()
    };
    params
}

/// Adds a node after at most one other.
pub(super) fn add(
    driver: &Driver,
    graph: CUgraph,
    after: Option<CUgraphNode>,
    params: &mut CUgraphNodeParams,
) -> CUgraphNode {
    let dependencies = after.as_slice();
    create!(
        driver,
        cuGraphAddNode_v2(
            _,
            graph,
            dependencies.as_ptr(),
            ptr::null(),
            dependencies.len(),
            &raw mut *params
        )
    )
}

/// Returns a write of one word, as an operation of a batch.
fn write(address: CUdeviceptr, value: u32) -> CUstreamBatchMemOpParams {
    let mut write = WriteValue {
        operation: CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_32,
        address,
        ..WriteValue::default()
    };
    write.__bindgen_anon_1.value = value;
    CUstreamBatchMemOpParams { writeValue: write }
}

/// Returns the description of a node with one operation.
fn batch(context: CUcontext, operation: &mut CUstreamBatchMemOpParams) -> CUgraphNodeParams {
    let mut params = params(CUgraphNodeType::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
    params.__bindgen_anon_1.memOp = CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 {
        ctx: context,
        count: 1,
        paramArray: operation,
        flags: 0,
    };
    params
}

#[test]
fn nodes_are_described_by_one_structure() {
    on_driver(|test| {
        in_created_context(test, |driver, context| {
            let memory = alloc(driver, 12);
            let words = || [0, 4, 8].map(|offset| word(driver, memory + offset));
            let graph = graph(driver);
            let fill = add(driver, graph, None, &mut fill(context, memory, 3, 3));
            let mut operation = write(memory + 4, 8);
            let mut described_batch = batch(context, &mut operation);
            let batch_node = add(driver, graph, Some(fill), &mut described_batch);
            let mut empty = params(CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY);
            add(driver, graph, Some(batch_node), &mut empty);
            let other_kind = returned!(driver, cuGraphNodeSetParams(batch_node, &raw mut empty));
            assert_eq!(other_kind, INVALID_VALUE);
            let executable = instantiate(driver, graph);
            run(driver, executable);
            assert_eq!(words(), [3, 8, 3]);
            operation = write(memory + 4, 7);
            let mut described_batch = batch(context, &mut operation);
            succeed!(
                driver,
                cuGraphExecNodeSetParams(executable, batch_node, &raw mut described_batch)
            );
            run(driver, executable);
            assert_eq!(words(), [3, 7, 3]);
            succeed!(driver, cuGraphExecDestroy(executable));
            succeed!(driver, cuGraphDestroy(graph));
        });
    });
}

#[test]
fn moved_child_graph_belongs_to_its_node() {
    on_driver(|test| {
        in_created_context(test, |driver, context| {
            let memory = alloc(driver, 4);
            let parent = graph(driver);
            let child = graph(driver);
            add(driver, child, None, &mut fill(context, memory, 2, 1));
            let mut params = params(CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH);
            params.__bindgen_anon_1.graph.graph = child;
            params.__bindgen_anon_1.graph.ownership =
                CUgraphChildGraphNodeOwnership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
            let node = add(driver, parent, None, &mut params);
            let mut graph_of_node = ptr::null_mut();
            succeed!(
                driver,
                cuGraphChildGraphNodeGetGraph(node, &raw mut graph_of_node)
            );
            assert_eq!(graph_of_node, child);
            let executable = instantiate(driver, parent);
            run(driver, executable);
            assert_eq!(word(driver, memory), 2);
            succeed!(driver, cuGraphExecDestroy(executable));
            succeed!(driver, cuGraphDestroy(parent));
        });
    });
}

#[test]
fn nodes_copy_arrays() {
    on_driver(|test| {
        in_created_context(test, |driver, context| {
            let shape = CUDA_ARRAY_DESCRIPTOR {
                Width: 4,
                Height: 2,
                Format: CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8,
                NumChannels: 1,
            };
            let array: CUarray = create!(driver, cuArrayCreate_v2(_, &raw const shape));
            let source = [1_u8, 2, 3, 4, 5, 6, 7, 8];
            let mut target = [0_u8; 8];
            let to_array = CUDA_MEMCPY3D {
                srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
                srcHost: source.as_ptr().cast(),
                srcPitch: 4,
                dstMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
                dstArray: array,
                WidthInBytes: 4,
                Height: 2,
                Depth: 1,
                ..CUDA_MEMCPY3D::default()
            };
            let from_array = CUDA_MEMCPY3D {
                srcMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
                srcArray: array,
                srcXInBytes: 1,
                dstMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
                dstHost: target.as_mut_ptr().cast(),
                dstPitch: 4,
                WidthInBytes: 3,
                Height: 2,
                Depth: 1,
                ..CUDA_MEMCPY3D::default()
            };
            let graph = graph(driver);
            let upload: CUgraphNode = create!(
                driver,
                cuGraphAddMemcpyNode(_, graph, ptr::null(), 0, &raw const to_array, context)
            );
            let _download: CUgraphNode = create!(
                driver,
                cuGraphAddMemcpyNode(
                    _,
                    graph,
                    &raw const upload,
                    1,
                    &raw const from_array,
                    context
                )
            );
            let executable = instantiate(driver, graph);
            run(driver, executable);
            // The node wrote through the address.
            assert_eq!(std::hint::black_box(&target), &[2, 3, 4, 0, 6, 7, 8, 0]);
            succeed!(driver, cuGraphExecDestroy(executable));
            succeed!(driver, cuGraphDestroy(graph));
            succeed!(driver, cuArrayDestroy(array));
        });
    });
}

#[test]
fn memory_of_a_launch_is_freed_before_the_next() {
    on_driver(|test| {
        in_created_context(test, |driver, _| {
            let graph = graph(driver);
            let mut params = params(CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC);
            params.__bindgen_anon_1.alloc.bytesize = 64;
            // SAFETY: by its type, this is an allocation.
            let allocation = unsafe { &mut params.__bindgen_anon_1.alloc };
            allocation.poolProps.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
            allocation.poolProps.location = super::mapping::location(test);
            add(driver, graph, None, &mut params);
            // SAFETY: the driver has written the address.
            let memory = unsafe { params.__bindgen_anon_1.alloc }.dptr;
            let executable = instantiate(driver, graph);
            let before_launch = returned!(driver, cuMemFree_v2(memory));
            assert_eq!(before_launch, INVALID_VALUE, "nothing has allocated it");
            run(driver, executable);
            let stream: CUstream = create!(driver, cuStreamCreate(_, 1));
            let second_launch = returned!(driver, cuGraphLaunch(executable, stream));
            assert_eq!(second_launch, INVALID_VALUE, "it is allocated");
            succeed!(driver, cuMemFreeAsync(memory, stream));
            succeed!(driver, cuStreamSynchronize(stream));
            run(driver, executable);
            succeed!(driver, cuMemFree_v2(memory));
            succeed!(driver, cuGraphExecDestroy(executable));
            let auto_free =
                CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
            let executable: CUgraphExec = create!(
                driver,
                cuGraphInstantiateWithFlags(_, graph, auto_free.0.into())
            );
            run(driver, executable);
            run(driver, executable);
            succeed!(driver, cuMemFree_v2(memory));
            succeed!(driver, cuGraphExecDestroy(executable));
            succeed!(driver, cuGraphDestroy(graph));
            succeed!(driver, cuStreamDestroy_v2(stream));
        });
    });
}

#[test]
fn unknown_and_read_only_graph_memory_attributes() {
    on_driver(|test| {
        let device = test.device().as_raw();
        let mut bytes = 0_u64;
        let value = (&raw mut bytes).cast();
        let unknown = returned!(
            test.driver(),
            cuDeviceGetGraphMemAttribute(device, CUgraphMem_attribute(9), value)
        );
        assert_eq!(unknown, INVALID_VALUE);
        let current = CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT;
        let read_only = returned!(
            test.driver(),
            cuDeviceSetGraphMemAttribute(device, current, value)
        );
        assert_eq!(read_only, INVALID_VALUE);
    });
}
