//! Memory that graphs use in addition to its owner.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use super::history::{AccessList, History};
use super::lease_lock::{Claimable, LeaseLock};
use super::sync_point::{OPERATION, StreamPoint};
use super::thread_state::{expect_not_ordering, is_nested};
use crate::base::release::release;
use crate::{Error, Result, Stream};

/// Memory shared by its owner and the graphs that lease it.
///
/// Created when a capture first uses the memory; dropped with the owner or the last of the graphs, whichever is later.
pub(crate) struct Leased {
    lock: LeaseLock<History>,
    /// Frees the memory; set once its owner has left it to the graphs. Outside `lock`, because a call observer whose
    /// thread holds that may drop the owner.
    end: Mutex<Option<End>>,
}

type End = Box<dyn FnOnce(History, AccessList) -> Result<()> + Send>;

/// The right of a graph to use memory.
#[derive(Clone)]
pub(crate) struct Lease {
    leased: Arc<Leased>,
    is_write: bool,
}

/// A host view of memory. While it exists, launching a graph that conflicts with it is an error.
pub struct HostAccess {
    leased: Option<Arc<Leased>>,
    is_write: bool,
}

/// The operation named in errors of a launch.
pub(super) const LAUNCH: &str = "GraphExec::launch";

impl Leased {
    pub(super) fn new(history: History, others: AccessList) -> Self {
        Self {
            lock: LeaseLock::new(history, others),
            end: Mutex::new(None),
        }
    }

    /// Returns a key that is unique among all leased memory for as long as this exists.
    #[inline]
    pub(crate) fn key(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    #[inline]
    fn is_owner_stream(&self, stream: &Stream) -> bool {
        self.lock.log.writer() == stream
    }

    /// Begins an access of the owner, which needs no lock on the owner stream unless it has to wait or a graph is in its
    /// way. It ends with [`Leased::end`].
    #[inline]
    pub(super) fn begin(&self, stream: &Stream, is_write: bool) -> Result<()> {
        expect_not_ordering(OPERATION)?;
        if self.is_owner_stream(stream) && self.lock.state.begin_free(is_write) {
            Ok(())
        } else {
            self.begin_locked(stream, is_write)
        }
    }

    #[cold]
    #[inline(never)]
    fn begin_locked(&self, stream: &Stream, is_write: bool) -> Result<()> {
        if self.lock.log.writer().scope().is_some() {
            return Err(in_another_graph());
        }
        let has_begun = self.lock.with(is_write, is_nested(), |history, others| {
            history
                .before(others, stream, is_write)
                .map(|()| self.lock.state.begin_locked(is_write))
        })?;
        if has_begun {
            return Ok(());
        }
        let reason = "too many operations on the memory are in progress, or were forgotten";
        Err(Error::argument(OPERATION, reason))
    }

    /// Records an access of the owner.
    #[inline]
    pub(super) fn record(&self, stream: &Stream, is_write: bool) {
        if self.is_owner_stream(stream) {
            self.lock.log.record_on_owner(is_write);
        } else {
            self.lock
                .peek(|history, others| history.record(others, stream, is_write));
        }
    }

    /// Ends an access of the owner, which has been recorded if it was enqueued.
    #[inline]
    pub(super) fn end(&self, is_write: bool) {
        self.lock.end(is_write);
    }

    /// Returns the streams of all accesses, or of writes.
    pub(super) fn streams(&self, only_writes: bool) -> Vec<Stream> {
        // Only launches that write conflict with a read.
        self.lock
            .with(!only_writes, is_nested(), |history, others| {
                history.streams(others, only_writes)
            })
    }

    /// Creates a history of the same memory for the work of a capture, starting with a write at `root`.
    pub(super) fn captured_since(&self, root: &StreamPoint) -> History {
        self.lock.log.captured_since(root)
    }

    /// Sets the function that frees the memory when no graph leases it any more.
    pub(super) fn leave(
        &self,
        end: impl FnOnce(History, AccessList) -> Result<()> + Send + 'static,
    ) {
        *self.end.lock() = Some(Box::new(end));
    }

    /// Revokes the leases of all graphs: they cannot be launched any more.
    pub(super) fn revoke(&self) {
        self.lock
            .with(true, is_nested(), |_, _| self.lock.state.revoke());
    }

    /// Begins a host view, which has yet to wait for the device.
    pub(super) fn view(
        self: &Arc<Self>,
        operation: &'static str,
        is_write: bool,
    ) -> Result<HostAccess> {
        expect_not_ordering(operation)?;
        let has_begun = self.lock.with(is_write, is_nested(), |_, _| {
            self.lock.state.begin_view(is_write)
        });
        if has_begun {
            Ok(HostAccess {
                leased: Some(Arc::clone(self)),
                is_write,
            })
        } else {
            let reason = "another view of the memory exists";
            Err(Error::argument(operation, reason))
        }
    }

    /// Ends a host view.
    pub(super) fn end_view(&self, is_write: bool) {
        self.lock.state.end_view(is_write);
    }

    /// Returns the accesses, if this is the only owner.
    pub(super) fn into_history(mut self) -> (History, AccessList) {
        self.take_history()
    }

    fn take_history(&mut self) -> (History, AccessList) {
        let (history, others) = self.lock.get_mut();
        (history.take(), std::mem::take(others))
    }
}

impl Lease {
    pub(super) fn new(leased: Arc<Leased>, is_write: bool) -> Self {
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

    /// Makes this a writing lease.
    pub(crate) fn write_as_well(&mut self) {
        self.is_write = true;
    }

    /// Makes `stream` wait for the accesses that conflict with a launch.
    pub(super) fn order_launch(
        &self,
        history: &History,
        others: &mut AccessList,
        stream: &Stream,
    ) -> Result<()> {
        let state = self.leased.lock.state.load();
        let reason = if state.is_revoked() {
            "memory that the graph uses was freed with its buffer: the buffer's resource was borrowed, and could not outlive it"
        } else if state.is_viewed(self.is_write) {
            "the host has a view of memory that the graph uses"
        } else {
            return history.before(others, stream, self.is_write);
        };
        Err(Error::argument(LAUNCH, reason))
    }
}

impl Claimable<History> for Lease {
    #[inline]
    fn lock(&self) -> &LeaseLock<History> {
        &self.leased.lock
    }

    #[inline]
    fn is_write(&self) -> bool {
        self.is_write
    }
}

impl HostAccess {
    /// Creates a view of memory that no graph leases.
    #[inline]
    pub(super) fn unleased(is_write: bool) -> Self {
        Self {
            leased: None,
            is_write,
        }
    }

    /// Leaves the view of a writer open until
    /// [`Accesses::end_view_to_write`](super::Accesses::end_view_to_write).
    #[inline]
    pub fn leave_open(mut self) {
        self.leased = None;
    }
}

impl fmt::Debug for Leased {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Leased({:#x})", self.key())
    }
}

impl Drop for HostAccess {
    #[inline]
    fn drop(&mut self) {
        if let Some(leased) = &self.leased {
            leased.end_view(self.is_write);
        }
    }
}

impl Drop for Leased {
    fn drop(&mut self) {
        if let Some(end) = self.end.get_mut().take() {
            let (history, others) = self.take_history();
            release(|| end(history, others));
        }
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
