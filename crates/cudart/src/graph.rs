//! Graphs built from nodes.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr;

use curium_sys::{
    CUDA_GRAPH_INSTANTIATE_PARAMS, CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS,
    CUDA_MEM_ALLOC_NODE_PARAMS, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUcontext, CUdeviceptr,
    CUgraph, CUgraphConditionalHandle, CUgraphEdgeData, CUgraphExec, CUgraphExecUpdateResult,
    CUgraphMem_attribute, CUgraphNode, CUhostFn, CUmemorytype, CUstream, CUstreamCaptureMode,
    CUuserObject,
};

use crate::launch::{Dim3, function};
use crate::memory::{address, begin_copy};
use crate::properties::MAJOR;
use crate::state::{INVALID_VALUE, Result, enter, per_thread};
use crate::{cu, forward, registry, runtime};

/// `cudaKernelNodeParams`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct KernelNodeParams {
    pub(crate) host: *const c_void,
    grid: Dim3,
    block: Dim3,
    shared: c_uint,
    values: *mut *mut c_void,
    extra: *mut *mut c_void,
}

const _: () = assert!(size_of::<KernelNodeParams>() == 56, "cudaKernelNodeParams");

impl KernelNodeParams {
    /// Returns the driver's parameters without the kernel.
    pub(crate) fn shape(&self) -> CUDA_KERNEL_NODE_PARAMS {
        CUDA_KERNEL_NODE_PARAMS {
            gridDimX: self.grid.x,
            gridDimY: self.grid.y,
            gridDimZ: self.grid.z,
            blockDimX: self.block.x,
            blockDimY: self.block.y,
            blockDimZ: self.block.z,
            sharedMemBytes: self.shared,
            kernelParams: self.values,
            extra: self.extra,
            ..CUDA_KERNEL_NODE_PARAMS::default()
        }
    }

    /// Returns the runtime's parameters, with the host function of the kernel if it has one, and
    /// its handle otherwise.
    pub(crate) fn from_driver(driver: &CUDA_KERNEL_NODE_PARAMS) -> Result<Self> {
        Ok(Self {
            host: registry::host_function(driver.func, driver.kern)?,
            grid: Dim3 {
                x: driver.gridDimX,
                y: driver.gridDimY,
                z: driver.gridDimZ,
            },
            block: Dim3 {
                x: driver.blockDimX,
                y: driver.blockDimY,
                z: driver.blockDimZ,
            },
            shared: driver.sharedMemBytes,
            values: driver.kernelParams,
            extra: driver.extra,
        })
    }
}

/// Returns the driver's parameters of a linear copy.
pub(crate) fn bytes(to: CUdeviceptr, from: CUdeviceptr, size: usize) -> CUDA_MEMCPY3D {
    CUDA_MEMCPY3D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
        srcDevice: from,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
        dstDevice: to,
        WidthInBytes: size,
        Height: 1,
        Depth: 1,
        ..CUDA_MEMCPY3D::default()
    }
}

/// Returns the current context.
pub(crate) fn context() -> Result<CUcontext> {
    enter()?;
    let mut current = ptr::null_mut();
    // SAFETY: `current` is valid for writes.
    unsafe { cu!(cuCtxGetCurrent(&raw mut current)) }?;
    Ok(current)
}

/// Returns the driver's parameters of a kernel node.
pub(crate) fn kernel(params: Option<&KernelNodeParams>) -> Result<CUDA_KERNEL_NODE_PARAMS> {
    let params = params.ok_or(INVALID_VALUE)?;
    Ok(CUDA_KERNEL_NODE_PARAMS {
        func: function(params.host)?,
        ..params.shape()
    })
}

