//! Capture into an existing graph.
//!
//! The driver does not track exclusive use of a graph while a capture into it is in progress, so
//! the whole tree refuses every other use until the capture ends. The driver does not roll back
//! either: if the work fails, the new nodes are destroyed here.

use std::collections::HashSet;
use std::sync::Arc;

use curium_sys::{CUgraph, CUgraphNode, Function};

use super::Graph;
use super::capture::{CaptureScope, Captured, MODE};
use super::edge::Edge;
use super::node::Node;
use super::tree::State;
use crate::AsRawStream as _;
use crate::base::release::release;
use crate::call;
use crate::{Error, Result, Stream};

/// A capture into an existing graph. Dropping it removes the captured nodes, unless the capture was
/// completed.
struct Addition<'graph> {
    graph: &'graph mut Graph,
    scope: CaptureScope,
    /// The nodes that existed before the capture.
    before: HashSet<Node>,
    is_complete: bool,
}

/// The nodes at the boundary between existing and captured work, and at the end of the captured
/// work.
struct Boundary {
    /// Existing nodes without a dependent among the existing nodes.
    leaves: Vec<Node>,
    /// Captured nodes without a dependency among the captured nodes.
    first: Vec<Node>,
    /// Captured nodes without a dependent.
    last: Vec<Node>,
}

const OPERATION: &str = "Graph::capture_into";

/// The reason given by the error of every other use of the graph.
const BUSY: &str = "work is being captured into the graph, or into a parent or child graph of it";
const UNUSABLE: &str = "a capture into the graph, or into a parent or child graph of it, has failed, and the nodes that it added cannot be removed";

impl Graph {
    /// Captures the work that `work` enqueues on the stream passed to it into this graph, depending
    /// on the nodes in `after`. The work is not executed. Returns the last captured nodes, for use
    /// as dependencies of further nodes, or `after` if nothing was captured.
    ///
    /// The rules of [`Graph::capture`] apply. This method adds work with buffers and typed kernels
    /// to the body graphs of a [conditional node](Graph::add_conditional), and combines captured
    /// work with nodes added explicitly. Until the capture ends, any other use of the graph, its
    /// parent graphs or its child graphs is an argument error.
    ///
    /// If captured work of the graph and the new work access the same memory and one of them writes
    /// it, the new work depends on all existing nodes. If the conflicting work is outside a child
    /// graph, the capture is accepted if every conflicting node comes before or after the node of
    /// the child graph, and refused otherwise. [`CaptureScope::follow`] adds dependencies to parts
    /// of the work.
    ///
    /// If `work` fails or panics, the nodes that it added are removed. The driver cannot remove
    /// nodes from a graph that allocates memory. Such a graph is unusable afterwards: every use
    /// returns an argument error with this reason.
    ///
    /// ```
    /// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
    /// use curium_driver::{Graph, NodeKind};
    ///
    /// let context = driver.device(0)?.primary_context()?;
    /// let mut graph = Graph::new(&context)?;
    /// let begin = graph.add_empty(&[])?;
    /// let counted = graph.capture_into(&[begin], |stream| stream.add_host(stream, || println!("one")))?;
    /// let both = graph.capture_into(&counted, |stream| stream.add_host(stream, || println!("two")))?;
    /// assert_eq!(graph.kind(both[0])?, NodeKind::Host);
    /// assert_eq!(graph.edges()?.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Requires a driver for CUDA 12.3. CUDA: `cuStreamBeginCaptureToGraph`, `cuStreamEndCapture`,
    /// `cuStreamCreateWithPriority`, `cuGraphAddDependencies_v2`, `cuGraphDestroyNode`.
    ///
    /// # Errors
    ///
    /// The error of `work`; an argument error if a node in `after` belongs to another graph or was
    /// removed, or if the work conflicts with unordered work outside this graph;
    /// `CUDA_ERROR_STREAM_CAPTURE_INVALIDATED` if other code ended the capture through a raw
    /// handle.
    #[doc(alias = "cuStreamBeginCaptureToGraph")]
    #[doc(alias = "cudaStreamBeginCaptureToGraph")]
    pub fn capture_into<E: From<Error>>(
        &mut self,
        after: &[Node],
        work: impl FnOnce(&CaptureScope) -> Result<(), E>,
    ) -> Result<Vec<Node>, E> {
        let mut addition = Addition::begin(self, after)?;
        addition.scope.record(work)?;
        let last = addition.complete()?;
        Ok(if last.is_empty() {
            after.to_vec()
        } else {
            last
        })
    }

    /// Returns the raw handles of the graph and of the given nodes.
    fn raw_with(&self, state: &State, nodes: &[Node]) -> Result<(CUgraph, Vec<CUgraphNode>)> {
        let raw = state.graph(OPERATION, self.number)?;
        let nodes = nodes
            .iter()
            .map(|node| state.member(OPERATION, self.number, *node));
        Ok((raw, nodes.collect::<Result<_>>()?))
    }

