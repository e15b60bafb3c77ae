//! Executable graphs.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use curium_sys::{CUgraphExec, CUgraphExec_st, CUgraphNode};

use super::exec_host::Closures;
use super::instantiate::check_context;
use super::kernel_update::UpdatedKernels;
use super::leases::Leases;
use super::node::Node;
use super::resource::{Resource, ResourceSet};
use super::tree::{State, Tree};
use super::update::unknown_source;
use crate::AsRawStream as _;
use crate::base::contain::is_in_host_callback;
use crate::base::handle::Handle;
use crate::base::release::{release, report};
use crate::call;
use crate::completion::watch;
use crate::{Context, Driver, Error, Result, Returned, Stream};

/// An executable graph: an instantiated graph that is launched with one call.
///
/// It keeps the objects that its nodes use alive. Launches of one executable graph are serialized,
/// even on different streams. [`launch`](Self::launch) takes `&mut self`, since the driver's graph
/// functions are not thread-safe.
pub struct GraphExec {
    raw: Handle<CUgraphExec_st>,
    state: Box<ExecState>,
    /// Dropped by [`Drop`], which may have to move it to another thread.
    context: ManuallyDrop<Context>,
    _not_sync: PhantomData<Cell<()>>,
}

/// The objects that an executable graph keeps alive.
#[derive(Default)]
struct ExecState {
    /// The source graph. Updates name its nodes, so it must stay alive. Other owners hold a
    /// reference only for the duration of a call, so that an executable graph with the only
    /// reference keeps it.
    source: Option<Arc<Tree>>,
    /// The objects that the nodes use, as of instantiation or the last whole-graph update.
    instantiated: ResourceSet,
    /// The memory and the semaphores among them, which a launch accesses.
    leases: Leases,
    /// The objects of individually updated nodes, indexed by their number in the source graph.
    updated: Vec<Option<Resource>>,
    /// The kernels of individually updated nodes.
    kernels: UpdatedKernels,
    /// The host functions of individually updated nodes.
    closures: Option<Box<Closures>>,
}

impl GraphExec {
    /// Takes ownership of the executable graph `raw`. Its nodes cannot be updated individually,
    /// since its source graph is unknown.
    ///
    /// # Safety
    ///
    /// - `raw` is a live executable graph of this context's driver.
    /// - The resources that its nodes use outlive the result and its launches, and may be accessed
    ///   by every launch.
    /// - No other code destroys it, or uses it while the result exists.
    #[must_use]
    #[inline]
    pub unsafe fn from_raw(context: &Context, raw: CUgraphExec) -> Self {
        Self::new(context, None, raw, ResourceSet::default())
    }

    /// Returns the raw handle and transfers ownership to the caller. The objects that the nodes use
    /// are no longer kept alive.
    #[must_use]
    #[inline]
    pub fn into_raw(mut self) -> CUgraphExec {
        let raw = self.raw.raw();
        self.raw.clear();
        raw
    }

    /// Returns the raw handle. It is valid for as long as this value exists.
    #[must_use]
    #[inline]
    pub fn as_raw(&self) -> CUgraphExec {
        self.raw.raw()
    }

    /// Returns the context in which the work runs.
    #[must_use]
    #[inline]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Returns the driver of this executable graph.
    #[must_use]
    #[inline]
    pub fn driver(&self) -> &Driver {
        self.context.driver()
    }

    /// Launches the graph on `stream`, after its previous launch. Returns without waiting for it to
    /// run.
    ///
    /// This is a single driver call without an allocation. A graph
    /// [captured](crate::Graph::capture) with buffers is ordered with other accesses to these
    /// buffers by hazard tracking: launches may briefly wait for other threads that use the
    /// buffers. The first launch on a different stream makes up to two additional driver calls per
    /// buffer.
    ///
    /// CUDA: `cuGraphLaunch`.
    ///
    /// # Errors
    ///
    /// An argument error if the stream belongs to another context or driver or is being captured,
    /// and within a capture closure. Use [`Graph::add_child`](crate::Graph::add_child) to include a
    /// graph in another one, or capture the work of several captures in a single one.
    /// `CUDA_ERROR_INVALID_VALUE` if memory that an earlier launch allocated was not freed. Errors
    /// of the work itself are reported by a later call.
    #[doc(alias = "cuGraphLaunch")]
    #[doc(alias = "cudaGraphLaunch")]
    #[inline]
    pub fn launch(&mut self, stream: &Stream) -> Result<()> {
        check_context(&self.context, stream, LAUNCH)?;
        if !stream.executes_for(self.driver()) {
            check_uncaptured(stream)?;
        }
        if self.state.closures.is_some() {
            self.launch_with_closures(stream)
        } else {
            self.launch_without_closures(stream)
        }
    }

