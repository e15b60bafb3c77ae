//! Stream capture.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use curium_sys::{
    CUgraph, CUstreamCaptureMode, CUstreamUpdateCaptureDependencies_flags_enum as Flags,
};

use super::Graph;
use super::host::closure;
use super::node::Node;
use super::object_reference::ObjectReference;
use super::resource::{Resource, ResourceSet};
use super::tree::Tree;
use crate::AsRawStream as _;
use crate::base::capture_gate::Closed;
use crate::base::capture_guard;
use crate::base::kept_value::Key;
use crate::base::release::release;
use crate::call;
use crate::hazard::{CaptureLog, Ordering, Scope, check_not_ordering, wait};
use crate::{Context, Error, Result, Stream};

/// A stream in capture mode, passed to the closure of [`Graph::capture`] or
/// [`Graph::capture_into`].
///
/// It derefs to [`Stream`]. An operation that would invalidate the capture is an argument error
/// before the driver is called: synchronizing or querying the stream, waiting for events that were
/// not recorded in the capture, and launching a graph.
///
/// Host memory that the graph cannot keep alive is refused too: a pinned buffer that is returned on
/// completion, and a slice as the destination of a copy. A mapped or unified buffer is leased like
/// device memory. A slice that is the source of a copy is copied into the graph at capture time.
///
/// Clones of the stream that outlive the capture become ordinary streams.
pub struct CaptureScope {
    root: Stream,
    scope: Arc<Scope>,
    /// The existing graph that the work is added to, as a tree and a number; `None` for a new
    /// graph.
    target: Option<(Arc<Tree>, u32)>,
    is_ended: bool,
}

/// The result of a capture: its graph, the objects that the graph uses, and the closures that the
/// driver retains for it.
pub(super) struct Captured {
    raw: CUgraph,
    pub(super) resources: ResourceSet,
    pub(super) objects: Vec<ObjectReference>,
}

/// The capture mode. In this mode, calls on other threads do not invalidate a capture.
pub(super) const MODE: CUstreamCaptureMode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;

impl Graph {
    /// Captures the work that `work` enqueues on the stream passed to it, and returns it as a
    /// graph. The work is not executed.
    ///
    /// The capture ends when `work` returns, fails or panics; in the latter two cases the captured
    /// work is discarded. A capture uses a stream of its own. It does not affect other streams and
    /// threads, and they cannot invalidate it.
    ///
    /// **Within the closure, its thread may enqueue work on the scope and its
    /// [forks](CaptureScope::fork) only.** Any other work would run immediately and be missing from
    /// the graph. It is therefore an argument error before the driver is called: copies, fills,
    /// launches, events and stream-ordered allocations on other streams, and host synchronization.
    /// The error names what can be captured instead, such as `.on_mut(scope)` before `.fill(…)`.
    /// Prepare what the work needs before the capture, or on another thread. Operations that
    /// enqueue nothing, such as queries and the allocation of pinned memory, are allowed, and so
    /// are dropping and closing. Other threads, including those that `work` starts, are not
    /// restricted. Closures may be nested; the innermost scope applies.
    ///
    /// The error type of `work` is any type that implements `From<Error>`, so `?` works with your
    /// own errors. A closure that ends in `Ok(())` names the type if the result of `capture` is
    /// used with `?`: `Ok::<_, Error>(())`, or as its return type,
    /// `|scope| -> Result<(), MyError> { … }`.
    ///
    /// The graph **leases** the buffers that the work uses: their memory lives until the owner and
    /// everything created from the graph have been dropped. Each [launch](crate::GraphExec::launch)
    /// counts as an access to them, ordered with other accesses by hazard tracking. Between
    /// launches the owner may use, move and drop them like any other buffer. Kernels and events are
    /// kept alive as well. Memory allocated on the stream from the device's pool exists only while
    /// the graph runs.
    ///
    /// Use [`CaptureScope::fork`] to capture work on several streams.
    ///
    /// ```
    /// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
    /// use curium_driver::{Error, Graph, LaunchConfig, Library};
    ///
    /// # const PTX: &str = ".version 7.8 .target sm_75 .address_size 64 .visible .entry nothing() { ret; }";
    /// let context = driver.device(0)?.primary_context()?;
    /// let nothing = Library::from_ptx(&driver, PTX)?.kernel::<()>("nothing")?;
    /// let graph = Graph::capture(&context, |stream| {
    ///     for _ in 0..20 {
    ///         // SAFETY: the kernel accesses no memory.
    ///         unsafe { nothing.launch(stream, LaunchConfig::new(1, 32), ()) }?;
    ///     }
    ///     Ok::<_, Error>(())
    /// })?;
    /// let mut executable = graph.instantiate()?;
    /// let stream = context.stream()?;
    /// executable.launch(&stream)?;
    /// stream.synchronize()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// CUDA: `cuStreamBeginCapture_v2`, `cuStreamEndCapture`, `cuStreamCreateWithPriority`.
    ///
    /// # Errors
    ///
    /// The error of `work`; `CUDA_ERROR_STREAM_CAPTURE_INVALIDATED` if other code ended the capture
    /// through a raw handle.
    #[doc(alias = "cuStreamBeginCapture")]
    #[doc(alias = "cudaStreamBeginCapture")]
    #[doc(alias = "cuStreamEndCapture")]
    #[doc(alias = "cudaStreamEndCapture")]
    pub fn capture<E: From<Error>>(
        context: &Context,
        work: impl FnOnce(&CaptureScope) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut scope = CaptureScope::begin(context, "Graph::capture", None, |root| {
            // SAFETY: the stream is live, and no other code has its handle.
            unsafe {
                call!(
                    context.driver(),
                    cuStreamBeginCapture_v2(root.as_raw(), MODE)
                )
            }
        })?;
        let recorded = scope.record(work);
        let captured = scope.end();
        recorded.and(captured.map_err(E::from))
    }
}

