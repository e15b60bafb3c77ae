//! Nodes and edges of a graph.

use curium_sys::{CUgraphDependencyType, CUgraphEdgeData, CUgraphNode, Function};

use super::Graph;
use super::node::Node;
use super::tree::State;
use crate::call;
use crate::{Driver, Result};

/// A dependency between two nodes.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct Edge {
    /// The node that `to` depends on.
    pub from: Node,
    /// The dependent node.
    pub to: Node,
    /// The ports and the kind of dependency.
    pub data: EdgeData,
}

/// The data of an edge: the ports and the kind of dependency.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct EdgeData {
    /// The outgoing port of the first node; 0 means its completion.
    pub from_port: u8,
    /// The incoming port of the dependent node; 0 means the whole node.
    pub to_port: u8,
    /// The kind of dependency.
    pub kind: EdgeKind,
}

/// The kind of dependency between two nodes.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum EdgeKind {
    /// The dependent node starts after the first node has completed.
    #[default]
    Full,
    /// Between kernels: the dependent kernel may start earlier and waits with `griddepcontrol.wait`
    /// (programmatic dependent launch).
    Programmatic,
    /// A kind defined by a newer driver.
    Unknown(u8),
}

/// The port of a kernel node for programmatic dependencies.
const PROGRAMMATIC_PORT: u8 = curium_sys::CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC as u8;
const LAUNCH_ORDER_PORT: u8 = curium_sys::CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER as u8;

impl EdgeData {
    /// Creates a full dependency: the dependent node starts after the first node has completed.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            from_port: 0,
            to_port: 0,
            kind: EdgeKind::Full,
        }
    }

    /// Creates a programmatic dependency between kernels. The dependent kernel starts once every
    /// block of the first kernel has triggered it, and itself waits for the completion of the first
    /// kernel.
    #[must_use]
    pub const fn programmatic() -> Self {
        Self {
            from_port: PROGRAMMATIC_PORT,
            to_port: 0,
            kind: EdgeKind::Programmatic,
        }
    }

    /// Creates a programmatic dependency between kernels. The dependent kernel starts once every
    /// block of the first kernel has started, and itself waits for the completion of the first
    /// kernel.
    #[must_use]
    pub const fn launch_order() -> Self {
        Self {
            from_port: LAUNCH_ORDER_PORT,
            to_port: 0,
            kind: EdgeKind::Programmatic,
        }
    }

    pub(super) const fn to_raw(self) -> CUgraphEdgeData {
        let kind = match self.kind {
            EdgeKind::Full => CUgraphDependencyType::CU_GRAPH_DEPENDENCY_TYPE_DEFAULT.0 as u8,
            EdgeKind::Programmatic => {
                CUgraphDependencyType::CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC.0 as u8
            }
            EdgeKind::Unknown(kind) => kind,
        };
        CUgraphEdgeData {
            from_port: self.from_port,
            to_port: self.to_port,
            type_: kind,
            reserved: [0; 5],
        }
    }

    const fn from_raw(raw: CUgraphEdgeData) -> Self {
        let kind = match raw.type_ {
            0 => EdgeKind::Full,
            1 => EdgeKind::Programmatic,
            other => EdgeKind::Unknown(other),
        };
        Self {
            from_port: raw.from_port,
            to_port: raw.to_port,
            kind,
        }
    }

    fn is_plain(self) -> bool {
        self == Self::new()
    }
}

impl Graph {
    /// Returns the nodes of this graph, excluding those of child and body graphs.
    ///
    /// CUDA: `cuGraphGetNodes`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuGraphGetNodes")]
    #[doc(alias = "cudaGraphGetNodes")]
    pub fn nodes(&self) -> Result<Vec<Node>> {
        self.nodes_in(&mut *self.tree.lock()?)
    }

    /// Returns the nodes, for a thread that holds the lock of the tree.
    pub(super) fn nodes_in(&self, state: &mut State) -> Result<Vec<Node>> {
        let graph = state.graph("Graph::nodes", self.number)?;
        let nodes = list(std::ptr::null_mut(), |nodes, count| {
            // SAFETY: the graph is live, and the addresses are valid for writes of `count` nodes.
            unsafe { call!(self.driver(), cuGraphGetNodes(graph, nodes, count)) }
        })?;
        Ok(nodes
            .into_iter()
            .map(|node| state.register(self.number, node))
            .collect())
    }

