//! Nodes of graphs.

use std::fmt;
use std::ops::Deref;

use curium_sys::{CUgraphNode, CUgraphNodeType, CUgraphNodeType_enum};

use super::Graph;
use super::resource::Resource;
use super::tree::State;
use crate::call;
use crate::{Kernel, Result};

/// A node of a graph, as a plain identifier. Using it with another graph, or after it was removed,
/// is an error.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Node {
    /// The identity of the outermost graph that contains the node.
    pub(super) tree: u64,
    /// The number of the node. Numbers are not reused.
    pub(super) number: u32,
}

/// The kind of a node.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum NodeKind {
    /// A kernel node.
    Kernel,
    /// A memory copy node.
    Copy,
    /// A memset node.
    Fill,
    /// A host node: calls a function on the host.
    Host,
    /// A child graph node.
    Child,
    /// An empty node. It does nothing and combines dependencies.
    Empty,
    /// An event wait node.
    EventWait,
    /// An event record node.
    EventRecord,
    /// An external semaphore signal node.
    SemaphoreSignal,
    /// An external semaphore wait node.
    SemaphoreWait,
    /// A memory allocation node.
    Allocation,
    /// A memory free node.
    Free,
    /// A batch memory operation node.
    MemoryOperations,
    /// A conditional node.
    Conditional,
    /// A kind defined by a newer driver.
    Unknown(u32),
}

/// A node of a statically known kind, which can be updated. Implemented by the node types of this
/// crate only.
pub trait TypedNode: Clone + Deref<Target = Node> + Into<Node> + FoundNode {}

pub(super) mod sealed {
    /// A type of nodes. Other crates cannot name it, so they cannot implement it.
    pub trait Sealed {}
}

/// A node that can be found in a clone of its graph. Implemented by the node types of this crate
/// only.
pub trait FoundNode: sealed::Sealed {
    /// Returns the corresponding node of a clone of the graph.
    #[must_use]
    fn at(&self, found: Found) -> Self;
}

/// The node of a clone that corresponds to a node of the original. Created by
/// [`Graph::find`](super::Graph::find) only.
#[derive(Debug)]
pub struct Found(pub(super) Node);

/// A kernel node with the parameters that `S` declares.
///
/// It stores the kernel and the launch configuration that it was added with, so an update needs new
/// arguments only.
///
/// ```no_run
/// # use curium_driver::{DevicePointer, Graph, Kernel, LaunchConfig, Result, Stream};
/// # fn example(mut graph: Graph, scale: &Kernel<(&mut [f32], f32)>, data: DevicePointer<f32>, stream: &Stream) -> Result<()> {
/// // SAFETY: `scale` stays within the data, which outlives the launches and which nothing else uses.
/// let node = unsafe { graph.add_kernel(&[], scale, LaunchConfig::for_elements(256), (data, 2.0)) }?;
/// let mut exec = graph.instantiate()?;
/// for factor in [3.0, 4.0] {
///     // SAFETY: the node has the kernel and the data that it was added with.
///     unsafe { exec.set_kernel(&node, (data, factor)) }?;
///     exec.launch(stream)?;
/// }
/// # Ok(())
/// # }
/// ```
pub struct KernelNode<S> {
    pub(super) node: Node,
    pub(super) kernel: Kernel<S>,
    pub(super) config: crate::LaunchConfig,
}

macro_rules! typed_nodes {
    ($($(#[$doc:meta])* $name:ident,)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        pub struct $name(pub(super) Node);

        impl sealed::Sealed for $name {}

        impl TypedNode for $name {}

        impl FoundNode for $name {
            fn at(&self, found: Found) -> Self {
                Self(found.0)
            }
        }

        impl Deref for $name {
            type Target = Node;

            fn deref(&self) -> &Node {
                &self.0
            }
        }

        impl From<$name> for Node {
            fn from(node: $name) -> Self {
                node.0
            }
        }
    )*};
}

typed_nodes! {
    /// A memory copy node.
    CopyNode,
    /// A memset node.
    FillNode,
    /// A host node.
    HostNode,
    /// A child graph node.
    ChildNode,
    /// An event record node.
    EventRecordNode,
    /// An event wait node.
    EventWaitNode,
    /// A batch memory operation node.
    MemoryOperationNode,
    /// An external semaphore signal node.
    SemaphoreSignalNode,
    /// An external semaphore wait node.
    SemaphoreWaitNode,
}

impl NodeKind {
    pub(super) const fn from_raw(raw: CUgraphNodeType) -> Self {
        match raw {
            CUgraphNodeType_enum::CU_GRAPH_NODE_TYPE_KERNEL => Self::Kernel,
            CUgraphNodeType_enum::CU_GRAPH_NODE_TYPE_MEMCPY => Self::Copy,
            CUgraphNodeType_enum::CU_GRAPH_NODE_TYPE_MEMSET => Self::Fill,
            CUgraphNodeType_enum::CU_GRAPH_NODE_TYPE_HOST => Self::Host,
            CUgraphNodeType_enum::CU_GRAPH_NODE_TYPE_GRAPH => Self::Child,
            CUgraphNodeType_enum::CU_GRAPH_NODE_TYPE_EMPTY => Self::Empty,
            CUgraphNodeType_enum::CU_GRAPH_NODE_TYPE_WAIT_EVENT => Self::EventWait,
            CUgraphNodeType_enum::CU_GRAPH_NODE_TYPE_EVENT_RECORD => Self::EventRecord,
            CUgraphNodeType_enum::CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL => Self::SemaphoreSignal,
            CUgraphNodeType_enum::CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT => Self::SemaphoreWait,
            CUgraphNodeType_enum::CU_GRAPH_NODE_TYPE_MEM_ALLOC => Self::Allocation,
            CUgraphNodeType_enum::CU_GRAPH_NODE_TYPE_MEM_FREE => Self::Free,
            CUgraphNodeType_enum::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP => Self::MemoryOperations,
            CUgraphNodeType_enum::CU_GRAPH_NODE_TYPE_CONDITIONAL => Self::Conditional,
            CUgraphNodeType_enum(other) => Self::Unknown(other),
        }
    }
}

impl<S> KernelNode<S> {
    /// Returns the kernel that the node was added with.
    #[must_use]
    pub fn kernel(&self) -> &Kernel<S> {
        &self.kernel
    }

    /// Returns the launch configuration that the node was added with.
    #[must_use]
    pub fn config(&self) -> crate::LaunchConfig {
        self.config
    }
}

impl<S> sealed::Sealed for KernelNode<S> {}

impl<S> TypedNode for KernelNode<S> {}

impl<S> FoundNode for KernelNode<S> {
    fn at(&self, found: Found) -> Self {
        Self {
            node: found.0,
            ..self.clone()
        }
    }
}

impl<S> Deref for KernelNode<S> {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.node
    }
}