impl CaptureScope {
    /// Creates another stream in the same capture. Its work depends on the work captured on this
    /// stream so far, and runs concurrently with later work. It is part of the graph even without a
    /// [`CaptureScope::join`], which makes later work depend on it.
    ///
    /// Work on several streams that uses the same buffer is ordered as outside a capture, by edges
    /// of the graph.
    ///
    /// CUDA: `cuStreamCreateWithPriority`, `cuEventRecord`, `cuStreamWaitEvent`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn fork(&self) -> Result<Stream> {
        let branch = Stream::for_capture(self.root.context(), &self.scope)?;
        let _operation = self.root.enqueue("CaptureScope::fork")?;
        wait(&branch, &self.root, self.root.sync_points().count(), None)?;
        self.scope.with(|log| log.branches.push(branch.clone()));
        Ok(branch)
    }

    /// Makes later work on this stream depend on the work captured so far on `branch`, a
    /// [fork](CaptureScope::fork).
    ///
    /// CUDA: `cuEventRecord`, `cuStreamWaitEvent`.
    ///
    /// # Errors
    ///
    /// An argument error if `branch` is not a stream of this capture.
    pub fn join(&self, branch: &Stream) -> Result<()> {
        if !self.scope.owns(branch) {
            return Err(foreign(branch, "CaptureScope::join"));
        }
        let _operation = self.root.enqueue("CaptureScope::join")?;
        wait(&self.root, branch, branch.sync_points().count(), None).map(drop)
    }

    /// Makes later work on `stream`, the scope itself or one of its [forks](CaptureScope::fork),
    /// also depend on `nodes`, which were in the graph before it was
    /// [captured into](Graph::capture_into).
    ///
    /// CUDA: `cuStreamUpdateCaptureDependencies_v2`.
    ///
    /// # Errors
    ///
    /// An argument error if `stream` is not part of this capture, if a node belongs to another
    /// graph or was removed, or if the capture creates a new graph.
    #[doc(alias = "cuStreamUpdateCaptureDependencies")]
    #[doc(alias = "cudaStreamUpdateCaptureDependencies")]
    pub fn follow(&self, stream: &Stream, nodes: &[Node]) -> Result<()> {
        let operation = "CaptureScope::follow";
        if !self.scope.owns(stream) {
            return Err(foreign(stream, operation));
        }
        let Some((tree, graph)) = &self.target else {
            return Err(Error::argument(
                operation,
                "the capture creates a new graph, which has no earlier nodes",
            ));
        };
        let enqueued = stream.enqueue(operation)?;
        let state = tree.lock()?;
        let mut nodes = nodes
            .iter()
            .map(|node| state.member_in_use(operation, *graph, *node))
            .collect::<Result<Vec<_>>>()?;
        let list = nodes.as_mut_ptr();
        let count = nodes.len();
        // Only adds dependencies: none that hazard tracking relies on is removed.
        let flags = Flags::CU_STREAM_ADD_CAPTURE_DEPENDENCIES.0;
        // SAFETY: the stream is live and in the capture, the nodes are live and in its graph, and
        // the list has the given length.
        unsafe {
            call!(
                stream.driver(),
                cuStreamUpdateCaptureDependencies_v2(
                    enqueued.raw_stream(),
                    list,
                    std::ptr::null(),
                    count,
                    flags
                )
            )
        }
    }

    /// Adds a host function to the graph, which depends on the work captured so far on `stream`:
    /// the scope itself or one of its [forks](CaptureScope::fork). Each launch calls it on a driver
    /// thread. It **must not call the driver**, and neither must the destructors of the values that
    /// it drops. Its panics are caught.
    ///
    /// The function lives until the graph and everything created from it have been dropped and all
    /// of their launches have completed, as in [`Graph::add_host`].
    ///
    /// CUDA: `cuLaunchHostFunc`, `cuUserObjectCreate`, `cuGraphRetainUserObject`.
    ///
    /// # Errors
    ///
    /// An argument error if `stream` is not part of this capture. The function is then dropped.
    pub fn add_host(
        &self,
        stream: &Stream,
        function: impl Fn() + Send + Sync + 'static,
    ) -> Result<()> {
        if !self.scope.owns(stream) {
            return Err(foreign(stream, "CaptureScope::add_host"));
        }
        let (object, params) = closure(self.root.driver(), function)?;
        let operation = stream.enqueue("CaptureScope::add_host")?;
        // The graph retains the closure once the capture ends; nothing runs before.
        self.scope
            .keep(Key::HostFunction(object.as_raw().addr()), || {
                Arc::new(object.clone())
            });
        // SAFETY: the stream is live and in the capture, whose graph retains the closure for as
        // long as it can be called.
        unsafe {
            call!(
                stream.driver(),
                cuLaunchHostFunc(operation.raw_stream(), params.fn_, params.userData)
            )
        }
    }

    /// Creates a stream on which `begin` has started a capture.
    pub(super) fn begin(
        context: &Context,
        operation: &'static str,
        target: Option<(Arc<Tree>, u32)>,
        begin: impl FnOnce(&Stream) -> Result<()>,
    ) -> Result<Self> {
        check_not_ordering(operation)?;
        let scope = Scope::new();
        let root = Stream::for_capture(context, &scope)?;
        begin(&root)?;
        scope.open(&root);
        Ok(Self {
            root,
            scope,
            target,
            is_ended: false,
        })
    }

    /// Runs `work`, whose thread may enqueue work on the streams of this capture only.
    pub(super) fn record<E>(&self, work: impl FnOnce(&Self) -> Result<(), E>) -> Result<(), E> {
        let _inside = capture_guard::enter(self.scope.identity());
        work(self)
    }

    /// Ends the capture and returns its graph.
    fn end(&mut self) -> Result<Graph> {
        let Captured {
            raw,
            resources,
            objects,
        } = self.finish()?;
        Graph::owning(self.root.context(), raw, resources).retaining("Graph::capture", &objects)
    }

    /// Ends the capture in any case and returns its result. An incomplete new graph is destroyed.
    pub(super) fn finish(&mut self) -> Result<Captured> {
        self.is_ended = true;
        // No other thread enqueues work on the streams now: earlier work is in the log, and later
        // work runs outside the capture.
        let closed = self.scope.close(|log| {
            let joined = self.join_all(log);
            let _ordering = Ordering::begin();
            // If the first attempt failed, the second leaves no capture in progress. Nothing else
            // can be done.
            let raw = self.end_capture();
            let leftover = if raw.is_err() {
                self.end_capture().ok()
            } else {
                None
            };
            (joined, raw, leftover)
        });
        let Some(Closed {
            log,
            result: (joined, raw, leftover),
            is_disturbed,
        }) = closed
        else {
            return Err(Error::argument(
                "Graph::capture",
                "the capture has ended already",
            ));
        };
        if let Some(raw) = leftover {
            self.discard(raw);
        }
        let (resources, objects) = captured_objects(log);
        let result = if is_disturbed {
            joined.and(Err(guard_outlives_closure()))
        } else {
            joined
        };
        if let Err(error) = result {
            if let Ok(raw) = raw {
                self.discard(raw);
            }
            return Err(error);
        }
        Ok(Captured {
            raw: raw?,
            resources,
            objects,
        })
    }

    fn end_capture(&self) -> Result<CUgraph> {
        let mut raw: CUgraph = std::ptr::null_mut();
        // SAFETY: the stream is live, and `raw` is valid for writes.
        unsafe {
            call!(self.root.driver(), cuStreamEndCapture(self.root.as_raw(), &raw mut raw) creates raw)
        }?;
        Ok(raw)
    }

    /// Ends the capture, if it is in progress, and discards it.
    pub(super) fn abandon(&mut self) {
        if !self.is_ended {
            release(|| self.finish().map(|captured| self.discard(captured.raw)));
        }
    }

    /// Destroys the graph of the capture if it is a new one.
    fn discard(&self, raw: CUgraph) {
        if self.target.is_none() {
            drop(Graph::owning(
                self.root.context(),
                raw,
                ResourceSet::default(),
            ));
        }
    }

    /// Makes the root stream wait for every branch, and frees the memory allocated in the capture
    /// and not yet freed.
    fn join_all(&self, log: &mut CaptureLog) -> Result<()> {
        let branches = std::mem::take(&mut log.branches);
        let allocations = std::mem::take(&mut log.allocations);
        branches.iter().try_for_each(|branch| {
            wait(&self.root, branch, branch.sync_points().count(), None).map(drop)
        })?;
        let _ordering = Ordering::begin();
        allocations.into_iter().try_for_each(|address| {
            // SAFETY: the memory was allocated in this capture and not freed, and the root stream
            // waits for every stream of the capture.
            unsafe {
                call!(
                    self.root.driver(),
                    cuMemFreeAsync(address, self.root.as_raw())
                )
            }
        })
    }
}