    /// Returns the nodes without dependencies.
    ///
    /// CUDA: `cuGraphGetRootNodes`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuGraphGetRootNodes")]
    #[doc(alias = "cudaGraphGetRootNodes")]
    pub fn roots(&self) -> Result<Vec<Node>> {
        let mut state = self.tree.lock()?;
        let graph = state.graph("Graph::roots", self.number)?;
        let nodes = list(std::ptr::null_mut(), |nodes, count| {
            // SAFETY: the graph is live, and the addresses are valid for writes of `count` nodes.
            unsafe { call!(self.driver(), cuGraphGetRootNodes(graph, nodes, count)) }
        })?;
        Ok(nodes
            .into_iter()
            .map(|node| state.register(self.number, node))
            .collect())
    }

    /// Returns the edges of the graph.
    ///
    /// CUDA: `cuGraphGetEdges_v2`, and `cuGraphGetEdges` before 12.3.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuGraphGetEdges")]
    #[doc(alias = "cudaGraphGetEdges")]
    pub fn edges(&self) -> Result<Vec<Edge>> {
        self.edges_in(&mut *self.tree.lock()?)
    }

    /// Returns the edges, for a thread that holds the lock of the tree.
    pub(super) fn edges_in(&self, state: &mut State) -> Result<Vec<Edge>> {
        let graph = state.graph("Graph::edges", self.number)?;
        let driver = self.driver();
        let mut count = 0;
        get_edges(
            driver,
            graph,
            [std::ptr::null_mut(), std::ptr::null_mut()],
            std::ptr::null_mut(),
            &mut count,
        )?;
        let mut from = vec![std::ptr::null_mut(); count];
        let mut to = vec![std::ptr::null_mut(); count];
        let mut data = vec![CUgraphEdgeData::default(); count];
        if count > 0 {
            get_edges(
                driver,
                graph,
                [from.as_mut_ptr(), to.as_mut_ptr()],
                data.as_mut_ptr(),
                &mut count,
            )?;
        }
        let ends = from.into_iter().zip(to).zip(data).take(count);
        let number = self.number;
        Ok(ends
            .map(|((from, to), data)| {
                let from = state.register(number, from);
                let to = state.register(number, to);
                Edge {
                    from,
                    to,
                    data: EdgeData::from_raw(data),
                }
            })
            .collect())
    }

    /// Returns the nodes that a node depends on.
    ///
    /// CUDA: `cuGraphNodeGetDependencies_v2`, and `cuGraphNodeGetDependencies` before 12.3.
    ///
    /// # Errors
    ///
    /// An argument error if the node is in another graph or was removed.
    #[doc(alias = "cuGraphNodeGetDependencies")]
    #[doc(alias = "cudaGraphNodeGetDependencies")]
    pub fn dependencies(&self, node: Node) -> Result<Vec<(Node, EdgeData)>> {
        let mut state = self.tree.lock()?;
        let raw = state.member("Graph::dependencies", self.number, node)?;
        let has_data = self.driver().has(Function::cuGraphNodeGetDependencies_v2);
        let nodes = list_with_data(|nodes, data, count| {
            if has_data {
                // SAFETY: the node is live, and the addresses are valid for writes of `count`
                // nodes.
                return unsafe {
                    call!(
                        self.driver(),
                        cuGraphNodeGetDependencies_v2(raw, nodes, data, count)
                    )
                };
            }
            // SAFETY: the node is live, and the addresses are valid for writes of `count` nodes.
            unsafe { call!(self.driver(), cuGraphNodeGetDependencies(raw, nodes, count)) }
        })?;
        Ok(self.register_all(&mut state, nodes))
    }