runtime! {
    fn cudaGraphAddKernelNode(
        node: *mut CUgraphNode,
        graph: CUgraph,
        after: *const CUgraphNode,
        count: usize,
        params: Option<&KernelNodeParams>,
    ) {
        enter()?;
        let params = kernel(params)?;
        // SAFETY: `params` lives during the call, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuGraphAddKernelNode_v2(node, graph, after, count, &raw const params)) }
    }

    fn cudaGraphExecKernelNodeSetParams(
        exec: CUgraphExec,
        node: CUgraphNode,
        params: Option<&KernelNodeParams>,
    ) {
        enter()?;
        let params = kernel(params)?;
        // SAFETY: `params` lives during the call, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuGraphExecKernelNodeSetParams_v2(exec, node, &raw const params)) }
    }

    fn cudaGraphAddMemcpyNode1D(
        node: *mut CUgraphNode,
        graph: CUgraph,
        after: *const CUgraphNode,
        count: usize,
        to: *mut c_void,
        from: *const c_void,
        size: usize,
        direction: c_int,
    ) {
        begin_copy(direction)?;
        let copy = bytes(address(to), address(from), size);
        let context = context()?;
        // SAFETY: `copy` lives during the call, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuGraphAddMemcpyNode(node, graph, after, count, &raw const copy, context)) }
    }

    fn cudaGraphExecMemcpyNodeSetParams1D(
        exec: CUgraphExec,
        node: CUgraphNode,
        to: *mut c_void,
        from: *const c_void,
        size: usize,
        direction: c_int,
    ) {
        begin_copy(direction)?;
        let copy = bytes(address(to), address(from), size);
        let context = context()?;
        // SAFETY: `copy` lives during the call, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuGraphExecMemcpyNodeSetParams(exec, node, &raw const copy, context)) }
    }

    // Up to CUDA 11, the first node that differs and the reason are two outputs; later versions
    // have a structure.
    fn cudaGraphExecUpdate(
        exec: CUgraphExec,
        graph: CUgraph,
        output: *mut c_void,
        result: *mut CUgraphExecUpdateResult,
    ) {
        enter()?;
        if MAJOR <= 11 {
            // SAFETY: the caller of the runtime function guarantees the arguments.
            return unsafe { cu!(cuGraphExecUpdate(exec, graph, output.cast(), result)) };
        }
        // SAFETY: the caller of the runtime function guarantees the arguments, and the structure
        // has the driver's layout.
        unsafe { cu!(cuGraphExecUpdate_v2(exec, graph, output.cast())) }
    }

    // The runtime's parameters of these nodes have the layout of the driver's.
    fn cudaGraphAddMemsetNode(
        node: *mut CUgraphNode,
        graph: CUgraph,
        after: *const CUgraphNode,
        count: usize,
        params: *const CUDA_MEMSET_NODE_PARAMS,
    ) {
        let context = context()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuGraphAddMemsetNode(node, graph, after, count, params, context)) }
    }

    fn cudaGraphConditionalHandleCreate(
        handle: *mut CUgraphConditionalHandle,
        graph: CUgraph,
        value: c_uint,
        flags: c_uint,
    ) {
        let context = context()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuGraphConditionalHandleCreate(handle, graph, context, value, flags)) }
    }

    // The execution context is a context of the driver; without one, the current context is used.
    fn cudaGraphConditionalHandleCreate_v2(
        handle: *mut CUgraphConditionalHandle,
        graph: CUgraph,
        context: CUcontext,
        value: c_uint,
        flags: c_uint,
    ) {
        let context = if context.is_null() { self::context()? } else { context };
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuGraphConditionalHandleCreate(handle, graph, context, value, flags)) }
    }

    fn cudaGraphInstantiateWithParams_ptsz(
        exec: *mut CUgraphExec,
        graph: CUgraph,
        params: *mut CUDA_GRAPH_INSTANTIATE_PARAMS,
    ) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the parameters, which nothing else
        // accesses.
        let params = unsafe { params.as_mut() }.ok_or(INVALID_VALUE)?;
        let stream = params.hUploadStream;
        params.hUploadStream = per_thread(stream);
        // SAFETY: the caller of the runtime function guarantees the arguments.
        let result = unsafe { cu!(cuGraphInstantiateWithParams(exec, graph, params)) };
        params.hUploadStream = stream;
        result
    }
}