    /// Starts the capture on `root`, blocks every other use of the graph, and returns the existing
    /// nodes.
    fn begin_capture(&self, root: &Stream, after: &[Node]) -> Result<HashSet<Node>> {
        let mut state = self.tree.lock()?;
        let before = self.nodes_in(&mut state)?.into_iter().collect();
        let (raw, after) = self.raw_with(&state, after)?;
        // SAFETY: the stream is live, and no other code has its handle; graph and nodes are live,
        // and not used until the capture ends.
        unsafe {
            call!(
                self.driver(),
                cuStreamBeginCaptureToGraph(
                    root.as_raw(),
                    raw,
                    after.as_ptr(),
                    std::ptr::null(),
                    after.len(),
                    MODE
                )
            )
        }?;
        state.refuse(Some(BUSY));
        Ok(before)
    }
}

impl<'graph> Addition<'graph> {
    fn begin(graph: &'graph mut Graph, after: &[Node]) -> Result<Self> {
        let function = Function::cuStreamBeginCaptureToGraph;
        if !graph.driver().has(function) {
            return Err(graph.driver().missing(function));
        }
        // Removed nodes are refused before a stream is created.
        graph.raw_with(&*graph.tree.lock()?, after)?;
        let mut before = HashSet::new();
        let target = (Arc::clone(&graph.tree), graph.number);
        let scope = CaptureScope::begin(graph.context(), OPERATION, Some(target), |root| {
            before = graph.begin_capture(root, after)?;
            Ok(())
        })?;
        Ok(Self {
            graph,
            scope,
            before,
            is_complete: false,
        })
    }

    /// Ends the capture and returns the last captured nodes.
    fn complete(&mut self) -> Result<Vec<Node>> {
        let captured = self.scope.finish()?;
        let mut state = self.graph.tree.lock()?;
        state.refuse(None);
        let last = self.complete_locked(&mut state, &captured);
        self.is_complete = last.is_ok();
        if !self.is_complete {
            state.refuse(Some(BUSY));
        }
        last
    }

    fn complete_locked(&self, state: &mut State, captured: &Captured) -> Result<Vec<Node>> {
        let graph = &*self.graph;
        let edges = self.graph.edges_in(state)?;
        let boundary = self.boundary(graph.nodes_in(state)?, &edges);
        if graph.must_follow(state, OPERATION, &captured.resources)? {
            let existing: HashSet<_> = edges.iter().map(|edge| (edge.from, edge.to)).collect();
            let missing: Vec<_> = boundary
                .leaves
                .iter()
                .flat_map(|leaf| boundary.first.iter().map(|first| (*leaf, *first)))
                .filter(|pair| !existing.contains(pair))
                .collect();
            if !missing.is_empty() {
                graph.add_edges_in(state, OPERATION, &missing)?;
            }
        }
        graph.retain_references(state, OPERATION, &captured.objects)?;
        state.add_resources(graph.number, &captured.resources);
        Ok(boundary.last)
    }

    fn boundary(&self, nodes: Vec<Node>, edges: &[Edge]) -> Boundary {
        let mut with_dependents = HashSet::new();
        let mut with_dependencies = HashSet::new();
        for edge in edges {
            // An edge from an existing to a captured node crosses the boundary and is not
            // considered.
            let is_from_captured = !self.before.contains(&edge.from);
            let is_to_captured = !self.before.contains(&edge.to);
            if is_from_captured == is_to_captured {
                with_dependents.insert(edge.from);
            }
            if is_from_captured && is_to_captured {
                with_dependencies.insert(edge.to);
            }
        }
        let (mut leaves, mut last): (Vec<_>, Vec<_>) = nodes
            .into_iter()
            .partition(|node| self.before.contains(node));
        let mut first = last.clone();
        leaves.retain(|node| !with_dependents.contains(node));
        first.retain(|node| !with_dependencies.contains(node));
        last.retain(|node| !with_dependents.contains(node));
        Boundary {
            leaves,
            first,
            last,
        }
    }

    /// Removes the captured nodes.
    fn roll_back(&self) -> Result<()> {
        let mut state = self.graph.tree.lock()?;
        state.refuse(None);
        let removed = self.graph.nodes_in(&mut state).and_then(|nodes| {
            let mut new = nodes.into_iter().filter(|node| !self.before.contains(node));
            // No object is kept alive for a captured node.
            new.try_for_each(|node| self.graph.remove_in(&mut state, node).map(drop))
        });
        state.refuse(removed.is_err().then_some(UNUSABLE));
        removed
    }
}

impl Drop for Addition<'_> {
    fn drop(&mut self) {
        if !self.is_complete {
            // The work failed or panicked, or could not be ordered.
            self.scope.abandon();
            release(|| self.roll_back());
        }
    }
}