    /// Returns the nodes that depend on a node.
    ///
    /// CUDA: `cuGraphNodeGetDependentNodes_v2`, and `cuGraphNodeGetDependentNodes` before 12.3.
    ///
    /// # Errors
    ///
    /// An argument error if the node is in another graph or was removed.
    #[doc(alias = "cuGraphNodeGetDependentNodes")]
    #[doc(alias = "cudaGraphNodeGetDependentNodes")]
    pub fn dependents(&self, node: Node) -> Result<Vec<(Node, EdgeData)>> {
        let mut state = self.tree.lock()?;
        let raw = state.member("Graph::dependents", self.number, node)?;
        let has_data = self.driver().has(Function::cuGraphNodeGetDependentNodes_v2);
        let nodes = list_with_data(|nodes, data, count| {
            if has_data {
                // SAFETY: the node is live, and the addresses are valid for writes of `count`
                // nodes.
                return unsafe {
                    call!(
                        self.driver(),
                        cuGraphNodeGetDependentNodes_v2(raw, nodes, data, count)
                    )
                };
            }
            // SAFETY: the node is live, and the addresses are valid for writes of `count` nodes.
            unsafe {
                call!(
                    self.driver(),
                    cuGraphNodeGetDependentNodes(raw, nodes, count)
                )
            }
        })?;
        Ok(self.register_all(&mut state, nodes))
    }

    /// Makes `to` depend on `from`. Cycles are detected at instantiation.
    ///
    /// CUDA: `cuGraphAddDependencies_v2`, and `cuGraphAddDependencies` before 12.3.
    ///
    /// # Errors
    ///
    /// An argument error if a node belongs to another graph or was removed;
    /// `CUDA_ERROR_INVALID_VALUE` if the edge already exists.
    #[doc(alias = "cuGraphAddDependencies")]
    #[doc(alias = "cudaGraphAddDependencies")]
    pub fn add_dependency(&mut self, from: Node, to: Node) -> Result<()> {
        // SAFETY: a full dependency imposes no requirement on the nodes.
        unsafe { self.add_edge(from, to, EdgeData::new()) }
    }

    /// Adds an edge from `from` to `to` with `data`. Data other than the default needs CUDA 12.3.
    ///
    /// CUDA: `cuGraphAddDependencies_v2`.
    ///
    /// # Safety
    ///
    /// If the dependent kernel may start before the first one has completed, the kernels themselves
    /// synchronize their conflicting accesses.
    ///
    /// # Errors
    ///
    /// As for [`Graph::add_dependency`]; `CUDA_ERROR_INVALID_VALUE` if nodes of these kinds do not
    /// support such an edge.
    pub unsafe fn add_edge(&mut self, from: Node, to: Node, data: EdgeData) -> Result<()> {
        let operation = "Graph::add_edge";
        let driver = self.driver();
        let state = self.tree.lock()?;
        let graph = state.graph(operation, self.number)?;
        let start = state.member(operation, self.number, from)?;
        let end = state.member(operation, self.number, to)?;
        let start = &raw const start;
        let end = &raw const end;
        let raw = data.to_raw();
        let count = 1;
        if data.is_plain() && !driver.has(Function::cuGraphAddDependencies_v2) {
            // SAFETY: the graph and the nodes are live, and the arrays contain one edge.
            return unsafe { call!(driver, cuGraphAddDependencies(graph, start, end, count)) };
        }
        // SAFETY: the graph and the nodes are live, and the arrays contain one edge; the caller is
        // responsible for the edge data.
        let added = unsafe {
            call!(
                driver,
                cuGraphAddDependencies_v2(graph, start, end, &raw const raw, count)
            )
        };
        added.map_err(|error| error.about(format!("{to} after {from}")))
    }

    /// Makes the second node of each pair depend on the first, in a graph whose tree this thread
    /// has locked. Requires a driver for CUDA 12.3.
    pub(super) fn add_edges_in(
        &self,
        state: &State,
        operation: &'static str,
        edges: &[(Node, Node)],
    ) -> Result<()> {
        let graph = state.graph(operation, self.number)?;
        let mut from = Vec::with_capacity(edges.len());
        let mut to = Vec::with_capacity(edges.len());
        for edge in edges {
            from.push(state.member(operation, self.number, edge.0)?);
            to.push(state.member(operation, self.number, edge.1)?);
        }
        // SAFETY: the graph and the nodes are live, and both arrays have the given length.
        unsafe {
            call!(
                self.driver(),
                cuGraphAddDependencies_v2(
                    graph,
                    from.as_ptr(),
                    to.as_ptr(),
                    std::ptr::null(),
                    edges.len()
                )
            )
        }
    }