    /// Launches the graph, none of whose host functions was updated individually. The stream must
    /// belong to the context, and must not be captured.
    #[inline]
    pub(super) fn launch_without_closures(&mut self, stream: &Stream) -> Result<()> {
        let raw = self.raw.raw();
        self.state.leases.launch(stream, || {
            // SAFETY: the executable graph and the stream are live and belong to this driver, and
            // no other code uses the executable graph; the caller that added the nodes is
            // responsible for their accesses, and the stream waits for the leased memory.
            unsafe { call!(stream.driver(), cuGraphLaunch(raw, stream.as_raw())) }
        })
    }

    /// Uploads the graph to the device in stream order, which the first launch would otherwise do.
    /// Returns without waiting.
    ///
    /// CUDA: `cuGraphUpload`.
    ///
    /// # Errors
    ///
    /// An argument error if the stream belongs to another context or driver or is being captured,
    /// and within a capture closure.
    #[doc(alias = "cuGraphUpload")]
    #[doc(alias = "cudaGraphUpload")]
    #[inline]
    pub fn upload(&self, stream: &Stream) -> Result<()> {
        check_context(&self.context, stream, "GraphExec::upload")?;
        let operation = stream.enqueue_uncaptured("GraphExec::upload")?;
        // SAFETY: the executable graph and the stream are live and belong to this driver, and this
        // value is not `Sync`.
        unsafe {
            call!(
                operation.driver(),
                cuGraphUpload(self.raw.raw(), operation.raw_stream())
            )
        }
    }

