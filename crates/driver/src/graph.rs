//! CUDA graphs.

// In a group of its own, so that the page of the type begins with the constructor.
mod create;

pub(crate) mod capture;
mod capture_into;
mod child;
pub(crate) mod condition;
pub(crate) mod copy;
pub(crate) mod edge;
mod event;
pub(crate) mod exec;
mod exec_host;
pub(crate) mod fill;
pub(crate) mod graph_cache;
mod host;
pub(crate) mod identity;
pub(crate) mod instantiate;
mod kernel;
mod kernel_attribute;
mod kernel_update;
mod leases;
pub(crate) mod memory;
mod memory_operation;
pub(crate) mod node;
mod object_reference;
mod order;
mod peak;
mod picture;
mod raw;
mod recapture;
pub(crate) mod replace;
mod resource;
pub(crate) mod semaphore;
mod tree;
mod update;
pub(crate) mod user_object;

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use curium_sys::{CUgraph, CUgraphNode};

use self::node::Node;
use self::resource::{Resource, ResourceSet};
use self::tree::{ROOT, Tree};
use crate::call;
use crate::{Context, Driver, Error, Result, Returned};

/// A CUDA graph: nodes of work and the dependencies between them. [`Graph::instantiate`] creates an
/// executable graph from it.
///
/// A graph keeps the objects that its nodes use alive: kernels with their code, events and
/// closures. An executable graph keeps those of the graph that it was instantiated from, so it can
/// be launched after the graph is dropped. Memory is not kept alive: the caller that adds a node is
/// responsible for the memory it uses.
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
/// A graph is `Send` but not `Sync`, since the driver's graph functions are not thread-safe.
pub struct Graph {
    tree: Arc<Tree>,
    /// The number of the graph in the tree.
    number: u32,
    _not_sync: PhantomData<Cell<()>>,
}

/// The graph and the dependencies of a new node, as arguments of a driver call.
#[derive(Clone, Copy)]
struct NewNode {
    node: *mut CUgraphNode,
    graph: CUgraph,
    after: *const CUgraphNode,
    count: usize,
}

impl NewNode {
    /// Returns the node that was added, or null.
    fn created(&self) -> CUgraphNode {
        // SAFETY: `Tree::add_with` passes this value, with its output pointer, to the closure that
        // calls this.
        unsafe { *self.node }
    }
}

impl Graph {
    /// Takes ownership of the graph `raw`.
    ///
    /// # Safety
    ///
    /// - `raw` is a live graph of this context's driver, and not a child of another graph.
    /// - The resources that its nodes use outlive everything created from the result.
    /// - No other code destroys it, or uses it while the result exists.
    #[must_use]
    pub unsafe fn from_raw(context: &Context, raw: CUgraph) -> Self {
        Self::owning(context, raw, ResourceSet::default())
    }

    /// Returns the raw handle and transfers ownership to the caller. The objects that the nodes use
    /// are no longer kept alive.
    ///
    /// # Errors
    ///
    /// Returns the graph to the caller if it is a child of another graph, or if executable graphs
    /// or child graphs of it still exist.
    pub fn into_raw(self) -> Result<CUgraph, Returned<Self>> {
        self.unshare("Graph::into_raw")
            .map(|mut tree| tree.release_raw())
    }

    /// Returns the raw handle. It is valid for as long as this graph exists; a child graph is
    /// destroyed with its node.
    ///
    /// # Errors
    ///
    /// An argument error if this is a child graph whose node was removed.
    pub fn as_raw(&self) -> Result<CUgraph> {
        self.tree.lock()?.graph("Graph::as_raw", self.number)
    }

    /// Returns the context of this graph.
    #[must_use]
    pub fn context(&self) -> &Context {
        self.tree.context()
    }

    /// Returns the driver of this graph.
    #[must_use]
    pub fn driver(&self) -> &Driver {
        self.tree.context().driver()
    }

    /// Adds an empty node that depends on the nodes in `after`. It serves as a dependency of
    /// further nodes.
    ///
    /// CUDA: `cuGraphAddEmptyNode`.
    ///
    /// # Errors
    ///
    /// An argument error if a node in `after` belongs to another graph or was removed.
    #[doc(alias = "cuGraphAddEmptyNode")]
    #[doc(alias = "cudaGraphAddEmptyNode")]
    pub fn add_empty(&mut self, after: &[Node]) -> Result<Node> {
        self.add("Graph::add_empty", after, None, |driver, arguments| {
            // SAFETY: the graph and the nodes are live, and the pointers are valid.
            unsafe {
                call!(driver, cuGraphAddEmptyNode(arguments.node, arguments.graph, arguments.after, arguments.count) creates arguments.created())
            }
        })
    }

    /// Destroys the graph and returns any error, instead of only reporting it as [`Drop`] does.
    ///
    /// CUDA: `cuGraphDestroy`.
    ///
    /// # Errors
    ///
    /// Returns the graph to the caller if it is a child of another graph, if executable graphs or
    /// child graphs of it still exist, or if the driver call fails.
    #[doc(alias = "cuGraphDestroy")]
    #[doc(alias = "cudaGraphDestroy")]
    pub fn close(self) -> Result<(), Returned<Self>> {
        let mut tree = self.unshare("Graph::close")?;
        match tree.destroy() {
            Ok(()) => Ok(()),
            Err(error) => Err(Returned::new(Self::in_tree(Arc::new(tree), ROOT), error)),
        }
    }

    /// Creates an owned graph of `context` whose nodes use the objects in `resources`.
    pub(crate) fn owning(context: &Context, raw: CUgraph, resources: ResourceSet) -> Self {
        Self::in_tree(Arc::new(Tree::new(context, raw, resources)), ROOT)
    }

    fn in_tree(tree: Arc<Tree>, number: u32) -> Self {
        Self {
            tree,
            number,
            _not_sync: PhantomData,
        }
    }

    /// Adds the node that `call` creates, which uses `resource`.
    fn add(
        &mut self,
        operation: &'static str,
        after: &[Node],
        resource: Option<Resource>,
        call: impl FnOnce(&Driver, NewNode) -> Result<()>,
    ) -> Result<Node> {
        self.tree
            .lock()?
            .add_node(self.driver(), self.number, operation, after, resource, call)
    }

    /// Returns the tree if this is its only owner.
    fn unshare(self, operation: &'static str) -> Result<Tree, Returned<Self>> {
        let number = self.number;
        if number != ROOT {
            return Err(Returned::new(
                self,
                Error::argument(operation, "the graph is part of another graph"),
            ));
        }
        let still = "an executable graph, or a handle of a child or body graph, still exists";
        Arc::try_unwrap(self.tree).map_err(|tree| {
            Returned::new(
                Self::in_tree(tree, number),
                Error::argument(operation, still),
            )
        })
    }
}

impl AsRef<Driver> for Graph {
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

/// Fails to compile unless a graph is `Send`.
const _: fn() = || {
    fn sendable<T: Send>() {}
    sendable::<Graph>();
    sendable::<exec::GraphExec>();
};
