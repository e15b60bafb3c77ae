//! The log of one capture: the memory that its work accesses, and the objects that its work uses.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use curium_sys::CUdeviceptr;

use super::capture_gate::{CaptureGate, Closed, ThreadNumber};
use super::history::History;
use super::lease::{Lease, Leased, not_leasable};
use super::{Accesses, OPERATION};
use crate::base::contain::contain;
use crate::{Error, Result, Stream};

/// A capture, as referenced by its streams. Streams held elsewhere keep it alive after the capture has ended.
pub(crate) struct Scope {
    identity: u64,
    is_open: AtomicBool,
    gate: CaptureGate<CaptureLog>,
}

/// The log of a capture.
pub(crate) struct CaptureLog {
    /// The stream that the others were forked from, and its number of sync points when the capture started.
    root: Stream,
    sync_points: u64,
    memory: HashMap<usize, Memory>,
    objects: HashMap<Key, KeptValue>,
    /// The memory that was allocated in the capture and not yet freed.
    allocations: Vec<CUdeviceptr>,
    /// The streams that were forked from the root.
    branches: Vec<Stream>,
}

/// The key of an object that a capture keeps: its kind, and its handle or address.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Key {
    Kernel(usize),
    Event(usize),
    HostFunction(usize),
    Shared(usize),
}

/// A value that a graph keeps alive. The destructor of another crate's type is user code: its panic is caught, because
/// the graph drops other values as well, and may itself be dropped by a panic.
#[derive(Clone)]
pub(crate) struct KeptValue(
    /// `None` while it is dropped.
    Option<Arc<dyn Any + Send + Sync>>,
);

impl KeptValue {
    fn new(value: Arc<dyn Any + Send + Sync>) -> Self {
        Self(Some(value))
    }

    /// Returns an address that is unique for as long as the value exists.
    pub(crate) fn address(&self) -> usize {
        self.0.as_ref().map_or(0, |value| Arc::as_ptr(value).addr())
    }

    /// Returns the value if it is a `T`.
    pub(crate) fn downcast_ref<T: Any>(&self) -> Option<&T> {
        self.0.as_ref()?.downcast_ref()
    }
}

impl Drop for KeptValue {
    fn drop(&mut self) {
        if let Some(value) = self.0.take() {
            contain(|| drop(value));
        }
    }
}

/// Memory that the capture uses, and its accesses by captured work.
struct Memory {
    lease: Lease,
    history: History,
}

/// The identity of the next capture.
static NEXT_IDENTITY: AtomicU64 = AtomicU64::new(1);

impl Scope {
    /// Creates a capture that has not started.
    #[inline]
    pub(crate) fn new() -> Arc<Self> {
        let identity = NEXT_IDENTITY.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self {
            identity,
            is_open: AtomicBool::new(false),
            gate: CaptureGate::new(),
        })
    }

    /// Opens the log of the capture, which has started on `root`.
    #[inline]
    pub(crate) fn open(&self, root: &Stream) {
        let sync_points = root.sync_points().count();
        root.driver()
            .open_captures()
            .lock()
            .push(root.context().as_raw().addr());
        self.gate.open(CaptureLog {
            root: root.clone(),
            sync_points,
            memory: HashMap::new(),
            objects: HashMap::new(),
            allocations: Vec::new(),
            branches: Vec::new(),
        });
        self.is_open.store(true, Ordering::Release);
    }

    /// Ends the capture with `end`, once the work that other threads are enqueuing has been recorded. Work that they
    /// enqueue later runs outside of it.
    #[inline]
    pub(crate) fn close<T>(
        &self,
        end: impl FnOnce(&mut CaptureLog) -> T,
    ) -> Option<Closed<CaptureLog, T>> {
        let closed = self.gate.close(ThreadNumber::current(), end, || {
            self.is_open.store(false, Ordering::Release);
        });
        if let Some(Closed { log, .. }) = &closed {
            let mut open = log.root.driver().open_captures().lock();
            let context = log.root.context().as_raw().addr();
            if let Some(index) = open.iter().position(|address| *address == context) {
                open.swap_remove(index);
            }
        }
        closed
    }

    /// Enters the capture to enqueue work, which keeps it open until [`Scope::leave`]. Returns `false` if it has ended,
    /// in which case the work would run immediately.
    #[inline]
    pub(super) fn enter(&self, is_nested: bool) -> bool {
        self.gate.enter(ThreadNumber::current(), is_nested)
    }

    #[inline]
    pub(super) fn leave(&self) {
        self.gate.leave(ThreadNumber::current());
    }

    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Returns an identifier that no other capture has.
    #[inline]
    pub(crate) fn identity(&self) -> u64 {
        self.identity
    }

    /// Returns `true` if `stream` was created for this capture.
    #[inline]
    pub(crate) fn owns(&self, stream: &Stream) -> bool {
        stream
            .scope()
            .is_some_and(|scope| std::ptr::eq(self, &raw const **scope))
    }

    /// Runs `operation` with the log of the capture, unless it has ended.
    #[inline]
    pub(crate) fn with<T>(&self, operation: impl FnOnce(&mut CaptureLog) -> T) -> Option<T> {
        self.gate.with(operation)
    }

    /// Keeps an object that the captured work uses.
    #[inline]
    pub(crate) fn keep(&self, key: Key, value: impl FnOnce() -> Arc<dyn Any + Send + Sync>) {
        self.with(|log| {
            log.objects
                .entry(key)
                .or_insert_with(|| KeptValue::new(value()));
        });
    }

    /// Orders an access by work that is about to be captured on `stream`. The capture was entered.
    ///
    /// Returns an error if the capture has ended nevertheless, because the thread that ended it holds the operation.
    #[inline]
    pub(super) fn before(
        &self,
        accesses: &Accesses,
        stream: &Stream,
        is_write: bool,
    ) -> Result<()> {
        self.with(|log| log.before(self, accesses, stream, is_write))
            .unwrap_or_else(|| Err(ended()))
    }

    /// Records an access by work that was captured on `stream`. The capture was entered.
    #[inline]
    pub(super) fn after(&self, accesses: &Accesses, stream: &Stream, is_write: bool) {
        self.with(|log| log.after(accesses.leased(), stream, is_write));
    }
}

