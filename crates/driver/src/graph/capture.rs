//! Stream capture.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use curium_sys::{CUgraph, CUstreamCaptureMode, CUstreamUpdateCaptureDependencies_flags_enum as Flags};

use super::host::closure;
use super::kept::{Kept, Resource};
use super::object_reference::ObjectReference;
use super::tree::Tree;
use super::{Graph, Node};
use crate::base::capture_guard;
use crate::base::release::release;
use crate::call;
use crate::hazard::{AccessGuard, CaptureLog, Key, Ordering, Scope, expect_not_ordering, wait};
use crate::{Context, Error, Result, Stream};

/// A stream whose work is taken down for a graph, while [`Graph::capture`] or [`Graph::capture_into`] runs.
///
/// It is a [`Stream`] for everything that takes one. An operation that would end the capture is an argument error before the driver is
/// called: to wait for the stream, to ask whether its work is done, to wait for events that were not recorded in the capture, and to
/// launch a graph.
///
/// Memory of the host that nobody could keep for the graph is refused, too: a pinned buffer that comes back when its copy is done, and a
/// slice that is copied to. A mapped or unified buffer is leased like one of the device. Of a slice that is copied from, the graph keeps a
/// copy as it is now.
///
/// Clones of the stream that outlive the capture are plain streams from then on.
pub struct CaptureScope {
    root: Stream,
    scope: Arc<Scope>,
    /// The graph that the work is added to, by its tree and its number, if it is not a new one.
    target: Option<(Arc<Tree>, u32)>,
    is_ended: bool,
}

/// The result of a capture: its graph, the objects that the graph needs, and the closures that the driver keeps for it.
pub(super) struct Captured {
    raw: CUgraph,
    pub(super) kept: Kept,
    pub(super) objects: Vec<ObjectReference>,
}

/// The capture mode. Calls of other threads do not invalidate a capture in this mode.
pub(super) const MODE: CUstreamCaptureMode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;

impl Graph {
    /// Captures the work that `work` enqueues on the stream that it is given, and returns it as a graph. None of it runs now.
    ///
    /// The capture ends when `work` does, on error and panic as well, and nothing of it is left then. It is one of its own: other streams
    /// and threads go on as they like, and neither they nor what is dropped meanwhile can spoil it.
    ///
    /// **Within the closure, its thread enqueues work on the scope and its [forks](CaptureScope::fork) only.** Everything else would run at
    /// once and be missing from the graph, so it is an argument error before the driver is called: copies, fills, launches, events and
    /// stream-ordered allocation on other streams, and waits of the host. The error names the method that is captured, such as
    /// `fill_on(scope, …)` for `fill`. Prepare what the work needs before the capture, or on another thread. Not restricted are what
    /// enqueues nothing, such as queries and the allocation of pinned memory; dropping and closing; and other threads, also those that
    /// `work` starts. Closures may be nested; the innermost scope counts.
    ///
    /// The error of `work` is of any type that an [`Error`] converts into, so that `?` works with errors of your own. A closure that ends
    /// in `Ok(())` names it: `Ok::<_, Error>(())`, or with a return type, `|scope| -> Result<(), MyError> { … }`.
    ///
    /// Buffers that the work uses are **leased**: their memory lives until both its owner and everything that was made of the graph are
    /// gone, and each [launch](crate::GraphExec::launch) is a use of them, which waits for others and which others wait for. Between
    /// launches the owner may use, move and drop them like any other. Kernels and events are kept as well. Memory that is allocated on the
    /// stream with the device's pool exists only while the graph runs.
    ///
    /// Work on several streams is captured with [`CaptureScope::fork`].
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
    ///         // SAFETY: the kernel touches no memory.
    ///         unsafe { nothing.launch(stream, LaunchConfig::new(1, 32), ()) }?;
    ///     }
    ///     Ok::<_, Error>(())
    /// })?;
    /// let (mut executable, stream) = (graph.instantiate()?, context.stream()?);
    /// executable.launch(&stream)?;
    /// stream.synchronize()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// CUDA: `cuStreamBeginCapture_v2`, `cuStreamEndCapture`, `cuStreamCreateWithPriority`.
    ///
    /// # Errors
    ///
    /// The error of `work`; `CUDA_ERROR_STREAM_CAPTURE_INVALIDATED` if other code has ended the capture through a raw handle.
    #[doc(alias = "cuStreamBeginCapture")]
    #[doc(alias = "cuStreamEndCapture")]
    #[inline]
    pub fn capture<E: From<Error>>(
        context: &Context,
        work: impl FnOnce(&CaptureScope) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut scope = CaptureScope::begin(context, "Graph::capture", None, |root| {
            // SAFETY: the stream is live, and nobody else has it.
            unsafe { call!(context.driver(), cuStreamBeginCapture_v2(root.as_raw(), MODE)) }
        })?;
        let recorded = scope.record(work);
        let captured = scope.end();
        recorded.and(captured.map_err(E::from))
    }
}

