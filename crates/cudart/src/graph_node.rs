//! Nodes of each kind: creation, parameters, and the parameters of an executable.

use std::ffi::{c_int, c_void};

use curium_sys::{
    CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS,
    CUevent, CUgraph, CUgraphExec, CUgraphNode, CUkernelNodeAttrID, CUkernelNodeAttrValue,
};

use crate::copy_3d::Copy;
use crate::graph::{KernelNodeParams, bytes, context, kernel};
use crate::memory::{address, begin_copy};
use crate::properties::MAJOR;
use crate::state::{INVALID_VALUE, Out, enter};
use crate::symbol::within;
use crate::{cu, forward, runtime};

runtime! {
    fn cudaGraphKernelNodeGetParams(node: CUgraphNode, params: Out<KernelNodeParams>) {
        enter()?;
        let mut driver = CUDA_KERNEL_NODE_PARAMS::default();
        // SAFETY: `driver` is valid for writes, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuGraphKernelNodeGetParams_v2(node, &raw mut driver)) }?;
        params.write(KernelNodeParams::from_driver(&driver)?)
    }

    fn cudaGraphKernelNodeSetParams(node: CUgraphNode, params: Option<&KernelNodeParams>) {
        enter()?;
        let params = kernel(params)?;
        // SAFETY: `params` lives during the call, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuGraphKernelNodeSetParams_v2(node, &raw const params)) }
    }

    // CUDA 13 exchanged the parameters.
    fn cudaGraphKernelNodeCopyAttributes(first: CUgraphNode, second: CUgraphNode) {
        enter()?;
        let to = if MAJOR <= 12 { second } else { first };
        let from = if MAJOR <= 12 { first } else { second };
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuGraphKernelNodeCopyAttributes(to, from)) }
    }

    fn cudaGraphAddMemcpyNode(
        node: *mut CUgraphNode,
        graph: CUgraph,
        after: *const CUgraphNode,
        count: usize,
        params: Option<&Copy>,
    ) {
        let copy = params.ok_or(INVALID_VALUE)?.to_driver()?;
        let context = context()?;
        // SAFETY: `copy` lives during the call, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuGraphAddMemcpyNode(node, graph, after, count, &raw const copy, context)) }
    }

    fn cudaGraphMemcpyNodeGetParams(node: CUgraphNode, params: Out<Copy>) {
        enter()?;
        let mut driver = CUDA_MEMCPY3D::default();
        // SAFETY: `driver` is valid for writes, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuGraphMemcpyNodeGetParams(node, &raw mut driver)) }?;
        params.write(Copy::from_driver(&driver)?)
    }

    fn cudaGraphMemcpyNodeSetParams(node: CUgraphNode, params: Option<&Copy>) {
        let copy = params.ok_or(INVALID_VALUE)?.to_driver()?;
        // SAFETY: `copy` lives during the call, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuGraphMemcpyNodeSetParams(node, &raw const copy)) }
    }

    fn cudaGraphExecMemcpyNodeSetParams(
        exec: CUgraphExec,
        node: CUgraphNode,
        params: Option<&Copy>,
    ) {
        let copy = params.ok_or(INVALID_VALUE)?.to_driver()?;
        let context = context()?;
        // SAFETY: `copy` lives during the call, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuGraphExecMemcpyNodeSetParams(exec, node, &raw const copy, context)) }
    }

    fn cudaGraphMemcpyNodeSetParams1D(
        node: CUgraphNode,
        to: *mut c_void,
        from: *const c_void,
        size: usize,
        direction: c_int,
    ) {
        begin_copy(direction)?;
        let copy = bytes(address(to), address(from), size);
        // SAFETY: `copy` lives during the call, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuGraphMemcpyNodeSetParams(node, &raw const copy)) }
    }

    fn cudaGraphAddMemcpyNodeToSymbol(
        node: *mut CUgraphNode,
        graph: CUgraph,
        after: *const CUgraphNode,
        count: usize,
        symbol: *const c_void,
        from: *const c_void,
        size: usize,
        offset: usize,
        direction: c_int,
    ) {
        begin_copy(direction)?;
        let copy = bytes(within(symbol, offset, size)?, address(from), size);
        let context = context()?;
        // SAFETY: `copy` lives during the call, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuGraphAddMemcpyNode(node, graph, after, count, &raw const copy, context)) }
    }

    fn cudaGraphAddMemcpyNodeFromSymbol(
        node: *mut CUgraphNode,
        graph: CUgraph,
        after: *const CUgraphNode,
        count: usize,
        to: *mut c_void,
        symbol: *const c_void,
        size: usize,
        offset: usize,
        direction: c_int,
    ) {
        begin_copy(direction)?;
        let copy = bytes(address(to), within(symbol, offset, size)?, size);
        let context = context()?;
        // SAFETY: `copy` lives during the call, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuGraphAddMemcpyNode(node, graph, after, count, &raw const copy, context)) }
    }

    fn cudaGraphMemcpyNodeSetParamsToSymbol(
        node: CUgraphNode,
        symbol: *const c_void,
        from: *const c_void,
        size: usize,
        offset: usize,
        direction: c_int,
    ) {
        begin_copy(direction)?;
        let copy = bytes(within(symbol, offset, size)?, address(from), size);
        // SAFETY: `copy` lives during the call, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuGraphMemcpyNodeSetParams(node, &raw const copy)) }
    }

    fn cudaGraphMemcpyNodeSetParamsFromSymbol(
        node: CUgraphNode,
        to: *mut c_void,
        symbol: *const c_void,
        size: usize,
        offset: usize,
        direction: c_int,
    ) {
        begin_copy(direction)?;
        let copy = bytes(address(to), within(symbol, offset, size)?, size);
        // SAFETY: `copy` lives during the call, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuGraphMemcpyNodeSetParams(node, &raw const copy)) }
    }

    fn cudaGraphExecMemcpyNodeSetParamsToSymbol(
        exec: CUgraphExec,
        node: CUgraphNode,
        symbol: *const c_void,
        from: *const c_void,
        size: usize,
        offset: usize,
        direction: c_int,
    ) {
        begin_copy(direction)?;
        let copy = bytes(within(symbol, offset, size)?, address(from), size);
        let context = context()?;
        // SAFETY: `copy` lives during the call, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuGraphExecMemcpyNodeSetParams(exec, node, &raw const copy, context)) }
    }

    fn cudaGraphExecMemcpyNodeSetParamsFromSymbol(
        exec: CUgraphExec,
        node: CUgraphNode,
        to: *mut c_void,
        symbol: *const c_void,
        size: usize,
        offset: usize,
        direction: c_int,
    ) {
        begin_copy(direction)?;
        let copy = bytes(address(to), within(symbol, offset, size)?, size);
        let context = context()?;
        // SAFETY: `copy` lives during the call, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuGraphExecMemcpyNodeSetParams(exec, node, &raw const copy, context)) }
    }

    fn cudaGraphExecMemsetNodeSetParams(
        exec: CUgraphExec,
        node: CUgraphNode,
        params: *const CUDA_MEMSET_NODE_PARAMS,
    ) {
        let context = context()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuGraphExecMemsetNodeSetParams(exec, node, params, context)) }
    }
}

