//! An executable graph.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use curium_sys::{CUgraphExec, CUgraphExec_st, CUgraphNode};

use super::Node;
use super::exec_host::Closures;
use super::instantiate::expect_context;
use super::kept::{Kept, Resource};
use super::kernel_update::UpdatedKernels;
use super::leases::Leases;
use super::tree::{State, Tree};
use super::update::unknown_source;
use crate::base::handle::Handle;
use crate::base::release::release;
use crate::call;
use crate::{Context, Driver, Error, Result, Returned, Stream};

/// A graph that was instantiated: it is launched with one call, however many nodes it has.
///
/// It keeps what the graph kept when it was instantiated. Launches of one executable run one after the other, on whatever streams they
/// are; a launch takes the executable exclusively, since the driver allows no two calls at once.
pub struct GraphExec {
    raw: Handle<CUgraphExec_st>,
    keeps: Box<Keeps>,
    context: Context,
    _not_sync: PhantomData<Cell<()>>,
}

/// The objects that an executable graph keeps alive.
struct Keeps {
    /// The graph that was instantiated: updates name its nodes, so the driver must still know them. Others get a share for the length of a
    /// call only, so that an executable with the only share keeps it.
    source: Option<Arc<Tree>>,
    /// The objects that the nodes keep, as they were instantiated or updated all at once.
    all: Kept,
    /// The memory and the semaphores among it, which a launch uses.
    leases: Leases,
    /// The objects of nodes that were updated one by one, at their numbers in the source.
    changed: Vec<Option<Resource>>,
    /// Their kernels.
    kernels: UpdatedKernels,
    /// The host functions that were set one by one.
    closures: Option<Box<Closures>>,
}

impl GraphExec {
    /// Takes over the executable `raw`, which is destroyed with the result. Its nodes cannot be updated one by one, since the graph that
    /// it was made of is not known.
    ///
    /// # Safety
    ///
    /// - `raw` is a live executable of this context's driver.
    /// - What its nodes use outlives the result and its launches, and may be used by them whenever it is launched.
    /// - Nobody else destroys it, or uses it while the result exists.
    #[must_use]
    #[inline]
    pub unsafe fn from_raw(context: &Context, raw: CUgraphExec) -> Self {
        Self::new(context, None, raw, Kept::default())
    }

    /// Returns the driver's handle of this executable, which is the caller's to destroy from now on. The objects that its nodes use are
    /// no longer kept alive.
    #[must_use]
    #[inline]
    pub fn into_raw(mut self) -> CUgraphExec {
        let raw = self.raw.raw();
        self.raw.clear();
        raw
    }

    /// Returns the driver's handle of this executable. It is valid for as long as this value exists.
    #[must_use]
    #[inline]
    pub fn as_raw(&self) -> CUgraphExec {
        self.raw.raw()
    }

    /// Returns the context that the work runs in.
    #[must_use]
    #[inline]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Returns the driver that this executable belongs to.
    #[must_use]
    #[inline]
    pub fn driver(&self) -> &Driver {
        self.context.driver()
    }

    /// Puts the whole graph on `stream`, behind the launch before if that has not ended. Returns before it has run.
    ///
    /// This is one call of the driver, and nothing is allocated. Executables of [captures](crate::Graph::capture) that use buffers take
    /// turns with uses of these buffers on other threads, and with each other where one writes what the other uses; the first launch on
    /// another stream than the one before waits there for the buffers, with a call or two for each.
    ///
    /// CUDA: `cuGraphLaunch`.
    ///
    /// # Errors
    ///
    /// An argument error if the stream is of another context or driver, or being captured, and within the closure of a capture: a graph
    /// becomes a part of another with [`Graph::add_child`](crate::Graph::add_child), and work of several captures one graph when it is done
    /// in one.
    /// `CUDA_ERROR_INVALID_VALUE` if memory that a launch before has allocated was not freed. An error of the work itself is reported by a
    /// later call.
    #[doc(alias = "cuGraphLaunch")]
    #[inline]
    pub fn launch(&mut self, stream: &Stream) -> Result<()> {
        expect_context(&self.context, stream, "GraphExec::launch")?;
        if !stream.runs_work_of(self.driver()) {
            refuse_captured(stream)?;
        }
        if self.keeps.closures.is_some() { self.launch_with_closures(stream) } else { self.launch_plain(stream) }
    }

    /// Returns a launch on a stream of the context.
    #[inline]
    pub(super) fn launch_plain(&mut self, stream: &Stream) -> Result<()> {
        let raw = self.raw.raw();
        self.keeps.leases.launch(stream, || {
            // SAFETY: the executable and the stream are live and belong to this driver, and nobody else uses the executable; whoever added
            // nodes vouched for what they do, and the leased memory is waited for.
            unsafe { call!(stream.driver(), cuGraphLaunch(raw, stream.as_raw())) }
        })
    }

    /// Takes to the device what the first launch would take there otherwise, in order with other work on `stream`. Returns before it has
    /// happened.
    ///
    /// CUDA: `cuGraphUpload`.
    ///
    /// # Errors
    ///
    /// An argument error if the stream is of another context or driver, or being captured, and within the closure of a capture.
    #[doc(alias = "cuGraphUpload")]
    #[inline]
    pub fn upload(&self, stream: &Stream) -> Result<()> {
        expect_context(&self.context, stream, "GraphExec::upload")?;
        stream.expect_running("GraphExec::upload")?;
        // SAFETY: the executable and the stream are live and belong to this driver; this value is on one thread at a time.
        unsafe { call!(stream.driver(), cuGraphUpload(self.raw.raw(), stream.as_raw())) }
    }