/// Returns the objects that the graph of a capture keeps alive, and the closures that the driver
/// retains for it.
fn captured_objects(log: CaptureLog) -> (ResourceSet, Vec<ObjectReference>) {
    let (leases, others) = log.into_parts();
    let mut resources = ResourceSet::default();
    let mut objects = Vec::new();
    for lease in leases {
        resources.add(&Resource::Lease(lease));
    }
    for other in others.into_values() {
        match other.downcast_ref::<ObjectReference>() {
            Some(object) => objects.push(object.clone()),
            None => resources.add(&Resource::Other(other)),
        }
    }
    (resources, objects)
}

#[cold]
fn guard_outlives_closure() -> Error {
    Error::argument(
        "Graph::capture",
        "an `Operation` of this thread on the capture still exists; drop it before the closure returns",
    )
}

#[cold]
fn foreign(stream: &Stream, operation: &'static str) -> Error {
    Error::argument(
        operation,
        format!("{stream:?} does not belong to the capture"),
    )
}

impl Deref for CaptureScope {
    type Target = Stream;

    fn deref(&self) -> &Stream {
        &self.root
    }
}

impl fmt::Debug for CaptureScope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "CaptureScope({:?})", self.root)
    }
}

impl Drop for CaptureScope {
    fn drop(&mut self) {
        // The capture has ended, unless `work` panicked.
        self.abandon();
    }
}
