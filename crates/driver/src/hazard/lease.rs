//! Memory that graphs use in addition to its owner.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

use parking_lot::Mutex;

use super::history::{AccessList, History};
use super::lease_lock::{Claim, Claimable, LeaseLock};
use super::sync_point::OPERATION;
use super::thread_state::{check_not_ordering, is_nested};
use crate::base::release::release;
use crate::{Error, Result, Stream};

/// Memory shared by its owner and the graphs that lease it.
///
/// Created when a capture first uses the memory; dropped with the owner or the last of the graphs,
/// whichever is later.
pub(crate) struct Leased {
    pub(super) lock: LeaseLock<History>,
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
    pub(super) leased: Arc<Leased>,
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

    /// Returns `true` if `stream` is the owner stream.
    #[inline]
    pub(super) fn is_owner_stream(&self, stream: &Stream) -> bool {
        self.lock
            .is_owner_stream(stream.sync_points().registrations())
    }

    /// Returns the streams of all accesses, or of writes.
    pub(super) fn streams(&self, only_writes: bool) -> Vec<Stream> {
        // Only launches that write conflict with a read.
        let mut guard = self.lock.lock_recalled(!only_writes, is_nested());
        self.lock.log.streams(guard.locked(), only_writes)
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
        let _guard = self.lock.lock_recalled(true, is_nested());
        self.is_revoked.store(true, Ordering::Relaxed);
    }

    /// Begins a host view, which has yet to wait for the device.
    pub(super) fn begin_view(&self, operation: &'static str, is_write: bool) -> Result<()> {
        check_not_ordering(operation)?;
        let _guard = self.lock.lock_recalled(is_write, is_nested());
        if self.is_viewed(is_write) {
            let reason = "another view of the memory exists";
            return Err(Error::argument(operation, reason));
        }
        // Views only end in the meantime, because all of them begin under the lock.
        if is_write {
            self.views.store(VIEWED_TO_WRITE, Ordering::Relaxed);
        } else {
            self.views.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
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
        (history.leave(), std::mem::take(others))
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
    fn claim(&self) -> Claim<'_, History> {
        self.leased.lock.claim(self.is_write)
    }
}

impl HostAccess {
    /// Creates the view that has begun of `leased`, if graphs lease the memory.
    #[inline]
    pub(super) fn new(leased: Option<Arc<Leased>>, is_write: bool) -> Self {
        Self { leased, is_write }
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