impl<S> From<KernelNode<S>> for Node {
    fn from(node: KernelNode<S>) -> Self {
        node.node
    }
}

impl<S> Clone for KernelNode<S> {
    fn clone(&self) -> Self {
        Self {
            node: self.node,
            kernel: self.kernel.clone(),
            config: self.config,
        }
    }
}

impl<S> fmt::Debug for KernelNode<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "KernelNode({}, `{}`)",
            self.node,
            self.kernel.name()
        )
    }
}

impl Graph {
    /// Removes a node together with its child or body graphs. Its dependents do not inherit its
    /// dependencies.
    ///
    /// CUDA: `cuGraphDestroyNode`.
    ///
    /// # Errors
    ///
    /// An argument error if the node belongs to another graph or was removed before, or if the
    /// graph contains captured work that writes memory, whose order must be kept;
    /// `CUDA_ERROR_NOT_PERMITTED` or `CUDA_ERROR_INVALID_VALUE` for nodes that allocate or free
    /// memory.
    #[doc(alias = "cuGraphDestroyNode")]
    #[doc(alias = "cudaGraphDestroyNode")]
    pub fn remove(&mut self, node: Node) -> Result<()> {
        self.remove_if(node, |state| state.check_reorderable("Graph::remove"))
    }

    /// Removes a node if `check` of the locked tree succeeds.
    pub(super) fn remove_if(
        &mut self,
        node: Node,
        check: impl FnOnce(&State) -> Result<()>,
    ) -> Result<()> {
        let mut state = self.tree.lock()?;
        state.member("Graph::remove", self.number, node)?;
        check(&state)?;
        let resources = self.remove_in(&mut state, node)?;
        drop(state);
        self.release_objects("Graph::remove", &resources)
    }

    /// Removes a node of a graph whose tree this thread has locked. Returns the objects kept for
    /// it, which may be dropped only after the lock is released.
    pub(super) fn remove_in(&self, state: &mut State, node: Node) -> Result<Vec<Resource>> {
        let raw = state.member("Graph::remove", self.number, node)?;
        // SAFETY: the node is live, and its handle is not used again once it is destroyed.
        unsafe { call!(self.driver(), cuGraphDestroyNode(raw)) }
            .map_err(|error| error.about(node.to_string()))?;
        Ok(state.remove(node))
    }

    /// Returns the kind of a node.
    ///
    /// CUDA: `cuGraphNodeGetType`.
    ///
    /// # Errors
    ///
    /// An argument error if the node is in another graph or was removed.
    #[doc(alias = "cuGraphNodeGetType")]
    #[doc(alias = "cudaGraphNodeGetType")]
    pub fn kind(&self, node: Node) -> Result<NodeKind> {
        let state = self.tree.lock()?;
        let raw = state.member("Graph::kind", self.number, node)?;
        let mut kind = CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY;
        // SAFETY: the node is live, and `kind` is valid for writes.
        unsafe { call!(self.driver(), cuGraphNodeGetType(raw, &raw mut kind)) }?;
        Ok(NodeKind::from_raw(kind))
    }

    /// Returns the raw handle of a node. It is valid until the node is removed.
    ///
    /// # Errors
    ///
    /// An argument error if the node is in another graph or was removed.
    pub fn as_raw_node(&self, node: Node) -> Result<CUgraphNode> {
        self.tree
            .lock()?
            .member("Graph::as_raw_node", self.number, node)
    }

    /// Returns the node of this graph with the given raw handle.
    ///
    /// # Safety
    ///
    /// `raw` is a live node of this graph.
    ///
    /// # Errors
    ///
    /// An argument error if this is a child graph whose node was removed.
    pub unsafe fn node_from_raw(&mut self, raw: CUgraphNode) -> Result<Node> {
        let mut state = self.tree.lock()?;
        state.graph("Graph::node_from_raw", self.number)?;
        Ok(state.register(self.number, raw))
    }
}

impl fmt::Display for Node {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "node {}", self.number)
    }
}

impl fmt::Display for NodeKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Kernel => "kernel",
            Self::Copy => "copy",
            Self::Fill => "fill",
            Self::Host => "host function",
            Self::Child => "child graph",
            Self::Empty => "empty",
            Self::EventWait => "event wait",
            Self::EventRecord => "event record",
            Self::SemaphoreSignal => "semaphore signal",
            Self::SemaphoreWait => "semaphore wait",
            Self::Allocation => "allocation",
            Self::Free => "free",
            Self::MemoryOperations => "memory operations",
            Self::Conditional => "conditional",
            Self::Unknown(kind) => return write!(formatter, "kind {kind}"),
        })
    }
}
