//! Objects of the runtime on the simulator: graphs, libraries, execution contexts, arrays,
//! per-thread streams.

use std::ffi::{c_char, c_uint, c_void};
use std::ptr;

use curium_sys::{
    CUarray, CUcontext, CUdevResource, CUdevResourceDesc, CUdevResourceType, CUgraph, CUgraphNode,
    CUgraphNodeType, CUkernel, CUlibrary, CUstream, CUstreamCaptureStatus,
};

use crate::array::*;
use crate::copy_3d::Pitched;
use crate::device::*;
use crate::entry_point::*;
use crate::execution_context::*;
use crate::graph::*;
use crate::graph_structure::*;
use crate::launch::*;
use crate::library::*;
use crate::memory::*;
use crate::properties::MAJOR;
use crate::stream::*;
use crate::tests::{BINARY, simulate};
use crate::texture::Channels;

/// Returns the arguments of a list of edges without data: since CUDA 13, the data precede the
/// count.
fn edges_without_data(count: usize) -> [usize; 2] {
    if MAJOR <= 12 { [count, 0] } else { [0, count] }
}

#[test]
fn graph_is_cloned_and_its_edges_are_listed() {
    let _turn = simulate();
    let mut graph = CUgraph::default();
    let mut clone = CUgraph::default();
    let mut nodes = [CUgraphNode::default(); 2];
    call!(cudaGraphCreate(&raw mut graph, 0));
    for node in &mut nodes {
        call!(cudaGraphAddEmptyNode(node, graph, ptr::null(), 0));
    }
    let one_edge = edges_without_data(1);
    call!(cudaGraphAddDependencies(
        graph,
        &raw const nodes[0],
        &raw const nodes[1],
        one_edge[0],
        one_edge[1]
    ));
    let mut count = 9_usize;
    let count_output = edges_without_data((&raw mut count).expose_provenance());
    call!(cudaGraphGetEdges(
        graph,
        ptr::null_mut(),
        ptr::null_mut(),
        count_output[0],
        count_output[1]
    ));
    assert_eq!(count, 1);
    let mut kind = CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL;
    let mut node = CUgraphNode::default();
    call!(cudaGraphClone(&raw mut clone, graph));
    call!(cudaGraphNodeFindInClone(&raw mut node, nodes[1], clone));
    call!(cudaGraphNodeGetType(node, &raw mut kind));
    assert_eq!(kind, CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY);
    let mut root = CUgraphNode::default();
    count = 1;
    call!(cudaGraphGetRootNodes(graph, &raw mut root, &raw mut count));
    assert_eq!((root, count), (nodes[0], 1));
    call!(cudaGraphRemoveDependencies(
        graph,
        &raw const nodes[0],
        &raw const nodes[1],
        one_edge[0],
        one_edge[1]
    ));
    call!(cudaGraphGetEdges(
        graph,
        ptr::null_mut(),
        ptr::null_mut(),
        count_output[0],
        count_output[1]
    ));
    assert_eq!(count, 0);
    call!(cudaGraphDestroyNode(nodes[0]));
    call!(cudaGraphDestroy(clone));
    call!(cudaGraphDestroy(graph));
}

#[test]
fn library_kernel_is_launched() {
    let _turn = simulate();
    let mut library = CUlibrary::default();
    let mut kernel = CUkernel::default();
    let mut count = 0;
    let none = ptr::null_mut();
    let code = BINARY.as_ptr().cast();
    call!(cudaLibraryLoadData(
        &raw mut library,
        code,
        ptr::null_mut(),
        none,
        0,
        ptr::null_mut(),
        none,
        0
    ));
    call!(cudaLibraryGetKernelCount(&raw mut count, library));
    assert_eq!(count, 1);
    call!(cudaLibraryGetKernel(
        (&mut kernel).into(),
        library,
        c"add".as_ptr()
    ));
    let host: *const c_void = kernel.cast_const().cast();
    let mut parameters = 0;
    call!(cudaFuncGetParamCount(host, &raw mut parameters));
    assert_eq!(parameters, 2);
    let mut memory: *mut c_void = ptr::null_mut();
    call!(cudaMalloc((&mut memory).into(), 128));
    call!(cudaMemset(memory, 0, 128));
    let mut addend = 5_i32;
    let mut values: [*mut c_void; 2] = [(&raw mut memory).cast(), (&raw mut addend).cast()];
    call!(cudaLaunchKernel(
        host,
        Dim3::new(1, 1, 1),
        Dim3::new(32, 1, 1),
        values.as_mut_ptr(),
        0,
        ptr::null_mut()
    ));
    let mut numbers = [0_i32; 32];
    call!(cudaMemcpy(numbers.as_mut_ptr().cast(), memory, 128, 2));
    assert_eq!(numbers, [5; 32]);
    call!(cudaFree(memory));
    call!(cudaLibraryUnload(library));
}