    /// Destroys the executable graph and returns any error, instead of only reporting it as
    /// [`Drop`] does. Pending launches complete.
    ///
    /// CUDA: `cuGraphExecDestroy`.
    ///
    /// # Errors
    ///
    /// Returns the executable graph to the caller if the driver call fails.
    #[doc(alias = "cuGraphExecDestroy")]
    #[doc(alias = "cudaGraphExecDestroy")]
    #[inline]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.destroy().map_err(|error| Returned::new(self, error))
    }

    /// Returns the source graph.
    #[inline]
    pub(super) fn source(&self) -> Option<&Arc<Tree>> {
        self.state.source.as_ref()
    }

    /// Runs `call` with the raw handle of a node while no other thread uses the node's graph. If
    /// this value is the only owner of the graph, no lock is taken, and the result is the handle,
    /// which stays valid because no other code can remove the node.
    #[inline]
    pub(super) fn with_own_node(
        &mut self,
        operation: &'static str,
        node: Node,
        call: impl FnOnce(&Context, CUgraphExec, CUgraphNode) -> Result<()>,
    ) -> Result<Option<CUgraphNode>> {
        let raw = self.raw.raw();
        let Some(source) = &mut self.state.source else {
            return Err(unknown_source(operation));
        };
        if let Some(source) = Arc::get_mut(source) {
            let node = source.state().node(operation, node)?;
            return call(&self.context, raw, node).map(|()| Some(node));
        }
        let state = source.lock()?;
        call(&self.context, raw, state.node(operation, node)?).map(|()| None)
    }

    #[inline]
    pub(super) fn updated_kernels(&self) -> &UpdatedKernels {
        &self.state.kernels
    }

    #[inline]
    pub(super) fn updated_kernels_mut(&mut self) -> &mut UpdatedKernels {
        &mut self.state.kernels
    }

    #[inline]
    pub(super) fn closures(&mut self) -> &mut Option<Box<Closures>> {
        &mut self.state.closures
    }

    /// Keeps the object that an updated node uses, replacing the one of the previous update.
    #[inline]
    pub(super) fn set_resource(&mut self, node: Node, resource: Resource) {
        let is_accessed_by_launches =
            matches!(resource, Resource::Child(_) | Resource::Semaphores(_));
        let index = node.number as usize;
        let updated = &mut self.state.updated;
        if updated.len() <= index {
            updated.resize_with(index + 1, || None);
        }
        updated[index] = Some(resource);
        if is_accessed_by_launches {
            self.update_leases();
        }
    }

    /// Keeps the objects of a whole-graph update, replacing the previous ones.
    #[inline]
    pub(super) fn replace_resources(&mut self, resources: ResourceSet) {
        self.state.instantiated = resources;
        self.state.updated.clear();
        self.state.kernels.clear();
        self.update_leases();
        self.retire_closures();
    }

    /// Keeps further objects.
    #[inline]
    pub(super) fn add_resources(&mut self, resources: &ResourceSet) {
        self.state.instantiated.extend(resources);
        self.update_leases();
    }

    /// Collects the memory and the semaphores among the kept objects.
    #[inline]
    fn update_leases(&mut self) {
        self.state.leases = Leases::new(&self.current_resources());
    }

    /// Returns all kept objects, except the kernels of individually updated nodes.
    #[inline]
    pub(super) fn current_resources(&self) -> ResourceSet {
        let mut resources = self.state.instantiated.clone();
        for resource in self.state.updated.iter().flatten() {
            resources.add(resource);
        }
        resources
    }

    /// Returns the objects kept for a node: as of instantiation, and as updated.
    #[inline]
    pub(super) fn node_resources(&self, node: Node, source: &State) -> ResourceSet {
        let updated = self
            .state
            .updated
            .get(node.number as usize)
            .and_then(Option::as_ref);
        let mut resources = ResourceSet::default();
        for resource in source.resource(node).into_iter().chain(updated) {
            resources.add(resource);
        }
        resources
    }

    #[inline]
    pub(super) fn owning(source: &Arc<Tree>, raw: CUgraphExec, resources: ResourceSet) -> Self {
        Self::new(source.context(), Some(Arc::clone(source)), raw, resources)
    }

    #[inline]
    fn new(
        context: &Context,
        source: Option<Arc<Tree>>,
        raw: CUgraphExec,
        resources: ResourceSet,
    ) -> Self {
        Self {
            raw: Handle::new(raw),
            state: Box::new(ExecState {
                source,
                leases: Leases::new(&resources),
                instantiated: resources,
                updated: Vec::new(),
                kernels: UpdatedKernels::default(),
                closures: None,
            }),
            context: ManuallyDrop::new(context.clone()),
            _not_sync: PhantomData,
        }
    }

    /// Moves everything to a background thread that drops it, since the driver permits no call on
    /// this thread. This value may have the last handle of the context.
    ///
    /// # Safety
    ///
    /// The context is not used again.
    #[cold]
    unsafe fn drop_later(&mut self) {
        // SAFETY: the caller does not use the context again.
        let context = unsafe { ManuallyDrop::take(&mut self.context) };
        let moved = ManuallyDrop::new(Self {
            raw: Handle::new(self.raw.raw()),
            state: std::mem::take(&mut self.state),
            context: ManuallyDrop::new(context),
            _not_sync: PhantomData,
        });
        self.raw.clear();
        let job = Box::new(|| drop(ManuallyDrop::into_inner(moved)));
        if let Err((error, _leaked)) = watch::run_later("GraphExec::drop", job) {
            report(&error);
        }
    }

    #[inline]
    fn destroy(&mut self) -> Result<()> {
        // SAFETY: the executable graph is live, no other code has its handle, and it is not used
        // again once it is destroyed.
        unsafe { call!(self.context.driver(), cuGraphExecDestroy(self.raw.raw())) }.map_err(
            |error| {
                error.about_handle(
                    "executable graph",
                    self.raw.raw(),
                    self.context.device().as_raw(),
                )
            },
        )?;
        self.raw.clear();
        Ok(())
    }
}

/// The name of every launch.
pub(super) const LAUNCH: &str = "GraphExec::launch";

/// Returns an error if the stream is being captured, which a launch would invalidate, or if this
/// thread is in a capture closure.
#[cold]
#[inline(never)]
fn check_uncaptured(stream: &Stream) -> Result<()> {
    if stream.is_capture_active() {
        return Err(Error::argument(
            LAUNCH,
            "the stream is being captured, and a graph cannot contain a launch; enqueue the graph's work in the capture, or add the graph \
             as a child with `Graph::add_child`",
        ));
    }
    stream.enqueue_uncaptured(LAUNCH).map(drop)
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
        if is_in_host_callback() {
            // SAFETY: this is the last use of the context.
            return unsafe { self.drop_later() };
        }
        if !self.raw.is_cleared() {
            release(|| self.destroy());
        }
        self.retire_closures();
        // SAFETY: this is the last use of the context.
        unsafe { ManuallyDrop::drop(&mut self.context) };
    }
}
