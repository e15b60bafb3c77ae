//! Memory that graphs use in addition to its owner.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::Accesses;
use super::history::History;
use super::launch::LatestLaunch;
use super::lease_lock::{FreeAccesses, LeaseLock, Log};
use super::operation::{expect_not_ordering, is_nested};
use crate::base::release::release;
use crate::{Error, Result, Stream};

/// Memory shared by its owner and the graphs that lease it.
///
/// Created when a capture first uses the memory; dropped with the owner or the last of the graphs, whichever is later.
pub(crate) struct Leased {
    lock: LeaseLock<Allocation>,
    /// The number of leases of graphs that only read, and of graphs that write.
    readers: AtomicUsize,
    writers: AtomicUsize,
    /// Frees the memory; set once its owner has left it to the graphs. Outside `lock`, because a call observer whose
    /// thread holds that may drop the owner.
    end: Mutex<Option<End>>,
    /// The number of read-only host views, and `true` if there is a writing one. They begin under `lock`, and end
    /// without it for the same reason as `end`.
    views: AtomicUsize,
    is_viewed_to_write: AtomicBool,
}

/// The accesses to a leased allocation.
pub(crate) struct Allocation {
    history: History,
    /// `true` if the memory was freed while graphs lease it.
    is_revoked: bool,
}

type End = Box<dyn FnOnce(Accesses) -> Result<()> + Send>;

/// The right of a graph to use memory.
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
pub(super) const OPERATION: &str = "GraphExec::launch";

impl Leased {
    #[inline]
    pub(super) fn new(history: History) -> Self {
        let owner_registrations = Arc::clone(history.writer().sync_points().registrations());
        let allocation = Allocation {
            history,
            is_revoked: false,
        };
        Self {
            lock: LeaseLock::new(allocation, owner_registrations),
            readers: AtomicUsize::new(0),
            writers: AtomicUsize::new(0),
            end: Mutex::new(None),
            views: AtomicUsize::new(0),
            is_viewed_to_write: AtomicBool::new(false),
        }
    }

    /// Returns a key that is unique among all leased memory for as long as this exists.
    #[inline]
    pub(crate) fn key(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Returns `true` if an access on `stream` needs no lock. `begin` registers its operation there.
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

    /// Records an access on the owner stream whose operation is still registered.
    #[inline]
    pub(super) fn record_on_owner_stream(&self, stream: &Stream, is_write: bool) {
        self.lock
            .record_on_owner_stream(is_write, stream.sync_points().count());
    }

    /// Starts an access of the owner. It ends with [`Leased::end`] or [`Leased::cancel`].
    #[inline]
    pub(super) fn begin(&self, stream: &Stream, is_write: bool) -> Result<()> {
        expect_not_ordering(super::OPERATION)?;
        self.lock.begin(is_write, is_nested(), |allocation| {
            allocation.history.order(stream, is_write)
        })
    }

    /// Records an access of the owner and ends it.
    #[inline]
    pub(super) fn end(&self, stream: &Stream, is_write: bool) {
        self.lock.end(is_write, |allocation| {
            allocation.history.record(stream, is_write);
        });
    }

    /// Ends an access of the owner that was not enqueued.
    #[inline]
    pub(super) fn cancel(&self, is_write: bool) {
        self.lock.end(is_write, |_| {});
    }

    /// Records an access that was ordered before the memory was leased.
    #[inline]
    pub(super) fn record(&self, stream: &Stream, is_write: bool) {
        self.lock
            .peek(|allocation| allocation.history.record(stream, is_write));
    }

    /// Returns the streams of all accesses, or of writes.
    #[inline]
    pub(super) fn streams(&self, only_writes: bool) -> Vec<Stream> {
        // Only launches that write conflict with a read.
        self.lock.with(!only_writes, is_nested(), |allocation| {
            allocation.history.streams(only_writes)
        })
    }

    /// Creates a history of the same memory for the work of a capture, starting with a write on `root`.
    #[inline]
    pub(super) fn captured_since(&self, root: &Stream, sync_points: u64) -> History {
        self.lock
            .peek(|allocation| allocation.history.captured_since(root, sync_points))
    }

    /// Sets the function that frees the memory when no graph leases it any more.
    #[inline]
    pub(super) fn leave(&self, end: impl FnOnce(Accesses) -> Result<()> + Send + 'static) {
        *self.end.lock() = Some(Box::new(end));
    }

    /// Revokes the leases of all graphs: they cannot be launched any more.
    #[inline]
    pub(super) fn revoke(&self) {
        self.lock
            .with(true, is_nested(), |allocation| allocation.is_revoked = true);
    }

    /// Starts a host view, which has yet to wait for the device.
    #[inline]
    pub(super) fn view(
        self: &Arc<Self>,
        operation: &'static str,
        is_write: bool,
    ) -> Result<HostAccess> {
        expect_not_ordering(operation)?;
        let is_free = self
            .lock
            .with(is_write, is_nested(), |_| self.begin_view(is_write));
        if is_free {
            Ok(HostAccess {
                leased: Some(Arc::clone(self)),
                is_write,
            })
        } else {
            Err(Error::argument(
                operation,
                "another view of the memory exists",
            ))
        }
    }

    /// Starts a host view under the lock, unless another one conflicts.
    #[inline]
    fn begin_view(&self, is_write: bool) -> bool {
        let is_free = !self.is_viewed(is_write);
        if is_free && is_write {
            self.is_viewed_to_write.store(true, Ordering::Relaxed);
        } else if is_free {
            self.views.fetch_add(1, Ordering::Relaxed);
        }
        is_free
    }

    /// Ends a host view. A thread that observes the end also observes the host's reads and writes.
    #[inline]
    pub(super) fn end_view(&self, is_write: bool) {
        if is_write {
            self.is_viewed_to_write.store(false, Ordering::Release);
        } else {
            self.views.fetch_sub(1, Ordering::Release);
        }
    }

    /// Returns `true` if a host view conflicts with a read, or a write.
    #[inline]
    fn is_viewed(&self, is_write: bool) -> bool {
        self.is_viewed_to_write.load(Ordering::Acquire)
            || (is_write && self.views.load(Ordering::Acquire) > 0)
    }

    /// Makes `stream` wait for the accesses that conflict with a launch.
    #[inline]
    fn order_launch(
        &self,
        allocation: &mut Allocation,
        stream: &Stream,
        is_write: bool,
    ) -> Result<()> {
        let reason = if allocation.is_revoked {
            "memory that the graph uses was freed with its buffer: the buffer's resource was borrowed, and could not outlive it"
        } else if self.is_viewed(is_write) {
            "the host has a view of memory that the graph uses"
        } else {
            return allocation.history.order(stream, is_write);
        };
        Err(Error::argument(OPERATION, reason))
    }

    /// Returns the history, if this is the only owner.
    #[inline]
    pub(super) fn into_history(mut self) -> History {
        self.take_history()
    }

    #[inline]
    fn take_history(&mut self) -> History {
        self.lock.log_mut().history.take()
    }

    #[inline]
    fn count(&self, is_write: bool) -> &AtomicUsize {
        if is_write {
            &self.writers
        } else {
            &self.readers
        }
    }
}

impl Log for Allocation {
    type Launches = LatestLaunch;

