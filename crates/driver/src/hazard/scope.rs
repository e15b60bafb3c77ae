//! What one capture has seen: the memory that its work uses, and what that work needs.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use curium_sys::CUdeviceptr;

use super::history::History;
use super::lease::{Lease, Leased, not_leasable};
use super::turn::{begin_use, end_use};
use super::{Accesses, OPERATION};
use crate::lock::Mutex;
use crate::{Context, Error, Result, Stream};

/// A capture, as the streams that were made for it know it. It outlives the capture with streams that others hold.
pub(crate) struct Scope {
    identity: u64,
    is_open: AtomicBool,
    /// Nothing before the capture has begun, and once it has ended.
    seen: Mutex<Option<Seen>>,
}

/// What a capture has seen so far.
pub(crate) struct Seen {
    /// The stream that the others were forked from, and how many tails it had when the capture began.
    root: Stream,
    tails: u64,
    memory: HashMap<usize, Memory>,
    kept: HashMap<usize, Arc<dyn Any + Send + Sync>>,
    /// What was allocated in the capture and not freed.
    allocations: Vec<CUdeviceptr>,
    /// The streams that were forked from the root.
    branches: Vec<Stream>,
}

/// Memory that the capture uses, and its uses by the captured work.
struct Memory {
    lease: Lease,
    history: History,
}

/// The next identity of a capture.
static NEXT_IDENTITY: AtomicU64 = AtomicU64::new(1);

/// The contexts of the captures that are open. A context is waited for by any handle of it, so that none can hold this.
static OPEN: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// An argument error of `operation`, which would end the capture, if one is open in `context`.
#[inline]
pub(crate) fn refuse_captures(context: &Context, operation: &'static str) -> Result<()> {
    if !OPEN.lock().contains(&context.as_raw().addr()) {
        return Ok(());
    }
    Err(Error::argument(
        operation,
        format!("a stream of {context:?} is being captured, and this would end the capture"),
    ))
}

impl Scope {
    /// A capture that has not begun.
    #[inline]
    pub(crate) fn new() -> Arc<Self> {
        let identity = NEXT_IDENTITY.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self { identity, is_open: AtomicBool::new(false), seen: Mutex::new(None) })
    }

    /// The capture has begun on `root`.
    #[inline]
    pub(crate) fn open(&self, root: &Stream) {
        let (memory, kept, allocations, branches) = Default::default();
        let seen = Seen { root: root.clone(), tails: root.tail().tails(), memory, kept, allocations, branches };
        OPEN.lock().push(root.context().as_raw().addr());
        *self.seen.lock() = Some(seen);
        self.is_open.store(true, Ordering::Release);
    }

    /// The capture ends: what it has seen. The caller is alone.
    #[inline]
    pub(crate) fn close(&self) -> Option<Seen> {
        self.is_open.store(false, Ordering::Release);
        let seen = self.seen.lock().take()?;
        let (mut open, context) = (OPEN.lock(), seen.root.context().as_raw().addr());
        if let Some(index) = open.iter().position(|known| *known == context) {
            open.swap_remove(index);
        }
        Some(seen)
    }

    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// A number that no other capture has.
    #[inline]
    pub(crate) fn identity(&self) -> u64 {
        self.identity
    }

    /// Whether `stream` was made for this capture, too.
    #[inline]
    pub(crate) fn is_that_of(&self, stream: &Stream) -> bool {
        stream.scope().is_some_and(|scope| std::ptr::eq(self, &raw const **scope))
    }

    /// Runs `operation` with what the capture has seen, unless it has ended.
    #[inline]
    pub(crate) fn with<T>(&self, operation: impl FnOnce(&mut Seen) -> T) -> Option<T> {
        self.seen.lock().as_mut().map(operation)
    }

    /// Keeps what the captured work needs, which is called `key`.
    #[inline]
    pub(crate) fn keep(&self, key: usize, value: impl FnOnce() -> Arc<dyn Any + Send + Sync>) {
        self.with(|seen| {
            seen.kept.entry(key).or_insert_with(value);
        });
    }

    /// Begins a use by work that is about to be captured on `stream`; false if the capture has ended, and the work would run.
    #[inline]
    pub(super) fn before(&self, accesses: &Accesses, stream: &Stream, is_write: bool) -> Result<bool> {
        begin_use(self.key())?;
        let begun = self.with(|seen| seen.before(self, accesses, stream, is_write)).transpose();
        if !matches!(begun, Ok(Some(()))) {
            end_use(self.key());
        }
        Ok(begun?.is_some())
    }

    /// Notes a use by work that was captured on `stream`, which ends; false if the capture had ended before.
    #[inline]
    pub(super) fn after(&self, accesses: &Accesses, stream: &Stream, is_write: bool) -> bool {
        let noted = self.with(|seen| seen.after(accesses.leased(), stream, is_write));
        end_use(self.key());
        noted.is_some()
    }

    #[inline]
    fn key(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

impl Seen {
    #[inline]
    pub(crate) fn branches(&mut self) -> &mut Vec<Stream> {
        &mut self.branches
    }

    #[inline]
    pub(crate) fn allocations(&mut self) -> &mut Vec<CUdeviceptr> {
        &mut self.allocations
    }

    /// The memory that the captured work uses, and what else it needs.
    #[inline]
    pub(crate) fn into_parts(self) -> (Vec<Lease>, HashMap<usize, Arc<dyn Any + Send + Sync>>) {
        (self.memory.into_values().map(|memory| memory.lease).collect(), self.kept)
    }

    #[inline]
    fn before(&mut self, scope: &Scope, accesses: &Accesses, stream: &Stream, is_write: bool) -> Result<()> {
        stream.driver().expect_same(accesses.home().driver(), OPERATION)?;
        match accesses.home().scope() {
            Some(home) if !std::ptr::eq(&raw const **home, scope) => return Err(in_another_graph()),
            _ if !accesses.is_leasable() => return Err(not_leasable(stream)),
            _ => {}
        }
        self.wait(accesses.lease(), stream, is_write)
    }

    /// Has the captured work on `stream` come behind what a use of `leased` must come behind.
    #[inline]
    fn wait(&mut self, leased: &Arc<Leased>, stream: &Stream, is_write: bool) -> Result<()> {
        let (root, tails) = (&self.root, self.tails);
        let memory = self.memory.entry(leased.key()).or_insert_with(|| Memory {
            lease: Lease::new(Arc::clone(leased), is_write),
            history: History::since(root, tails, 0),
        });
        if is_write {
            memory.lease.write_as_well();
        }
        memory.history.before(&mut memory.history.others(), stream, is_write)
    }

    #[inline]
    fn after(&mut self, leased: Option<&Arc<Leased>>, stream: &Stream, is_write: bool) {
        let Some(leased) = leased else { return };
        self.note(leased, stream, is_write);
    }

    /// Notes a use by captured work.
    #[inline]
    fn note(&mut self, leased: &Arc<Leased>, stream: &Stream, is_write: bool) {
        if let Some(memory) = self.memory.get(&leased.key()) {
            memory.history.after(&mut memory.history.others(), stream, is_write);
        }
    }
}

impl fmt::Debug for Scope {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Scope({}, {})", self.identity, if self.is_open() { "open" } else { "ended" })
    }
}

/// What is said of memory that was allocated in a capture, outside of it.
#[cold]
#[inline]
pub(super) fn in_another_graph() -> Error {
    Error::argument(OPERATION, "the memory was allocated in a capture, and exists only while that graph runs")
}
