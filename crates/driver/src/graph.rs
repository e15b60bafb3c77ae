//! A CUDA graph.

mod capture;
mod capture_into;
mod child;
mod condition;
mod copy;
mod edge;
mod event;
mod exec;
mod exec_host;
mod fill;
mod graph_cache;
mod host;
mod identity;
mod instantiate;
mod kept;
mod kernel;
mod kernel_update;
mod leases;
mod memory;
mod memory_operation;
mod node;
mod object_reference;
mod order;
mod picture;
mod raw;
mod recapture;
mod replace;
mod semaphore;
mod tree;
mod update;
mod user_object;

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use curium_sys::{CUgraph, CUgraphNode};

pub use self::capture::CaptureScope;
pub use self::condition::{Condition, ConditionalKind, ConditionalNode};
pub use self::copy::{CopyMemory, CopyPlace, GraphCopy};
pub use self::edge::{Edge, EdgeData, EdgeKind};
pub use self::exec::GraphExec;
pub use self::fill::{FillValue, GraphFill};
pub use self::graph_cache::{GraphCache, GraphCacheCounts, GraphCacheOutcome};
pub use self::identity::DotFlags;
pub use self::instantiate::{InstantiateFlags, InstantiateOptions};
use self::kept::{Kept, Resource};
pub use self::memory::{AllocationNode, GraphMemory};
pub use self::node::{
    ChildNode, CopyNode, EventRecordNode, EventWaitNode, FillNode, HostNode, KernelNode, MemoryOperationNode, Node,
    NodeKind, SemaphoreSignalNode, SemaphoreWaitNode, TypedNode,
};
pub use self::replace::{GraphUpdate, UpdateFailure, UpdateFailureReason};
pub use self::semaphore::{GraphSemaphore, SemaphoreOwner};
use self::tree::{ROOT, Tree};
pub use self::user_object::UserObject;
use crate::call;
use crate::{Context, Driver, Error, Result, Returned};

/// Work in nodes, each of which may come after others. [`Graph::instantiate`] makes something of it that can be launched.
///
/// A graph keeps what its nodes use: kernels with their code, events, closures. An executable keeps what the graph kept when it was made,
/// so that it can be launched when everything else is gone. Memory is not kept: whoever adds a node that uses some is responsible for it.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU32, Ordering};
///
/// use curium_driver::Graph;
///
/// let context = driver.device(0)?.primary_context()?;
/// let stream = context.stream()?;
/// let count = Arc::new(AtomicU32::new(0));
///
/// let mut graph = Graph::new(&context)?;
/// let begin = graph.add_empty(&[])?;
/// let counter = Arc::clone(&count);
/// graph.add_host(&[begin], move || { counter.fetch_add(1, Ordering::Relaxed); })?;
///
/// let mut exec = graph.instantiate()?;
/// exec.launch(&stream)?;
/// exec.launch(&stream)?;
/// stream.synchronize()?;
/// assert_eq!(count.load(Ordering::Relaxed), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A graph can be sent to another thread, and not shared between threads: the driver's functions on graphs allow no two calls at once.
pub struct Graph {
    tree: Arc<Tree>,
    /// The number of the graph in the tree.
    number: u32,
    _not_sync: PhantomData<Cell<()>>,
}

/// The graph and the dependencies of a new node, as C reads them.
#[derive(Clone, Copy)]
struct Spot {
    node: *mut CUgraphNode,
    graph: CUgraph,
    after: *const CUgraphNode,
    count: usize,
}

impl Spot {
    /// The node that was added, or null.
    #[inline]
    fn created(&self) -> CUgraphNode {
        // SAFETY: `Tree::add_with` lends the place to the closure that receives this.
        unsafe { *self.node }
    }
}

impl Graph {
    /// Creates a graph without nodes, whose work is to run in `context`.
    ///
    /// CUDA: `cuGraphCreate`.
    ///
    /// # Errors
    ///
    /// An error of the driver.
    #[doc(alias = "cuGraphCreate")]
    #[inline]
    pub fn new(context: &Context) -> Result<Self> {
        let (mut raw, no_flags) = (std::ptr::null_mut(), 0);
        // SAFETY: `raw` is valid for writes.
        unsafe { call!(context.driver(), cuGraphCreate(&raw mut raw, no_flags) creates raw) }?;
        Ok(Self::owning(context, raw, Kept::default()))
    }

    /// Takes over the graph `raw`, which is destroyed with the result.
    ///
    /// # Safety
    ///
    /// - `raw` is a live graph of this context's driver, and no part of another.
    /// - What its nodes use outlives everything that is made of the result.
    /// - Nobody else destroys it, or uses it while the result exists.
    #[must_use]
    #[inline]
    pub unsafe fn from_raw(context: &Context, raw: CUgraph) -> Self {
        Self::owning(context, raw, Kept::default())
    }

