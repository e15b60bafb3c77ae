//! The structure of graphs: nodes, dependencies, clones, identifiers and user objects.

use std::ffi::{c_int, c_uint, c_void};

use curium_sys::{
    CUgraph, CUgraphEdgeData, CUgraphExec, CUgraphMem_attribute, CUgraphNode, CUgraphNodeType,
    CUuserObject,
};

use crate::properties::MAJOR;
use crate::state::enter;
use crate::{cu, forward, runtime};

/// A list of edges as arguments: since CUDA 13, the data of the edges precede their count, which is
/// a number or the address of one.
struct Edges {
    data: usize,
    count: usize,
}

impl Edges {
    fn from_arguments(first: usize, second: usize) -> Self {
        if MAJOR <= 12 {
            Self {
                data: 0,
                count: first,
            }
        } else {
            Self {
                data: first,
                count: second,
            }
        }
    }

    fn data<T>(&self) -> *mut T {
        std::ptr::with_exposed_provenance_mut(self.data)
    }

    fn count_output(&self) -> *mut usize {
        std::ptr::with_exposed_provenance_mut(self.count)
    }
}

runtime! {
    fn cudaGraphAddDependencies(
        graph: CUgraph,
        from: *const CUgraphNode,
        to: *const CUgraphNode,
        first: usize,
        second: usize,
    ) {
        enter()?;
        let edges = Edges::from_arguments(first, second);
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuGraphAddDependencies_v2(graph, from, to, edges.data(), edges.count)) }
    }

    fn cudaGraphRemoveDependencies(
        graph: CUgraph,
        from: *const CUgraphNode,
        to: *const CUgraphNode,
        first: usize,
        second: usize,
    ) {
        enter()?;
        let edges = Edges::from_arguments(first, second);
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuGraphRemoveDependencies_v2(graph, from, to, edges.data(), edges.count)) }
    }

    fn cudaGraphGetEdges(
        graph: CUgraph,
        from: *mut CUgraphNode,
        to: *mut CUgraphNode,
        first: usize,
        second: usize,
    ) {
        enter()?;
        let edges = Edges::from_arguments(first, second);
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuGraphGetEdges_v2(graph, from, to, edges.data(), edges.count_output())) }
    }

    fn cudaGraphNodeGetDependencies(
        node: CUgraphNode,
        nodes: *mut CUgraphNode,
        first: usize,
        second: usize,
    ) {
        enter()?;
        let edges = Edges::from_arguments(first, second);
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuGraphNodeGetDependencies_v2(node, nodes, edges.data(), edges.count_output())) }
    }

    fn cudaGraphNodeGetDependentNodes(
        node: CUgraphNode,
        nodes: *mut CUgraphNode,
        first: usize,
        second: usize,
    ) {
        enter()?;
        let edges = Edges::from_arguments(first, second);
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuGraphNodeGetDependentNodes_v2(node, nodes, edges.data(), edges.count_output())) }
    }
}

forward! {
    unsafe fn cudaGraphAddDependencies_v2(
        graph: CUgraph,
        from: *const CUgraphNode,
        to: *const CUgraphNode,
        edges: *const CUgraphEdgeData,
        count: usize,
    ) = cuGraphAddDependencies_v2(graph, from, to, edges, count);

    unsafe fn cudaGraphRemoveDependencies_v2(
        graph: CUgraph,
        from: *const CUgraphNode,
        to: *const CUgraphNode,
        edges: *const CUgraphEdgeData,
        count: usize,
    ) = cuGraphRemoveDependencies_v2(graph, from, to, edges, count);

    unsafe fn cudaGraphGetEdges_v2(
        graph: CUgraph,
        from: *mut CUgraphNode,
        to: *mut CUgraphNode,
        edges: *mut CUgraphEdgeData,
        count: *mut usize,
    ) = cuGraphGetEdges_v2(graph, from, to, edges, count);

    unsafe fn cudaGraphNodeGetDependencies_v2(
        node: CUgraphNode,
        nodes: *mut CUgraphNode,
        edges: *mut CUgraphEdgeData,
        count: *mut usize,
    ) = cuGraphNodeGetDependencies_v2(node, nodes, edges, count);

    unsafe fn cudaGraphNodeGetDependentNodes_v2(
        node: CUgraphNode,
        nodes: *mut CUgraphNode,
        edges: *mut CUgraphEdgeData,
        count: *mut usize,
    ) = cuGraphNodeGetDependentNodes_v2(node, nodes, edges, count);

    unsafe fn cudaGraphClone(clone: *mut CUgraph, original: CUgraph)
        = cuGraphClone(clone, original);

    unsafe fn cudaGraphDestroyNode(node: CUgraphNode) = cuGraphDestroyNode(node);

    unsafe fn cudaGraphGetRootNodes(graph: CUgraph, nodes: *mut CUgraphNode, count: *mut usize)
        = cuGraphGetRootNodes(graph, nodes, count);

    unsafe fn cudaGraphNodeFindInClone(
        node: *mut CUgraphNode,
        original: CUgraphNode,
        clone: CUgraph,
    ) = cuGraphNodeFindInClone(node, original, clone);

    unsafe fn cudaGraphNodeGetType(node: CUgraphNode, kind: *mut CUgraphNodeType)
        = cuGraphNodeGetType(node, kind);

    unsafe fn cudaGraphNodeGetEnabled(exec: CUgraphExec, node: CUgraphNode, is_enabled: *mut c_uint)
        = cuGraphNodeGetEnabled(exec, node, is_enabled);

    unsafe fn cudaGraphNodeSetEnabled(exec: CUgraphExec, node: CUgraphNode, is_enabled: c_uint)
        = cuGraphNodeSetEnabled(exec, node, is_enabled);

    unsafe fn cudaGraphNodeGetContainingGraph(node: CUgraphNode, graph: *mut CUgraph)
        = cuGraphNodeGetContainingGraph(node, graph);

    unsafe fn cudaGraphNodeGetLocalId(node: CUgraphNode, id: *mut c_uint)
        = cuGraphNodeGetLocalId(node, id);

    unsafe fn cudaGraphNodeGetToolsId(node: CUgraphNode, id: *mut u64)
        = cuGraphNodeGetToolsId(node, id);

    unsafe fn cudaGraphGetId(graph: CUgraph, id: *mut c_uint) = cuGraphGetId(graph, id);

    unsafe fn cudaGraphExecGetId(exec: CUgraphExec, id: *mut c_uint) = cuGraphExecGetId(exec, id);

    unsafe fn cudaGraphExecGetFlags(exec: CUgraphExec, flags: *mut u64)
        = cuGraphExecGetFlags(exec, flags);

    unsafe fn cudaGraphReleaseUserObject(graph: CUgraph, object: CUuserObject, count: c_uint)
        = cuGraphReleaseUserObject(graph, object, count);

    unsafe fn cudaUserObjectRetain(object: CUuserObject, count: c_uint)
        = cuUserObjectRetain(object, count);

    unsafe fn cudaDeviceSetGraphMemAttribute(
        device: c_int,
        attribute: CUgraphMem_attribute,
        value: *mut c_void,
    ) = cuDeviceSetGraphMemAttribute(device, attribute, value);
}