    /// Destroys the executable and returns its error, which [`Drop`] only reports. Launches that are pending complete.
    ///
    /// CUDA: `cuGraphExecDestroy`.
    ///
    /// # Errors
    ///
    /// Gives the executable back if the driver refuses.
    #[doc(alias = "cuGraphExecDestroy")]
    #[inline]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.destroy().map_err(|error| Returned::new(self, error))
    }

    /// Returns the instantiated graph.
    #[inline]
    pub(super) fn source(&self) -> Option<&Arc<Tree>> {
        self.keeps.source.as_ref()
    }

    /// Runs `call` with the driver's handle of a node, while no other thread uses the graph of the node. That takes no lock where nobody
    /// else has the graph; the result is the handle then, which the node keeps, since nobody can remove it.
    #[inline]
    pub(super) fn with_own_node(
        &mut self,
        operation: &'static str,
        node: Node,
        call: impl FnOnce(&Context, CUgraphExec, CUgraphNode) -> Result<()>,
    ) -> Result<Option<CUgraphNode>> {
        let raw = self.raw.raw();
        let Some(source) = &mut self.keeps.source else { return Err(unknown_source(operation)) };
        if let Some(source) = Arc::get_mut(source) {
            let node = source.state().node(operation, node)?;
            return call(&self.context, raw, node).map(|()| Some(node));
        }
        let state = source.lock()?;
        call(&self.context, raw, state.node(operation, node)?).map(|()| None)
    }

    #[inline]
    pub(super) fn updated_kernels(&self) -> &UpdatedKernels {
        &self.keeps.kernels
    }

    #[inline]
    pub(super) fn updated_kernels_mut(&mut self) -> &mut UpdatedKernels {
        &mut self.keeps.kernels
    }

    #[inline]
    pub(super) fn closures(&mut self) -> &mut Option<Box<Closures>> {
        &mut self.keeps.closures
    }

    /// Keeps what a node that was changed needs, in place of what it needed after the change before.
    #[inline]
    pub(super) fn keep(&mut self, node: Node, resource: Resource) {
        let is_launched_with = matches!(resource, Resource::Child(_) | Resource::Semaphores(_));
        let index = node.number as usize;
        let changed = &mut self.keeps.changed;
        if changed.len() <= index {
            changed.resize_with(index + 1, || None);
        }
        changed[index] = Some(resource);
        if is_launched_with {
            self.find_leases();
        }
    }

    /// Keeps what all nodes need that were changed at once, in place of what they needed before.
    #[inline]
    pub(super) fn keep_all(&mut self, kept: Kept) {
        self.keeps.all = kept;
        self.keeps.changed.clear();
        self.keeps.kernels.clear();
        self.find_leases();
        self.retire_closures();
    }

    /// Keeps this as well.
    #[inline]
    pub(super) fn keep_also(&mut self, kept: &Kept) {
        self.keeps.all.extend(kept);
        self.find_leases();
    }

    /// Finds the memory and the semaphores among all that is kept.
    #[inline]
    fn find_leases(&mut self) {
        self.keeps.leases = Leases::of(&self.kept_now());
    }

    /// Returns all that is kept, but for kernels that were changed one by one.
    #[inline]
    pub(super) fn kept_now(&self) -> Kept {
        let mut all = self.keeps.all.clone();
        self.keeps.changed.iter().flatten().for_each(|resource| all.add(resource));
        all
    }

    /// Returns the objects kept for a node: as instantiated, and as updated.
    #[inline]
    pub(super) fn kept_for(&self, node: Node, source: &State) -> Kept {
        let changed = self.keeps.changed.get(node.number as usize).and_then(Option::as_ref);
        let mut kept = Kept::default();
        source.kept_by(node).into_iter().chain(changed).for_each(|resource| kept.add(resource));
        kept
    }

    #[inline]
    pub(super) fn owning(source: &Arc<Tree>, raw: CUgraphExec, kept: Kept) -> Self {
        Self::new(source.context(), Some(Arc::clone(source)), raw, kept)
    }

    #[inline]
    fn new(context: &Context, source: Option<Arc<Tree>>, raw: CUgraphExec, kept: Kept) -> Self {
        let leases = Leases::of(&kept);
        let (changed, kernels) = (Vec::new(), UpdatedKernels::default());
        let keeps = Box::new(Keeps { source, leases, all: kept, changed, kernels, closures: None });
        Self { raw: Handle::new(raw), keeps, context: context.clone(), _not_sync: PhantomData }
    }

    #[inline]
    fn destroy(&mut self) -> Result<()> {
        // SAFETY: the executable is live, nobody else has its handle, and it is forgotten once it is destroyed.
        unsafe { call!(self.context.driver(), cuGraphExecDestroy(self.raw.raw())) }
            .map_err(|error| error.about_handle("executable graph", self.raw.raw(), self.context.device().as_raw()))?;
        self.raw.clear();
        Ok(())
    }
}

/// Refuses a launch on a stream of an open capture, which the driver would end the capture for, and in the closure of a capture.
#[cold]
#[inline(never)]
fn refuse_captured(stream: &Stream) -> Result<()> {
    const OPERATION: &str = "GraphExec::launch";
    if stream.is_capture_active() {
        return Err(Error::argument(
            OPERATION,
            "the stream is being captured, and a launch cannot be a part of a graph: do the graph's own work in the capture, or add the \
             graph to another with Graph::add_child",
        ));
    }
    stream.expect_running(OPERATION)
}

impl AsRef<Driver> for GraphExec {
    #[inline]
    fn as_ref(&self) -> &Driver {
        self.driver()
    }
}

impl fmt::Debug for GraphExec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "GraphExec({:?})", self.raw)
    }
}

impl Drop for GraphExec {
    #[inline]
    fn drop(&mut self) {
        if !self.raw.is_cleared() {
            release(|| self.destroy());
        }
        self.retire_closures();
    }
}