forward! {
    unsafe fn cudaGraphInstantiateWithParams(
        exec: *mut CUgraphExec,
        graph: CUgraph,
        params: *mut CUDA_GRAPH_INSTANTIATE_PARAMS,
    ) = cuGraphInstantiateWithParams(exec, graph, params);

    unsafe fn cudaGraphAddHostNode(
        node: *mut CUgraphNode,
        graph: CUgraph,
        after: *const CUgraphNode,
        count: usize,
        params: *const CUDA_HOST_NODE_PARAMS,
    ) = cuGraphAddHostNode(node, graph, after, count, params);

    unsafe fn cudaGraphAddEmptyNode(
        node: *mut CUgraphNode,
        graph: CUgraph,
        after: *const CUgraphNode,
        count: usize,
    ) = cuGraphAddEmptyNode(node, graph, after, count);

    unsafe fn cudaGraphAddChildGraphNode(
        node: *mut CUgraphNode,
        graph: CUgraph,
        after: *const CUgraphNode,
        count: usize,
        child: CUgraph,
    ) = cuGraphAddChildGraphNode(node, graph, after, count, child);

    unsafe fn cudaGraphChildGraphNodeGetGraph(node: CUgraphNode, graph: *mut CUgraph)
        = cuGraphChildGraphNodeGetGraph(node, graph);

    unsafe fn cudaGraphAddMemAllocNode(
        node: *mut CUgraphNode,
        graph: CUgraph,
        after: *const CUgraphNode,
        count: usize,
        params: *mut CUDA_MEM_ALLOC_NODE_PARAMS,
    ) = cuGraphAddMemAllocNode(node, graph, after, count, params);

    unsafe fn cudaGraphMemAllocNodeGetParams(
        node: CUgraphNode,
        params: *mut CUDA_MEM_ALLOC_NODE_PARAMS,
    ) = cuGraphMemAllocNodeGetParams(node, params);

    unsafe fn cudaGraphMemFreeNodeGetParams(node: CUgraphNode, memory: *mut CUdeviceptr)
        = cuGraphMemFreeNodeGetParams(node, memory);

    unsafe fn cudaGraphDebugDotPrint(graph: CUgraph, path: *const c_char, flags: c_uint)
        = cuGraphDebugDotPrint(graph, path, flags);

    unsafe fn cudaUserObjectCreate(
        object: *mut CUuserObject,
        value: *mut c_void,
        destroy: CUhostFn,
        count: c_uint,
        flags: c_uint,
    ) = cuUserObjectCreate(object, value, destroy, count, flags);

    unsafe fn cudaUserObjectRelease(object: CUuserObject, count: c_uint)
        = cuUserObjectRelease(object, count);

    unsafe fn cudaGraphRetainUserObject(
        graph: CUgraph,
        object: CUuserObject,
        count: c_uint,
        flags: c_uint,
    ) = cuGraphRetainUserObject(graph, object, count, flags);

    unsafe fn cudaDeviceGraphMemTrim(device: c_int) = cuDeviceGraphMemTrim(device);

    unsafe fn cudaGraphAddMemFreeNode(
        node: *mut CUgraphNode,
        graph: CUgraph,
        after: *const CUgraphNode,
        count: usize,
        memory: *mut c_void,
    ) = cuGraphAddMemFreeNode(node, graph, after, count, address(memory));

    [cudaStreamBeginCaptureToGraph_ptsz(stream)]
    unsafe fn cudaStreamBeginCaptureToGraph(
        stream: CUstream,
        graph: CUgraph,
        after: *const CUgraphNode,
        edges: *const CUgraphEdgeData,
        count: usize,
        mode: c_uint,
    ) = cuStreamBeginCaptureToGraph(stream, graph, after, edges, count, CUstreamCaptureMode(mode));

    unsafe fn cudaDeviceGetGraphMemAttribute(device: c_int, attribute: c_uint, value: *mut c_void)
        = cuDeviceGetGraphMemAttribute(device, CUgraphMem_attribute(attribute), value);
}

#[cfg(test)]
mod tests {
    use std::ptr;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::tests::{call, code, simulate};

    extern "C" fn count(counter: *mut c_void) {
        // SAFETY: the test passes a counter.
        unsafe { &*counter.cast::<AtomicU32>() }.fetch_add(1, Ordering::Relaxed);
    }

