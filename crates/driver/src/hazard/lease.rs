//! Memory that graphs use beside its owner.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::history::History;
use super::turn::{Claim, begin_use, end_use};
use super::{Accesses, OPERATION};
use crate::lock::Mutex;
use crate::release::release;
use crate::{Error, Result, Stream};

/// What the owner of memory and the graphs that use it share: the history of uses, and what becomes of the memory.
///
/// It is made when a capture first uses the memory, and ends with the last graph, or with the owner if that comes last.
pub(crate) struct Leased {
    history: History,
    /// How many leases there are of graphs that only read, and of those that write.
    readers: AtomicUsize,
    writers: AtomicUsize,
    /// The launches that are under way.
    claim: Claim,
    state: Mutex<State>,
}

struct State {
    /// What ends the memory, once its owner has left it.
    end: Option<Box<dyn FnOnce(Accesses) -> Result<()> + Send>>,
    /// Whether the memory has ended while graphs still name it.
    is_gone: bool,
    /// How many views of the host there are that only read, and whether there is one that writes.
    views: usize,
    is_viewed_to_write: bool,
}

/// The right of a graph to use memory.
pub(crate) struct Lease {
    leased: Arc<Leased>,
    is_write: bool,
}

/// A view of the host of memory that graphs use: while it exists, no graph that would disturb it can be launched.
#[doc(hidden)]
pub struct View {
    leased: Option<Arc<Leased>>,
    is_write: bool,
}

impl Leased {
    #[inline]
    pub(super) fn new(history: History) -> Self {
        let state = State { end: None, is_gone: false, views: 0, is_viewed_to_write: false };
        let (readers, writers, claim) = Default::default();
        Self { history, readers, writers, claim, state: Mutex::new(state) }
    }

    /// What tells this from others for as long as it exists.
    #[inline]
    pub(crate) fn key(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    #[inline]
    pub(super) fn history(&self) -> &History {
        &self.history
    }

    /// Begins a use of the owner.
    #[inline]
    pub(super) fn before(&self, stream: &Stream, is_write: bool) -> Result<()> {
        begin_use(self.key())?;
        self.wait(stream, is_write).inspect_err(|_| end_use(self.key()))
    }

    /// Notes a use of the owner, which ends.
    #[inline]
    pub(super) fn after(&self, stream: &Stream, is_write: bool) {
        self.note(stream, is_write);
        end_use(self.key());
    }

    #[inline]
    fn wait(&self, stream: &Stream, is_write: bool) -> Result<()> {
        self.history.before(&mut self.history.others(), stream, is_write)
    }

    #[inline]
    fn note(&self, stream: &Stream, is_write: bool) {
        self.history.after(&mut self.history.others(), stream, is_write);
    }

    /// Has `end` end the memory when no graph uses it any more.
    #[inline]
    pub(super) fn leave(&self, end: impl FnOnce(Accesses) -> Result<()> + Send + 'static) {
        self.state.lock().end = Some(Box::new(end));
    }

    /// Takes the memory away from the graphs that use it: they cannot be launched any more.
    #[inline]
    pub(super) fn revoke(&self) {
        self.state.lock().is_gone = true;
    }

    /// An argument error of `operation` if a graph that would disturb a view of the host can be launched at any time.
    #[inline]
    pub(super) fn refuse(&self, operation: &'static str, is_write: bool) -> Result<()> {
        let (readers, writers) = (self.readers.load(Ordering::Acquire), self.writers.load(Ordering::Acquire));
        if writers == 0 && (readers == 0 || !is_write) {
            return Ok(());
        }
        let what = if writers > 0 { "writes" } else { "reads" };
        let reason = format!("a graph {what} the memory and can be launched at any time: a view keeps it from that");
        Err(Error::argument(operation, reason))
    }

    /// Notes a view of the host, which has yet to wait for what the device does.
    #[inline]
    pub(super) fn view(self: &Arc<Self>, operation: &'static str, is_write: bool) -> Result<View> {
        begin_use(self.key())?;
        let mut state = self.state.lock();
        let is_free = if is_write { state.views == 0 && !state.is_viewed_to_write } else { !state.is_viewed_to_write };
        if is_free {
            state.views += usize::from(!is_write);
            state.is_viewed_to_write |= is_write;
        }
        drop(state);
        end_use(self.key());
        match is_free {
            true => Ok(View { leased: Some(Arc::clone(self)), is_write }),
            false => Err(Error::argument(operation, "another view of the memory exists")),
        }
    }

    /// The history alone, when nobody else has it.
    #[inline]
    pub(super) fn into_history(mut self) -> History {
        self.take_history()
    }

    #[inline]
    fn take_history(&mut self) -> History {
        let empty = History::allocated(self.history.writer());
        std::mem::replace(&mut self.history, empty)
    }
}

impl Lease {
    #[inline]
    pub(super) fn new(leased: Arc<Leased>, is_write: bool) -> Self {
        leased.count(is_write).fetch_add(1, Ordering::AcqRel);
        Self { leased, is_write }
    }