    /// Returns the driver's handle of this graph, which is the caller's to destroy from now on. The objects that its nodes use are no
    /// longer kept alive.
    ///
    /// # Errors
    ///
    /// Gives the graph back if it is a part of another, or if executables or parts of it still exist.
    #[inline]
    pub fn into_raw(self) -> Result<CUgraph, Returned<Self>> {
        self.unshare("Graph::into_raw").map(|mut tree| tree.give_up())
    }

    /// Returns the driver's handle of this graph. It is valid for as long as this graph exists; a part of a graph is gone with its node.
    ///
    /// # Errors
    ///
    /// An argument error if the node that this graph is a part of was removed.
    #[inline]
    pub fn as_raw(&self) -> Result<CUgraph> {
        self.tree.lock()?.graph("Graph::as_raw", self.number)
    }

    /// Returns the context that this graph's work runs in.
    #[must_use]
    #[inline]
    pub fn context(&self) -> &Context {
        self.tree.context()
    }

    /// Returns the driver that this graph belongs to.
    #[must_use]
    #[inline]
    pub fn driver(&self) -> &Driver {
        self.tree.context().driver()
    }

    /// Adds a node that does nothing behind `after`: one thing for others to come after.
    ///
    /// CUDA: `cuGraphAddEmptyNode`.
    ///
    /// # Errors
    ///
    /// An argument error if a node of `after` is in another graph or was removed.
    #[doc(alias = "cuGraphAddEmptyNode")]
    #[inline]
    pub fn add_empty(&mut self, after: &[Node]) -> Result<Node> {
        self.add("Graph::add_empty", after, None, |driver, spot| {
            // SAFETY: the graph and the nodes are live, and the places are valid.
            unsafe {
                call!(driver, cuGraphAddEmptyNode(spot.node, spot.graph, spot.after, spot.count) creates spot.created())
            }
        })
    }

    /// Destroys the graph and returns its error, which [`Drop`] only reports.
    ///
    /// CUDA: `cuGraphDestroy`.
    ///
    /// # Errors
    ///
    /// Gives the graph back if it is a part of another, if executables or parts of it still exist, or if the driver refuses.
    #[doc(alias = "cuGraphDestroy")]
    #[inline]
    pub fn close(self) -> Result<(), Returned<Self>> {
        let mut tree = self.unshare("Graph::close")?;
        match tree.destroy() {
            Ok(()) => Ok(()),
            Err(error) => Err(Returned::new(Self::of(Arc::new(tree), ROOT), error)),
        }
    }

    /// Returns a graph of `context` that is ours, and whose nodes need what `kept` keeps.
    #[inline]
    pub(crate) fn owning(context: &Context, raw: CUgraph, kept: Kept) -> Self {
        Self::of(Arc::new(Tree::new(context, raw, kept)), ROOT)
    }

    #[inline]
    fn of(tree: Arc<Tree>, number: u32) -> Self {
        Self { tree, number, _not_sync: PhantomData }
    }

    /// Adds the node that `call` makes, which needs what is `kept`.
    #[inline]
    fn add(
        &mut self,
        operation: &'static str,
        after: &[Node],
        kept: Option<Resource>,
        call: impl FnOnce(&Driver, Spot) -> Result<()>,
    ) -> Result<Node> {
        self.tree.lock()?.add_node(self.driver(), self.number, operation, after, kept, call)
    }

    /// Returns the tree, if nobody else has it.
    #[inline]
    fn unshare(self, operation: &'static str) -> Result<Tree, Returned<Self>> {
        let number = self.number;
        if number != ROOT {
            return Err(Returned::new(self, Error::argument(operation, "the graph is a part of another")));
        }
        let still = "an executable of the graph, or a handle of a part of it, still exists";
        Arc::try_unwrap(self.tree)
            .map_err(|tree| Returned::new(Self::of(tree, number), Error::argument(operation, still)))
    }
}

impl AsRef<Driver> for Graph {
    #[inline]
    fn as_ref(&self) -> &Driver {
        self.driver()
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            ROOT => write!(formatter, "Graph({:?})", self.tree),
            part => write!(formatter, "Graph(part {part} of {:?})", self.tree),
        }
    }
}

/// Compiles if a graph can be sent to another thread.
const _: fn() = || {
    #[inline]
    fn sendable<T: Send>() {}
    sendable::<Graph>();
    sendable::<GraphExec>();
};