    #[inline]
    fn record_launches(&mut self, launches: &LatestLaunch, is_write: bool) {
        self.history
            .record_past(&launches.stream, launches.sync_points, is_write);
    }

    #[inline]
    fn record_on_owner_stream(&mut self, read: u64, written: u64) {
        self.history.record_on_owner_stream(read, written);
    }

    #[inline]
    fn free_on_owner_stream(&mut self) -> FreeAccesses {
        self.history.free_on_owner_stream()
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

    /// Makes this a writing lease.
    #[inline]
    pub(crate) fn write_as_well(&mut self) {
        if !self.is_write {
            self.leased.writers.fetch_add(1, Ordering::AcqRel);
            self.leased.readers.fetch_sub(1, Ordering::AcqRel);
            self.is_write = true;
        }
    }

    #[inline]
    pub(super) fn lock(&self) -> &LeaseLock<Allocation> {
        &self.leased.lock
    }

    /// Makes `stream` wait for the accesses in the locked allocation that conflict with a launch.
    #[inline]
    pub(super) fn order_launch(&self, allocation: &mut Allocation, stream: &Stream) -> Result<()> {
        self.leased.order_launch(allocation, stream, self.is_write)
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

    /// Leaves the view of a writer open until [`Accesses::end_view_to_write`].
    #[inline]
    pub fn leave_open(mut self) {
        self.leased = None;
    }
}

impl Clone for Lease {
    #[inline]
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.leased), self.is_write)
    }
}

impl fmt::Debug for Leased {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Leased({:#x})", self.key())
    }
}

impl fmt::Debug for HostAccess {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.is_write {
            "HostAccess(write)"
        } else {
            "HostAccess(read)"
        })
    }
}

impl Drop for Lease {
    #[inline]
    fn drop(&mut self) {
        self.leased
            .count(self.is_write)
            .fetch_sub(1, Ordering::AcqRel);
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
    #[inline]
    fn drop(&mut self) {
        if let Some(end) = self.end.get_mut().take() {
            let accesses = Accesses::with(self.take_history());
            release(|| end(accesses));
        }
    }
}

/// Returns the error for memory that a graph cannot keep alive.
#[cold]
pub(super) fn not_leasable(stream: &Stream) -> Error {
    let reason =
        format!("{stream:?} is being captured, and this kind of memory cannot be kept by a graph");
    Error::argument(super::OPERATION, reason)
}
