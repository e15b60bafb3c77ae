//! Recapture: captures the work of a graph again, into the same nodes.
//!
//! The driver matches the new work with the nodes in the order of their creation. If that fails,
//! the graph is undefined, and its tree refuses every later use.

use std::collections::HashMap;
use std::sync::Arc;

use curium_sys::Function;

use super::Graph;
use super::capture::{CaptureScope, MODE};
use super::tree::ROOT;
use crate::AsRawStream as _;
use crate::base::release::release;
use crate::call;
use crate::{Error, Result, Stream};

/// A recapture in progress. Dropping it ends the capture, and leaves the graph unusable unless the
/// recapture was completed.
struct Recapture<'graph> {
    graph: &'graph mut Graph,
    scope: CaptureScope,
    is_complete: bool,
}

const OPERATION: &str = "Graph::recapture";

/// The reason in the error of every other use of the graph.
const BUSY: &str = "the work of the graph is being captured again";
const UNUSABLE: &str =
    "a recapture of the graph has failed, which leaves it undefined; capture a new graph";

impl Graph {
    /// Captures the work of the graph again, which replaces the parameters of its nodes: buffers,
    /// values, launch configurations. The work is not executed. The nodes stay the same, so
    /// [`GraphExec::update`](crate::GraphExec::update) can then update an executable graph without
    /// a second graph.
    ///
    /// `work` must enqueue the same operations in the same order as when the graph was captured, on
    /// the same forks. Memory that the graph allocates keeps its size and its address. The rules of
    /// [`Graph::capture`] apply to `work`. The buffers, kernels and functions of the previous work
    /// are released; executable graphs that were instantiated before keep theirs.
    ///
    /// If `work` fails, panics or enqueues other operations, **the graph is unusable**: every later
    /// use of it is an argument error.
    ///
    /// ```
    /// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
    /// use curium_driver::{Graph, GraphUpdate};
    ///
    /// let context = driver.device(0)?.primary_context()?;
    /// let mut graph = Graph::capture(&context, |stream| stream.add_host(stream, || println!("one")))?;
    /// let mut executable = graph.instantiate()?;
    /// graph.recapture(|stream| stream.add_host(stream, || println!("two")))?;
    /// assert!(matches!(executable.update(&graph)?, GraphUpdate::Done));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Requires a driver for CUDA 13.3. CUDA: `cuStreamBeginRecaptureToGraph`,
    /// `cuStreamEndCapture`, `cuStreamCreateWithPriority`.
    ///
    /// # Errors
    ///
    /// The error of `work`; `CUDA_ERROR_GRAPH_RECAPTURE_FAILURE` from the operation that differs,
    /// or from the end if operations are missing; an argument error if the graph is a child graph
    /// or a body graph.
    #[doc(alias = "cuStreamBeginRecaptureToGraph")]
    pub fn recapture<E: From<Error>>(
        &mut self,
        work: impl FnOnce(&CaptureScope) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut recapture = Recapture::begin(self)?;
        recapture.scope.record(work)?;
        Ok(recapture.complete()?)
    }

    /// Starts the recapture on `root` and blocks every other use of the graph. The driver releases
    /// the graph's user objects.
    fn begin_recapture(&self, root: &Stream) -> Result<()> {
        let mut state = self.tree.lock()?;
        let driver = self.driver();
        let raw = state.graph(OPERATION, self.number)?;
        let stream = root.as_raw();
        // SAFETY: the stream is live, and no other code has its handle; the graph is live, and not
        // used until the capture ends. Without a callback, every parameter of a node may change.
        unsafe {
            call!(
                driver,
                cuStreamBeginRecaptureToGraph(stream, MODE, raw, None, std::ptr::null_mut())
            )
        }?;
        state.refuse(Some(BUSY));
        state.set_user_objects(HashMap::new());
        Ok(())
    }
}

impl<'graph> Recapture<'graph> {
    fn begin(graph: &'graph mut Graph) -> Result<Self> {
        let function = Function::cuStreamBeginRecaptureToGraph;
        if !graph.driver().has(function) {
            return Err(graph.driver().missing(function));
        }
        if graph.number != ROOT {
            return Err(Error::argument(
                OPERATION,
                "the graph is part of another graph",
            ));
        }
        // A graph that cannot be used is refused before a stream is created.
        graph.tree.lock()?.graph(OPERATION, ROOT)?;
        let target = (Arc::clone(&graph.tree), ROOT);
        let scope = CaptureScope::begin(graph.context(), OPERATION, Some(target), |root| {
            graph.begin_recapture(root)
        })?;
        Ok(Self {
            graph,
            scope,
            is_complete: false,
        })
    }

    /// Ends the capture. The graph then keeps the objects that the new work uses instead of those
    /// of the old work.
    fn complete(&mut self) -> Result<()> {
        let captured = self.scope.finish()?;
        let mut state = self.graph.tree.lock()?;
        state.refuse(None);
        let retained = self
            .graph
            .retain_references(&state, OPERATION, &captured.objects);
        state.refuse(retained.is_err().then_some(BUSY));
        retained?;
        let replaced = state.replace_resources(captured.resources);
        self.is_complete = true;
        drop(state);
        drop(replaced);
        Ok(())
    }
}

impl Drop for Recapture<'_> {
    fn drop(&mut self) {
        if !self.is_complete {
            self.scope.abandon();
            release(|| {
                self.graph.tree.lock()?.refuse(Some(UNUSABLE));
                Ok(())
            });
        }
    }
}
