//! Memory that graphs use in addition to its owner.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

use parking_lot::Mutex;

use super::history::{AccessList, History};
use super::lease_lock::{Claimable, LeaseLock};
use super::sync_point::{OPERATION, StreamPoint};
use super::thread_state::{check_not_ordering, is_nested};
use crate::base::release::release;
use crate::{Error, Result, Stream};

/// Memory shared by its owner and the graphs that lease it.
///
/// Created when a capture first uses the memory; dropped with the owner or the last of the graphs,
/// whichever is later.
pub(crate) struct Leased {
    lock: LeaseLock<History>,
    /// `true` if the memory was freed while graphs lease it. Set under `lock`.
    is_revoked: AtomicBool,
    /// The number of host views that read, or [`VIEWED_TO_WRITE`]. Views begin under `lock`, and
    /// end without it for the same reason as `end`.
    views: AtomicIsize,
    /// Frees the memory; set once its owner has left it to the graphs. Outside `lock`, because a
    /// call observer whose thread holds that may drop the owner.
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

/// The host has a view to write.
const VIEWED_TO_WRITE: isize = -1;

/// The operation named in errors of a launch.
pub(super) const LAUNCH: &str = "GraphExec::launch";

impl Leased {
    pub(super) fn new(history: History, others: AccessList) -> Self {
        let owner_registrations = Arc::clone(history.writer().sync_points().registrations());
        Self {
            lock: LeaseLock::new(history, others, owner_registrations),
            is_revoked: AtomicBool::new(false),
            views: AtomicIsize::new(0),
            end: Mutex::new(None),
        }
    }

    /// Returns a key that is unique among all leased memory for as long as this exists.
    #[inline]
    pub(crate) fn key(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Returns `true` if an access on `stream` needs no lock. `begin` registers its operation
    /// there.
    #[inline]
    pub(super) fn begin_on_owner_stream(
        &self,
        stream: &Stream,
        is_write: bool,
        begin: impl FnOnce() -> bool,
    ) -> bool {
        self.is_owner_stream(stream) && self.lock.begin_on_owner_stream(is_write, begin)
    }

    #[inline]
    pub(super) fn is_owner_stream(&self, stream: &Stream) -> bool {
        self.lock
            .is_owner_stream(stream.sync_points().registrations())
    }

    /// Begins an access of the owner. It ends with [`Leased::end`] or [`Leased::cancel`].
    pub(super) fn begin(&self, stream: &Stream, is_write: bool) -> Result<()> {
        check_not_ordering(OPERATION)?;
        self.lock.begin(is_write, is_nested(), |history, others| {
            history.before(others, stream, is_write)
        })
    }

    /// Records an access that was begun without the lock: its operation is registered, or the
    /// memory was leased later.
    pub(super) fn record(&self, stream: &Stream, is_write: bool) {
        self.lock
            .peek(|history, others| history.record(others, stream, is_write));
    }

    /// Records an access on `stream` if that is the owner stream, and returns `true` then. The
    /// access takes no lock.
    #[inline]
    pub(super) fn record_on_owner_stream(&self, stream: &Stream, is_write: bool) -> bool {
        let is_owner_stream = self.is_owner_stream(stream);
        if is_owner_stream {
            self.lock.log.record_on_owner(stream, is_write);
        }
        is_owner_stream
    }

    /// Records an access of the owner and ends it.
    pub(super) fn end(&self, stream: &Stream, is_write: bool) {
        self.lock.end(is_write, |history, others| {
            history.record(others, stream, is_write);
        });
    }

    /// Ends an access of the owner that was not enqueued.
    pub(super) fn cancel(&self, is_write: bool) {
        self.lock.end(is_write, |_, _| {});
    }

    /// Returns the streams of all accesses, or of writes.
    pub(super) fn streams(&self, only_writes: bool) -> Vec<Stream> {
        // Only launches that write conflict with a read.
        self.lock
            .with(!only_writes, is_nested(), |history, others| {
                history.streams(others, only_writes)
            })
    }

    /// Creates a history of the same memory for the work of a capture, starting with a write at
    /// `root`.
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
        self.lock.with(true, is_nested(), |_, _| {
            self.is_revoked.store(true, Ordering::Relaxed);
        });
    }

    /// Begins a host view, which has yet to wait for the device.
    pub(super) fn view(
        self: &Arc<Self>,
        operation: &'static str,
        is_write: bool,
    ) -> Result<HostAccess> {
        check_not_ordering(operation)?;
        let has_begun = self
            .lock
            .with(is_write, is_nested(), |_, _| self.begin_view(is_write));
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

    /// Begins a host view under the lock. Returns `false` if another one conflicts.
    fn begin_view(&self, is_write: bool) -> bool {
        let is_free = !self.is_viewed(is_write);
        // Views only end in the meantime, because all of them begin under the lock.
        if is_free && is_write {
            self.views.store(VIEWED_TO_WRITE, Ordering::Relaxed);
        } else if is_free {
            self.views.fetch_add(1, Ordering::Relaxed);
        }
        is_free
    }

    /// Ends a host view. A thread that observes the end also observes the host's reads and writes.
    pub(super) fn end_view(&self, is_write: bool) {
        if is_write {
            self.views.store(0, Ordering::Release);
        } else {
            self.views.fetch_sub(1, Ordering::Release);
        }
    }

    /// Returns `true` if a host view conflicts with a read, or a write.
    fn is_viewed(&self, is_write: bool) -> bool {
        let views = self.views.load(Ordering::Acquire);
        views == VIEWED_TO_WRITE || is_write && views > 0
    }

    /// Takes the accesses out.
    pub(super) fn take_history(&mut self) -> (History, AccessList) {
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
        let reason = if self.leased.is_revoked.load(Ordering::Relaxed) {
            "memory that the graph uses was freed with its buffer: the buffer's resource was borrowed, and could not outlive it"
        } else if self.leased.is_viewed(self.is_write) {
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