impl CaptureScope {
    /// Another stream of the same capture, whose work comes after what is on this one by now, and beside what follows. What is on it
    /// when the capture ends belongs to the graph; [`CaptureScope::join`] has work come after it.
    ///
    /// Work on several streams that uses one buffer is ordered as it would be outside of a capture, by edges of the graph.
    ///
    /// CUDA: `cuStreamCreateWithPriority`, `cuEventRecord`, `cuStreamWaitEvent`.
    ///
    /// # Errors
    ///
    /// An error of the driver.
    #[inline]
    pub fn fork(&self) -> Result<Stream> {
        let branch = Stream::of_scope(self.root.context(), &self.scope)?;
        let _guard = AccessGuard::new(&self.root)?;
        wait(&branch, &self.root, self.root.sync_points().count(), None)?;
        self.scope.with(|log| log.branches().push(branch.clone()));
        Ok(branch)
    }

    /// Makes later work on this stream come after what is on `branch`, a [fork](CaptureScope::fork), by now.
    ///
    /// CUDA: `cuEventRecord`, `cuStreamWaitEvent`.
    ///
    /// # Errors
    ///
    /// An argument error if `branch` is not a stream of this capture.
    #[inline]
    pub fn join(&self, branch: &Stream) -> Result<()> {
        if !self.scope.is_that_of(branch) {
            return Err(foreign(branch, "CaptureScope::join"));
        }
        let _guard = AccessGuard::new(&self.root)?;
        wait(&self.root, branch, branch.sync_points().count(), None).map(drop)
    }

    /// Makes later work on `stream`, the scope itself or one of its [forks](CaptureScope::fork), come after `nodes` as well, which the
    /// graph had before it was [captured into](Graph::capture_into).
    ///
    /// CUDA: `cuStreamUpdateCaptureDependencies_v2`.
    ///
    /// # Errors
    ///
    /// An argument error if `stream` is not a stream of this capture, if a node is in another graph or was removed, or if the capture
    /// makes a new graph.
    #[doc(alias = "cuStreamUpdateCaptureDependencies")]
    #[inline]
    pub fn follow(&self, stream: &Stream, nodes: &[Node]) -> Result<()> {
        let operation = "CaptureScope::follow";
        if !self.scope.is_that_of(stream) {
            return Err(foreign(stream, operation));
        }
        let Some((tree, graph)) = &self.target else {
            return Err(Error::argument(operation, "the capture makes a new graph, which had no nodes before"));
        };
        let _guard = AccessGuard::new(stream)?;
        let state = tree.lock()?;
        let nodes = nodes.iter().map(|node| state.member_in_use(operation, *graph, *node));
        let mut nodes = nodes.collect::<Result<Vec<_>>>()?;
        let (list, no_data, count) = (nodes.as_mut_ptr(), std::ptr::null(), nodes.len());
        // Only more order: none that the uses of memory rely on is taken away.
        let flags = Flags::CU_STREAM_ADD_CAPTURE_DEPENDENCIES.0;
        // SAFETY: the stream is live and of the capture, the nodes are live and in its graph, and the list is as long as said.
        unsafe {
            call!(stream.driver(), cuStreamUpdateCaptureDependencies_v2(stream.as_raw(), list, no_data, count, flags))
        }
    }

    /// Makes each launch of the graph call `function` on a thread of the driver, behind what is on `stream` by now: the scope itself or one
    /// of its [forks](CaptureScope::fork). It **must not call the driver**, and what it drops must not either; a panic ends in it.
    ///
    /// The function lives until the graph and everything made of it are gone, and every launch of that has ended, as in
    /// [`Graph::add_host`].
    ///
    /// CUDA: `cuLaunchHostFunc`, `cuUserObjectCreate`, `cuGraphRetainUserObject`.
    ///
    /// # Errors
    ///
    /// An argument error if `stream` is not a stream of this capture. The function is dropped then.
    #[inline]
    pub fn add_host(&self, stream: &Stream, function: impl Fn() + Send + Sync + 'static) -> Result<()> {
        if !self.scope.is_that_of(stream) {
            return Err(foreign(stream, "CaptureScope::add_host"));
        }
        let (object, params) = closure(self.root.driver(), function)?;
        let _guard = AccessGuard::new(stream)?;
        // The graph keeps it from its end on; until then nothing runs.
        self.scope.keep(Key::HostFunction(object.as_raw().addr()), || Arc::new(object.clone()));
        // SAFETY: the stream is live and of the capture, whose graph retains the closure for as long as it can be called.
        unsafe { call!(stream.driver(), cuLaunchHostFunc(stream.as_raw(), params.fn_, params.userData)) }
    }