    #[inline]
    pub(crate) fn key(&self) -> usize {
        self.leased.key()
    }

    #[inline]
    pub(crate) fn is_write(&self) -> bool {
        self.is_write
    }

    /// The lease is one to write from now on.
    #[inline]
    pub(crate) fn write_as_well(&mut self) {
        if !self.is_write {
            self.leased.writers.fetch_add(1, Ordering::AcqRel);
            self.leased.readers.fetch_sub(1, Ordering::AcqRel);
            self.is_write = true;
        }
    }

    /// What launches of the graph claim.
    #[inline]
    pub(crate) fn claim(&self) -> &Claim {
        &self.leased.claim
    }

    /// Has `stream` wait for what the graph's use must wait for. The caller has claimed it.
    #[inline]
    pub(crate) fn before(&self, stream: &Stream) -> Result<()> {
        let state = self.leased.state.lock();
        let reason = if state.is_gone {
            "memory that the graph uses has ended with its buffer: its resource was borrowed, and could not outlive it"
        } else if state.is_viewed_to_write || (self.is_write && state.views > 0) {
            "the host has a view of memory that the graph uses"
        } else {
            drop(state);
            return self.leased.wait(stream, self.is_write);
        };
        Err(Error::argument("GraphExec::launch", reason))
    }

    /// Notes the graph's use. The caller has claimed it.
    #[inline]
    pub(crate) fn after(&self, stream: &Stream) {
        self.leased.note(stream, self.is_write);
    }
}

impl Leased {
    #[inline]
    fn count(&self, is_write: bool) -> &AtomicUsize {
        if is_write { &self.writers } else { &self.readers }
    }
}

impl View {
    /// The view of memory that no graph uses.
    #[inline]
    pub(super) fn of_owner(is_write: bool) -> Self {
        Self { leased: None, is_write }
    }
}

impl Clone for Lease {
    #[inline]
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.leased), self.is_write)
    }
}

impl fmt::Debug for Leased {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Leased({:?})", self.history)
    }
}

impl fmt::Debug for View {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.is_write { "View(to write)" } else { "View(to read)" })
    }
}

impl Drop for Lease {
    #[inline]
    fn drop(&mut self) {
        self.leased.count(self.is_write).fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for View {
    #[inline]
    fn drop(&mut self) {
        let Some(leased) = &self.leased else { return };
        let mut state = leased.state.lock();
        match self.is_write {
            true => state.is_viewed_to_write = false,
            false => state.views -= 1,
        }
    }
}

impl Drop for Leased {
    #[inline]
    fn drop(&mut self) {
        if let Some(end) = self.state.get_mut().end.take() {
            let accesses = Accesses::with(self.take_history());
            release(|| end(accesses));
        }
    }
}

/// What is said of memory that a graph cannot keep.
#[cold]
#[inline]
pub(super) fn not_leasable(stream: &Stream) -> Error {
    let reason = format!("{stream:?} is being captured, and this kind of memory cannot be kept by a graph");
    Error::argument(OPERATION, reason)
}