#[test]
fn green_context_has_a_stream_and_is_destroyed() {
    let _turn = simulate();
    let mut whole = CUdevResource::default();
    let mut group = CUdevResource::default();
    let mut groups = 1;
    let mut description = CUdevResourceDesc::default();
    let mut context = CUcontext::default();
    let mut stream = CUstream::default();
    let kind = CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM;
    call!(cudaDeviceGetDevResource(0, &raw mut whole, kind));
    call!(cudaDevSmResourceSplitByCount(
        &raw mut group,
        &raw mut groups,
        &raw const whole,
        ptr::null_mut(),
        0,
        8
    ));
    call!(cudaDevResourceGenerateDesc(
        &raw mut description,
        &raw mut group,
        1
    ));
    call!(cudaGreenCtxCreate((&mut context).into(), description, 0, 0));
    let mut device = 9;
    call!(cudaExecutionCtxGetDevice(&raw mut device, context));
    assert_eq!(device, 0);
    call!(cudaExecutionCtxStreamCreate(&raw mut stream, context, 1, 0));
    call!(cudaStreamSynchronize(stream));
    call!(cudaStreamDestroy(stream));
    call!(cudaExecutionCtxSynchronize(context));
    call!(cudaExecutionCtxDestroy(context));
    let mut primary = CUcontext::default();
    call!(cudaDeviceGetExecutionCtx((&mut primary).into(), 0));
    assert_eq!(code!(cudaExecutionCtxDestroy(primary)), 1);
}

/// The legacy default stream cannot be captured.
#[test]
fn variant_uses_the_default_stream_of_the_thread() {
    let _turn = simulate();
    let stream = CUstream::default();
    let mut graph = CUgraph::default();
    let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    let mut id = 0;
    assert_ne!(code!(cudaStreamBeginCapture(stream, 2)), 0);
    call!(cudaStreamBeginCapture_ptsz(stream, 2));
    call!(cudaStreamGetCaptureInfo_ptsz(
        stream,
        &raw mut status,
        &raw mut id,
        ptr::null_mut(),
        ptr::null_mut(),
        ptr::null_mut(),
        ptr::null_mut()
    ));
    assert_eq!(
        status,
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE
    );
    call!(cudaStreamEndCapture_ptsz(stream, &raw mut graph));
    call!(cudaGraphDestroy(graph));
    let mut memory: *mut c_void = ptr::null_mut();
    call!(cudaMalloc((&mut memory).into(), 16));
    call!(cudaMemset_ptds(memory, 3, 16));
    let mut bytes = [0_u8; 16];
    call!(cudaMemcpy_ptds(bytes.as_mut_ptr().cast(), memory, 16, 2));
    assert_eq!(bytes, [3; 16]);
    call!(cudaFree(memory));
}

#[test]
fn linear_copies_of_an_array_continue_in_rows() {
    let _turn = simulate();
    let channels = Channels::new([8, 0, 0, 0], 1);
    let mut arrays = [CUarray::default(); 2];
    for array in &mut arrays {
        call!(cudaMallocArray(array, Some(&channels), 4, 3, 0));
    }
    let source: [u8; 12] = std::array::from_fn(|index| index as u8);
    let mut result = [0_u8; 7];
    let from = source.as_ptr().cast();
    call!(cudaMemcpyToArray(arrays[0], 0, 0, from, 12, 1));
    let to = result.as_mut_ptr().cast();
    call!(cudaMemcpyFromArray(to, arrays[0], 3, 0, 7, 2));
    assert_eq!(result, [3, 4, 5, 6, 7, 8, 9]);
    call!(cudaMemcpyToArray(arrays[1], 0, 0, from, 12, 1));
    call!(cudaMemcpyArrayToArray(
        arrays[1], 1, 0, arrays[0], 2, 1, 6, 3
    ));
    call!(cudaMemcpyFromArray(to, arrays[1], 0, 0, 7, 2));
    assert_eq!(result, [0, 6, 7, 8, 9, 10, 11]);
    for array in arrays {
        call!(cudaFreeArray(array));
    }
}

#[test]
fn box_is_allocated_and_set() {
    let _turn = simulate();
    let extent = Extent {
        width: 5,
        height: 2,
        depth: 3,
    };
    let mut memory = Pitched {
        start: ptr::null_mut(),
        pitch: 0,
        width: 0,
        height: 0,
    };
    call!(cudaMalloc3D((&mut memory).into(), extent));
    assert_eq!((memory.width, memory.height), (5, 2));
    call!(cudaMemset3D(memory, 1, extent));
    let part = Extent {
        width: 2,
        height: 1,
        depth: 3,
    };
    call!(cudaMemset3D_ptds(memory, 7, part));
    let mut bytes = [0_u8; 30];
    let to = bytes.as_mut_ptr().cast();
    call!(cudaMemcpy2D(to, 5, memory.start, memory.pitch, 5, 6, 2));
    for layer in bytes.as_chunks::<10>().0 {
        assert_eq!(layer, &[7, 7, 1, 1, 1, 1, 1, 1, 1, 1]);
    }
    call!(cudaFree(memory.start));
}

#[test]
fn driver_functions_and_flags_are_queried() {
    let _turn = simulate();
    let mut function: *mut c_void = ptr::null_mut();
    let name: *const c_char = c"cuMemAlloc".as_ptr();
    call!(cudaGetDriverEntryPoint(
        name,
        &raw mut function,
        0,
        ptr::null_mut()
    ));
    assert!(!function.is_null());
    let mut flags: c_uint = 0;
    call!(cudaSetDeviceFlags(8 | 4));
    call!(cudaGetDeviceFlags((&mut flags).into()));
    assert_eq!(flags, 8 | 4);
    call!(cudaSetDeviceFlags(0));
    let devices = [0, 7];
    assert_eq!(code!(cudaSetValidDevices(devices.as_ptr(), 2)), 101);
    call!(cudaSetValidDevices(devices.as_ptr(), 1));
    call!(cudaSetValidDevices(ptr::null(), 0));
}