    /// Removes the edge from `from` to `to` with `data`.
    ///
    /// There is at most one edge between two nodes, and the driver (580) removes it even if its data
    /// differs from `data`.
    ///
    /// CUDA: `cuGraphRemoveDependencies_v2`, and `cuGraphRemoveDependencies` before 12.3.
    ///
    /// # Errors
    ///
    /// An argument error if a node belongs to another graph or was removed, or if the graph
    /// contains captured work that writes memory, whose order must be kept;
    /// `CUDA_ERROR_INVALID_VALUE` if the edge does not exist.
    #[doc(alias = "cuGraphRemoveDependencies")]
    #[doc(alias = "cudaGraphRemoveDependencies")]
    pub fn remove_edge(&mut self, from: Node, to: Node, data: EdgeData) -> Result<()> {
        let operation = "Graph::remove_edge";
        let driver = self.driver();
        let state = self.tree.lock()?;
        state.check_reorderable(operation)?;
        let graph = state.graph(operation, self.number)?;
        let start = state.member(operation, self.number, from)?;
        let end = state.member(operation, self.number, to)?;
        let start = &raw const start;
        let end = &raw const end;
        let raw = data.to_raw();
        let count = 1;
        if data.is_plain() && !driver.has(Function::cuGraphRemoveDependencies_v2) {
            // SAFETY: the graph and the nodes are live, and the arrays contain one edge.
            return unsafe { call!(driver, cuGraphRemoveDependencies(graph, start, end, count)) };
        }
        // SAFETY: the graph and the nodes are live, and the arrays contain one edge.
        let removed = unsafe {
            call!(
                driver,
                cuGraphRemoveDependencies_v2(graph, start, end, &raw const raw, count)
            )
        };
        removed.map_err(|error| error.about(format!("{to} after {from}")))
    }

    fn register_all(
        &self,
        state: &mut State,
        nodes: Vec<(CUgraphNode, CUgraphEdgeData)>,
    ) -> Vec<(Node, EdgeData)> {
        nodes
            .into_iter()
            .map(|(node, data)| (state.register(self.number, node), EdgeData::from_raw(data)))
            .collect()
    }
}

fn get_edges(
    driver: &Driver,
    graph: curium_sys::CUgraph,
    [from, to]: [*mut CUgraphNode; 2],
    data: *mut CUgraphEdgeData,
    count: &mut usize,
) -> Result<()> {
    if driver.has(Function::cuGraphGetEdges_v2) {
        // SAFETY: the graph is live, and the callers pass arrays for the given number of edges, or
        // null.
        return unsafe { call!(driver, cuGraphGetEdges_v2(graph, from, to, data, count)) };
    }
    // SAFETY: the graph is live, and the callers pass arrays for the given number of edges, or
    // null.
    unsafe { call!(driver, cuGraphGetEdges(graph, from, to, count)) }
}

/// Calls a driver function twice: for the length of a list, and for its contents.
fn list<T: Copy>(
    empty: T,
    mut call: impl FnMut(*mut T, *mut usize) -> Result<()>,
) -> Result<Vec<T>> {
    let mut count = 0;
    call(std::ptr::null_mut(), &raw mut count)?;
    let mut list = vec![empty; count];
    if count > 0 {
        call(list.as_mut_ptr(), &raw mut count)?;
        list.truncate(count);
    }
    Ok(list)
}

/// Calls a driver function twice, for a list of nodes with the data of their edges.
fn list_with_data(
    mut call: impl FnMut(*mut CUgraphNode, *mut CUgraphEdgeData, *mut usize) -> Result<()>,
) -> Result<Vec<(CUgraphNode, CUgraphEdgeData)>> {
    let mut count = 0;
    call(std::ptr::null_mut(), std::ptr::null_mut(), &raw mut count)?;
    let mut nodes = vec![std::ptr::null_mut(); count];
    let mut data = vec![CUgraphEdgeData::default(); count];
    if count > 0 {
        call(nodes.as_mut_ptr(), data.as_mut_ptr(), &raw mut count)?;
    }
    Ok(nodes.into_iter().zip(data).take(count).collect())
}