forward! {
    unsafe fn cudaGraphAddEventRecordNode(
        node: *mut CUgraphNode,
        graph: CUgraph,
        after: *const CUgraphNode,
        count: usize,
        event: CUevent,
    ) = cuGraphAddEventRecordNode(node, graph, after, count, event);

    unsafe fn cudaGraphAddEventWaitNode(
        node: *mut CUgraphNode,
        graph: CUgraph,
        after: *const CUgraphNode,
        count: usize,
        event: CUevent,
    ) = cuGraphAddEventWaitNode(node, graph, after, count, event);

    unsafe fn cudaGraphEventRecordNodeGetEvent(node: CUgraphNode, output: *mut CUevent)
        = cuGraphEventRecordNodeGetEvent(node, output);

    unsafe fn cudaGraphEventRecordNodeSetEvent(node: CUgraphNode, event: CUevent)
        = cuGraphEventRecordNodeSetEvent(node, event);

    unsafe fn cudaGraphEventWaitNodeGetEvent(node: CUgraphNode, output: *mut CUevent)
        = cuGraphEventWaitNodeGetEvent(node, output);

    unsafe fn cudaGraphEventWaitNodeSetEvent(node: CUgraphNode, event: CUevent)
        = cuGraphEventWaitNodeSetEvent(node, event);

    unsafe fn cudaGraphExecEventRecordNodeSetEvent(
        exec: CUgraphExec,
        node: CUgraphNode,
        event: CUevent,
    ) = cuGraphExecEventRecordNodeSetEvent(exec, node, event);

    unsafe fn cudaGraphExecEventWaitNodeSetEvent(
        exec: CUgraphExec,
        node: CUgraphNode,
        event: CUevent,
    ) = cuGraphExecEventWaitNodeSetEvent(exec, node, event);

    unsafe fn cudaGraphExecChildGraphNodeSetParams(
        exec: CUgraphExec,
        node: CUgraphNode,
        child: CUgraph,
    ) = cuGraphExecChildGraphNodeSetParams(exec, node, child);

    unsafe fn cudaGraphHostNodeGetParams(node: CUgraphNode, params: *mut CUDA_HOST_NODE_PARAMS)
        = cuGraphHostNodeGetParams(node, params);

    unsafe fn cudaGraphHostNodeSetParams(node: CUgraphNode, params: *const CUDA_HOST_NODE_PARAMS)
        = cuGraphHostNodeSetParams(node, params);

    unsafe fn cudaGraphExecHostNodeSetParams(
        exec: CUgraphExec,
        node: CUgraphNode,
        params: *const CUDA_HOST_NODE_PARAMS,
    ) = cuGraphExecHostNodeSetParams(exec, node, params);

    unsafe fn cudaGraphMemsetNodeGetParams(node: CUgraphNode, params: *mut CUDA_MEMSET_NODE_PARAMS)
        = cuGraphMemsetNodeGetParams(node, params);

    unsafe fn cudaGraphMemsetNodeSetParams(
        node: CUgraphNode,
        params: *const CUDA_MEMSET_NODE_PARAMS,
    ) = cuGraphMemsetNodeSetParams(node, params);

    unsafe fn cudaGraphKernelNodeGetAttribute(
        node: CUgraphNode,
        attribute: CUkernelNodeAttrID,
        value: *mut CUkernelNodeAttrValue,
    ) = cuGraphKernelNodeGetAttribute(node, attribute, value);

    unsafe fn cudaGraphKernelNodeSetAttribute(
        node: CUgraphNode,
        attribute: CUkernelNodeAttrID,
        value: *const CUkernelNodeAttrValue,
    ) = cuGraphKernelNodeSetAttribute(node, attribute, value);
}