    /// Returns a stream of its own that `begin` has begun to capture.
    #[inline]
    pub(super) fn begin(
        context: &Context,
        operation: &'static str,
        target: Option<(Arc<Tree>, u32)>,
        begin: impl FnOnce(&Stream) -> Result<()>,
    ) -> Result<Self> {
        expect_not_ordering(operation)?;
        let scope = Scope::new();
        let root = Stream::of_scope(context, &scope)?;
        begin(&root)?;
        scope.open(&root);
        Ok(Self { root, scope, target, is_ended: false })
    }

    /// Runs `work`, whose thread enqueues work on the streams of this capture only.
    #[inline]
    pub(super) fn record<E>(&self, work: impl FnOnce(&Self) -> Result<(), E>) -> Result<(), E> {
        let _inside = capture_guard::enter(self.scope.identity());
        work(self)
    }

    /// Ends the capture and returns its graph.
    #[inline]
    fn end(&mut self) -> Result<Graph> {
        let Captured { raw, kept, objects } = self.finish()?;
        Graph::owning(self.root.context(), raw, kept).retaining("Graph::capture", &objects)
    }

    /// Ends the capture, whatever happens, and gives what it leaves. A new graph that is not whole is destroyed.
    #[inline]
    pub(super) fn finish(&mut self) -> Result<Captured> {
        self.is_ended = true;
        // No other thread enqueues work on the streams meanwhile: what it enqueued before is in the log, and what comes later runs.
        let closed = self.scope.close(|log| {
            let joined = self.join_all(log);
            let _ordering = Ordering::begin();
            // Where the first attempt did not, the second leaves no capture behind; there is nothing to be done otherwise.
            let raw = self.end_capture();
            let left = if raw.is_err() { self.end_capture().ok() } else { None };
            (joined, raw, left)
        });
        let Some((log, (joined, raw, left))) = closed else {
            return Err(Error::argument("Graph::capture", "the capture has ended already"));
        };
        left.into_iter().for_each(|raw| self.discard(raw));
        let (kept, objects) = kept(log);
        joined.inspect_err(|_| raw.iter().for_each(|raw| self.discard(*raw)))?;
        Ok(Captured { raw: raw?, kept, objects })
    }

    #[inline]
    fn end_capture(&self) -> Result<CUgraph> {
        let mut raw: CUgraph = std::ptr::null_mut();
        // SAFETY: the stream is live, and `raw` is valid for writes.
        unsafe { call!(self.root.driver(), cuStreamEndCapture(self.root.as_raw(), &raw mut raw) creates raw) }?;
        Ok(raw)
    }

    /// Ends the capture, if it has not ended, for nothing.
    #[inline]
    pub(super) fn abandon(&mut self) {
        if !self.is_ended {
            release(|| self.finish().map(|captured| self.discard(captured.raw)));
        }
    }

    /// Destroys the graph of the capture, if it is a new one.
    #[inline]
    fn discard(&self, raw: CUgraph) {
        if self.target.is_none() {
            drop(Graph::owning(self.root.context(), raw, Kept::default()));
        }
    }

    /// Orders the root after every branch, and frees what was allocated in the capture and still is.
    #[inline]
    fn join_all(&self, log: &mut CaptureLog) -> Result<()> {
        let (branches, allocations) = (std::mem::take(log.branches()), std::mem::take(log.allocations()));
        branches
            .iter()
            .try_for_each(|branch| wait(&self.root, branch, branch.sync_points().count(), None).map(drop))?;
        let _ordering = Ordering::begin();
        allocations.into_iter().try_for_each(|address| {
            // SAFETY: the memory was allocated in this capture and not freed, and every stream of the capture has been waited for.
            unsafe { call!(self.root.driver(), cuMemFreeAsync(address, self.root.as_raw())) }
        })
    }
}

/// Returns the objects that the graph of a capture keeps, and the closures that the driver keeps for it.
#[inline]
fn kept(log: CaptureLog) -> (Kept, Vec<ObjectReference>) {
    let (leases, others) = log.into_parts();
    let (mut kept, mut objects) = (Kept::default(), Vec::new());
    leases.into_iter().for_each(|lease| kept.add(&Resource::Lease(lease)));
    for other in others.into_values() {
        match other.downcast::<ObjectReference>() {
            Ok(object) => objects.push((*object).clone()),
            Err(other) => kept.add(&Resource::Other(other)),
        }
    }
    (kept, objects)
}

#[cold]
fn foreign(stream: &Stream, operation: &'static str) -> Error {
    Error::argument(operation, format!("{stream:?} is no stream of the capture"))
}

impl Deref for CaptureScope {
    type Target = Stream;

    #[inline]
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
    #[inline]
    fn drop(&mut self) {
        // It has ended, unless `work` has panicked.
        self.abandon();
    }
}