impl CaptureLog {
    #[inline]
    pub(crate) fn branches(&mut self) -> &mut Vec<Stream> {
        &mut self.branches
    }

    #[inline]
    pub(crate) fn allocations(&mut self) -> &mut Vec<CUdeviceptr> {
        &mut self.allocations
    }

    /// Returns the memory that the captured work accesses, and the other objects that it uses.
    #[inline]
    pub(crate) fn into_parts(self) -> (Vec<Lease>, HashMap<Key, KeptValue>) {
        (
            self.memory
                .into_values()
                .map(|memory| memory.lease)
                .collect(),
            self.objects,
        )
    }

    #[inline]
    fn before(
        &mut self,
        scope: &Scope,
        accesses: &Accesses,
        stream: &Stream,
        is_write: bool,
    ) -> Result<()> {
        stream
            .driver()
            .expect_same(accesses.owner_stream().driver(), OPERATION)?;
        match accesses.owner_stream().scope() {
            Some(owner) if !std::ptr::eq(&raw const **owner, scope) => {
                return Err(in_another_graph());
            }
            _ if !accesses.is_leasable() => return Err(not_leasable(stream)),
            _ => {}
        }
        self.order(accesses.lease(), stream, is_write)
    }

    /// Makes the captured work on `stream` depend on conflicting accesses to `leased`.
    #[inline]
    fn order(&mut self, leased: &Arc<Leased>, stream: &Stream, is_write: bool) -> Result<()> {
        let root = &self.root;
        let sync_points = self.sync_points;
        let memory = self.memory.entry(leased.key()).or_insert_with(|| Memory {
            lease: Lease::new(Arc::clone(leased), is_write),
            history: leased.captured_since(root, sync_points),
        });
        if is_write {
            memory.lease.write_as_well();
        }
        memory
            .history
            .before(&mut memory.history.others(), stream, is_write)
    }

    #[inline]
    fn after(&mut self, leased: Option<&Arc<Leased>>, stream: &Stream, is_write: bool) {
        let Some(leased) = leased else { return };
        if let Some(memory) = self.memory.get(&leased.key()) {
            memory
                .history
                .after(&mut memory.history.others(), stream, is_write);
        }
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "Scope({}, {})",
            self.identity,
            if self.is_open() { "open" } else { "ended" }
        )
    }
}

/// Returns the error for a use, outside a capture, of memory that was allocated in it.
#[cold]
pub(super) fn in_another_graph() -> Error {
    Error::argument(
        OPERATION,
        "the memory was allocated in a capture, and exists only while that graph runs",
    )
}

/// Returns the error for an access of an operation that outlives its capture.
#[cold]
fn ended() -> Error {
    Error::argument(
        OPERATION,
        "the operation began in a capture that has ended; begin one for each piece of work",
    )
}