    #[test]
    fn built_graph_runs_and_its_copy_is_updated() {
        use crate::memory::{cudaFree, cudaMalloc};
        use crate::stream::{
            cudaGraphCreate, cudaGraphDestroy, cudaGraphExecDestroy, cudaGraphInstantiateWithFlags,
            cudaGraphLaunch,
        };

        let _turn = simulate();
        let mut graph = CUgraph::default();
        let mut executable = CUgraphExec::default();
        let mut memory: *mut c_void = ptr::null_mut();
        call!(cudaGraphCreate(&raw mut graph, 0));
        call!(cudaMalloc((&mut memory).into(), 16));
        let fill = CUDA_MEMSET_NODE_PARAMS {
            dst: address(memory),
            value: 6,
            elementSize: 4,
            width: 4,
            height: 1,
            ..CUDA_MEMSET_NODE_PARAMS::default()
        };
        let [mut filled, mut copied, mut called] = [CUgraphNode::default(); 3];
        call!(cudaGraphAddMemsetNode(
            &raw mut filled,
            graph,
            ptr::null(),
            0,
            &raw const fill
        ));
        let [mut first, mut second] = [[0_u32; 4]; 2];
        let to = first.as_mut_ptr().cast();
        let filled = &raw const filled;
        call!(cudaGraphAddMemcpyNode1D(
            &raw mut copied,
            graph,
            filled,
            1,
            to,
            memory,
            16,
            2
        ));
        let counter = AtomicU32::new(0);
        let host = CUDA_HOST_NODE_PARAMS {
            fn_: Some(count),
            userData: (&raw const counter).cast_mut().cast(),
        };
        call!(cudaGraphAddHostNode(
            &raw mut called,
            graph,
            &raw const copied,
            1,
            &raw const host
        ));
        call!(cudaGraphInstantiateWithFlags(&raw mut executable, graph, 0));
        call!(cudaGraphLaunch(executable, ptr::null_mut()));
        crate::tests::synchronize();
        call!(cudaGraphExecMemcpyNodeSetParams1D(
            executable,
            copied,
            second.as_mut_ptr().cast(),
            memory,
            16,
            2
        ));
        call!(cudaGraphLaunch(executable, ptr::null_mut()));
        crate::tests::synchronize();
        assert_eq!((first, second, counter.into_inner()), ([6; 4], [6; 4], 2));
        call!(cudaGraphExecDestroy(executable));
        call!(cudaGraphDestroy(graph));
        call!(cudaFree(memory));
    }

    fn memset_graph(memory: *mut c_void, value: c_uint, nodes: usize) -> CUgraph {
        use crate::stream::cudaGraphCreate;

        let mut graph = CUgraph::default();
        call!(cudaGraphCreate(&raw mut graph, 0));
        let fill = CUDA_MEMSET_NODE_PARAMS {
            dst: address(memory),
            value,
            elementSize: 4,
            width: 4,
            height: 1,
            ..CUDA_MEMSET_NODE_PARAMS::default()
        };
        for _ in 0..nodes {
            let mut node = CUgraphNode::default();
            call!(cudaGraphAddMemsetNode(
                &raw mut node,
                graph,
                ptr::null(),
                0,
                &raw const fill
            ));
        }
        graph
    }

    #[test]
    fn executable_is_updated_from_a_similar_graph() {
        use curium_sys::CUgraphExecUpdateResultInfo;

        use crate::memory::{cudaFree, cudaMalloc, cudaMemcpy};
        use crate::stream::{
            cudaGraphDestroy, cudaGraphExecDestroy, cudaGraphInstantiateWithFlags, cudaGraphLaunch,
        };

        const UPDATE_FAILURE: c_int = 910;

        let _turn = simulate();
        let mut memory: *mut c_void = ptr::null_mut();
        call!(cudaMalloc((&mut memory).into(), 16));
        let graphs =
            [(6, 1), (7, 1), (8, 2)].map(|(value, nodes)| memset_graph(memory, value, nodes));
        let mut executable = CUgraphExec::default();
        call!(cudaGraphInstantiateWithFlags(
            &raw mut executable,
            graphs[0],
            0
        ));
        // Up to CUDA 11, the outputs are a node and a result; later versions have a structure.
        let mut info = CUgraphExecUpdateResultInfo::default();
        let mut node = CUgraphNode::default();
        let mut result = CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR;
        let output: *mut c_void = if MAJOR <= 11 {
            (&raw mut node).cast()
        } else {
            (&raw mut info).cast()
        };
        let result_output = &raw mut result;
        call!(cudaGraphExecUpdate(
            executable,
            graphs[1],
            output,
            result_output
        ));
        call!(cudaGraphLaunch(executable, ptr::null_mut()));
        let mut numbers = [0_u32; 4];
        call!(cudaMemcpy(numbers.as_mut_ptr().cast(), memory, 16, 2));
        assert_eq!(numbers, [7; 4]);
        assert_eq!(
            code!(cudaGraphExecUpdate(
                executable,
                graphs[2],
                output,
                result_output
            )),
            UPDATE_FAILURE
        );
        assert_eq!(
            if MAJOR <= 11 { result } else { info.result },
            CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED
        );
        call!(cudaGraphExecDestroy(executable));
        for graph in graphs {
            call!(cudaGraphDestroy(graph));
        }
        call!(cudaFree(memory));
    }
}
