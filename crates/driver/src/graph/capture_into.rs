//! Capture into an existing graph.
//!
//! The driver does not track exclusive use of a graph while a capture into it is in progress, so the whole tree refuses
//! every other use until the capture ends. The driver does not roll back either: if the work fails, the new nodes are
//! destroyed here.

use std::collections::HashSet;
use std::sync::Arc;

use curium_sys::{CUgraph, CUgraphNode, Function};

use super::capture::{CaptureScope, Captured, MODE};
use super::tree::State;
use super::{Edge, Graph, Node};
use crate::base::release::release;
use crate::call;
use crate::{Error, Result, Stream};

/// A capture into an existing graph. Dropping it removes the captured nodes, unless the capture was completed.
struct Addition<'graph> {
    graph: &'graph mut Graph,
    scope: CaptureScope,
    /// The nodes that existed before the capture.
    before: HashSet<Node>,
    is_settled: bool,
}

/// The nodes of a graph after a capture into it.
struct Parts {
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
const SPOILED: &str = "a capture into the graph, or into a parent or child graph of it, has failed, and the nodes that it added cannot be removed";

impl Graph {
    /// Captures the work that `work` enqueues on the stream passed to it into this graph, depending on the nodes in
    /// `after`. The work is not executed. Returns the last captured nodes, for use as dependencies of further nodes, or
    /// `after` if nothing was captured.
    ///
    /// The rules of [`Graph::capture`] apply. This method adds work with buffers and typed kernels to the body graphs
    /// of a [conditional node](Graph::add_conditional), and combines captured work with nodes added explicitly. Until
    /// the capture ends, any other use of the graph, its parent graphs or its child graphs is an argument error.
    ///
    /// If captured work of the graph and the new work access the same memory and one of them writes it, the new work
    /// depends on all existing nodes. If the conflicting work is outside a child graph, the capture is accepted if
    /// every conflicting node comes before or after the node of the child graph, and refused otherwise.
    /// [`CaptureScope::follow`] adds dependencies to parts of the work.
    ///
    /// If `work` fails or panics, the nodes that it added are removed. The driver cannot remove nodes from a graph that
    /// allocates memory. Such a graph is unusable afterwards: every use returns an argument error with this reason.
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
    /// Requires a driver for CUDA 12.3. CUDA: `cuStreamBeginCaptureToGraph`, `cuStreamEndCapture`, `cuStreamCreateWithPriority`,
    /// `cuGraphAddDependencies_v2`, `cuGraphDestroyNode`.
    ///
    /// # Errors
    ///
    /// The error of `work`; an argument error if a node in `after` belongs to another graph or was removed, or if the
    /// work conflicts with unordered work outside this graph; `CUDA_ERROR_STREAM_CAPTURE_INVALIDATED` if other code
    /// ended the capture through a raw handle.
    #[doc(alias = "cuStreamBeginCaptureToGraph")]
    #[doc(alias = "cudaStreamBeginCaptureToGraph")]
    pub fn capture_into<E: From<Error>>(
        &mut self,
        after: &[Node],
        work: impl FnOnce(&CaptureScope) -> Result<(), E>,
    ) -> Result<Vec<Node>, E> {
        let mut addition = Addition::begin(self, after)?;
        addition.scope.record(work)?;
        let last = addition.settle()?;
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

    /// Starts the capture on `root`, blocks every other use of the graph, and returns the existing nodes.
    fn begin_capture(&self, root: &Stream, after: &[Node]) -> Result<HashSet<Node>> {
        let mut state = self.tree.lock()?;
        let before = self.nodes_in(&mut state)?.into_iter().collect();
        let (raw, after) = self.raw_with(&state, after)?;
        let (after, no_data, count) = (after.as_ptr(), std::ptr::null(), after.len());
        let (driver, stream) = (self.driver(), root.as_raw());
        // SAFETY: the stream is live, and no other code has its handle; graph and nodes are live, and not used until
        // the capture ends.
        unsafe {
            call!(
                driver,
                cuStreamBeginCaptureToGraph(stream, raw, after, no_data, count, MODE)
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
        let (mut before, target) = (HashSet::new(), (Arc::clone(&graph.tree), graph.number));
        let scope = CaptureScope::begin(graph.context(), OPERATION, Some(target), |root| {
            before = graph.begin_capture(root, after)?;
            Ok(())
        })?;
        Ok(Self {
            graph,
            scope,
            before,
            is_settled: false,
        })
    }

    /// Ends the capture and returns the last captured nodes.
    fn settle(&mut self) -> Result<Vec<Node>> {
        let captured = self.scope.finish()?;
        let mut state = self.graph.tree.lock()?;
        state.refuse(None);
        let last = self.settle_in(&mut state, &captured);
        self.is_settled = last.is_ok();
        if !self.is_settled {
            state.refuse(Some(BUSY));
        }
        last
    }

    fn settle_in(&self, state: &mut State, captured: &Captured) -> Result<Vec<Node>> {
        let (graph, edges) = (&*self.graph, self.graph.edges_in(state)?);
        let parts = self.parts(graph.nodes_in(state)?, &edges);
        if graph.must_follow(state, OPERATION, &captured.kept)? {
            let there: HashSet<_> = edges.iter().map(|edge| (edge.from, edge.to)).collect();
            let pairs = parts
                .leaves
                .iter()
                .flat_map(|leaf| parts.first.iter().map(|first| (*leaf, *first)));
            let missing: Vec<_> = pairs.filter(|pair| !there.contains(pair)).collect();
            if !missing.is_empty() {
                graph.add_edges_in(state, OPERATION, &missing)?;
            }
        }
        graph.retain_references(state, OPERATION, &captured.objects)?;
        state.keep(graph.number, &captured.kept);
        Ok(parts.last)
    }

    /// Returns the nodes at the boundary between existing and captured work, and at the end.
    fn parts(&self, nodes: Vec<Node>, edges: &[Edge]) -> Parts {
        let (old, new): (Vec<_>, Vec<_>) = nodes
            .into_iter()
            .partition(|node| self.before.contains(node));
        let is_old = |node: &Node| self.before.contains(node);
        let within = |side: bool| {
            edges
                .iter()
                .filter(move |edge| is_old(&edge.from) == side && is_old(&edge.to) == side)
        };
        let continued: HashSet<_> = within(true)
            .chain(within(false))
            .map(|edge| edge.from)
            .collect();
        let behind: HashSet<_> = within(false).map(|edge| edge.to).collect();
        let ends = |node: &Node| !continued.contains(node);
        Parts {
            leaves: old.into_iter().filter(ends).collect(),
            first: new
                .iter()
                .filter(|node| !behind.contains(*node))
                .copied()
                .collect(),
            last: new.into_iter().filter(ends).collect(),
        }
    }

    /// Removes the captured nodes.
    fn take_back(&self) -> Result<()> {
        let mut state = self.graph.tree.lock()?;
        state.refuse(None);
        let taken = self.graph.nodes_in(&mut state).and_then(|nodes| {
            let mut new = nodes.into_iter().filter(|node| !self.before.contains(node));
            // No object is kept alive for a captured node.
            new.try_for_each(|node| self.graph.remove_in(&mut state, node).map(drop))
        });
        state.refuse(taken.is_err().then_some(SPOILED));
        taken
    }
}

impl Drop for Addition<'_> {
    fn drop(&mut self) {
        if !self.is_settled {
            // The work failed or panicked, or could not be ordered.
            self.scope.abandon();
            release(|| self.take_back());
        }
    }
}
