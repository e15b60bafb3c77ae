//! A capture: its streams, the memory that its work accesses, and the objects that it uses.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use curium_sys::CUdeviceptr;

use super::history::{AccessList, History};
use super::lease::{Lease, Leased};
use super::sync_point::{OPERATION, StreamPoint};
use crate::base::capture_gate::{CaptureGate, Closed};
use crate::base::kept_value::{KeptValue, Key};
use crate::{Error, Result, Stream};

/// A capture, as referenced by its streams. Streams held elsewhere keep it alive after the capture
/// has ended.
pub(crate) struct Scope {
    identity: u64,
    gate: CaptureGate<CaptureLog>,
}

/// The log of a capture.
pub(crate) struct CaptureLog {
    /// The stream that the others were forked from, when the capture started.
    root: StreamPoint,
    memory: HashMap<usize, Memory>,
    objects: HashMap<Key, KeptValue>,
    /// The memory that was allocated in the capture and not yet freed.
    pub(crate) allocations: Vec<CUdeviceptr>,
    /// The streams that were forked from the root.
    pub(crate) branches: Vec<Stream>,
}

/// Memory that the capture uses, and its accesses by captured work.
struct Memory {
    lease: Lease,
    history: History,
    others: AccessList,
}

/// The identity of the next capture.
static NEXT_IDENTITY: AtomicU64 = AtomicU64::new(1);

impl Scope {
    /// Creates a capture that has not started.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            identity: NEXT_IDENTITY.fetch_add(1, Ordering::Relaxed),
            gate: CaptureGate::new(),
        })
    }

    /// Opens the log of the capture, which has started on `root`.
    pub(crate) fn open(&self, root: &Stream) {
        root.driver()
            .open_captures()
            .lock()
            .push(root.context().as_raw().addr());
        self.gate.open(CaptureLog {
            root: StreamPoint::now(root),
            memory: HashMap::new(),
            objects: HashMap::new(),
            allocations: Vec::new(),
            branches: Vec::new(),
        });
    }

    /// Ends the capture with `end`, once the work that other threads are enqueuing has been
    /// recorded. Work that they enqueue later runs outside of it.
    pub(crate) fn close<T>(
        &self,
        end: impl FnOnce(&mut CaptureLog) -> T,
    ) -> Option<Closed<CaptureLog, T>> {
        let closed = self.gate.close(end)?;
        let root = &closed.log.root.stream;
        let context = root.context().as_raw().addr();
        let mut open = root.driver().open_captures().lock();
        if let Some(index) = open.iter().position(|address| *address == context) {
            open.swap_remove(index);
        }
        drop(open);
        Some(closed)
    }

    /// Enters the capture to enqueue work, which keeps it open until [`Scope::leave`]. Returns
    /// `false` if it has ended, in which case the work would run immediately.
    pub(super) fn enter(&self, is_nested: bool) -> bool {
        self.gate.enter(is_nested)
    }

    pub(super) fn leave(&self) {
        self.gate.leave();
    }

    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.gate.is_open()
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
    pub(crate) fn with<T>(&self, operation: impl FnOnce(&mut CaptureLog) -> T) -> Option<T> {
        self.gate.with(operation)
    }

    /// Keeps an object that the captured work uses.
    pub(crate) fn keep(&self, key: Key, value: impl FnOnce() -> Arc<dyn Any + Send + Sync>) {
        self.with(|log| {
            log.objects
                .entry(key)
                .or_insert_with(|| KeptValue::new(value()));
        });
    }

    /// Leases `leased` to the graph, and makes the work that is about to be captured on `stream`
    /// depend on conflicting accesses. The capture was entered.
    ///
    /// Returns an error if the capture has ended nevertheless, because the thread that ended it
    /// holds the operation.
    pub(super) fn before(
        &self,
        leased: &Arc<Leased>,
        stream: &Stream,
        is_write: bool,
    ) -> Result<()> {
        self.with(|log| {
            let root = &log.root;
            let memory = log.memory.entry(leased.key()).or_insert_with(|| Memory {
                lease: Lease::new(Arc::clone(leased), is_write),
                history: leased.lock.log.captured_since(root),
                others: AccessList::default(),
            });
            if is_write {
                memory.lease.write_as_well();
            }
            memory.history.before(&mut memory.others, stream, is_write)
        })
        .unwrap_or_else(|| Err(ended()))
    }

    /// Records an access by work that was captured on `stream`. The capture was entered.
    pub(super) fn record(&self, leased: &Leased, stream: &Stream, is_write: bool) {
        self.with(|log| {
            if let Some(memory) = log.memory.get_mut(&leased.key()) {
                memory.history.record(&mut memory.others, stream, is_write);
            }
        });
    }
}

impl CaptureLog {
    /// Returns the memory that the captured work accesses, and the other objects that it uses.
    pub(crate) fn into_parts(self) -> (Vec<Lease>, HashMap<Key, KeptValue>) {
        let memory = self.memory.into_values();
        (memory.map(|memory| memory.lease).collect(), self.objects)
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.is_open() { "open" } else { "ended" };
        write!(formatter, "Scope({}, {state})", self.identity)
    }
}

/// Returns the error for an access of an operation that outlives its capture.
#[cold]
fn ended() -> Error {
    Error::argument(
        OPERATION,
        "the operation began in a capture that has ended; begin one for each piece of work",
    )
}
