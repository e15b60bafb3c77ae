//! Hazard tracking for device memory.
//!
//! Safe code may use a buffer on any stream. This module records which streams access an allocation and inserts the
//! waits that correctness requires, and no others. It is also the interface between this crate and crates that own
//! memory: they keep an [`Accesses`] for each allocation and enqueue every operation under an [`Operation`].
//!
//! # Rules
//!
//! 1. A read waits for the last write. A write, or the deallocation, waits for the last write and for *every* read
//!    since.
//! 2. Accesses on one stream are ordered by the stream. They cost no driver call, no lock and no atomic
//!    read-modify-write.
//! 3. Reads on different streams run concurrently.
//! 4. Streams wait for each other on the device. The earlier stream records an event after all work enqueued so far (a
//!    *sync point*), and the later stream waits for that event. The host does not block.
//! 5. Sync points of a stream are counted. An access stores the count that it reads *after* enqueuing its work; a sync
//!    point increments the count *before* it is recorded. A sync point with a higher number than the access therefore
//!    covers it, whichever threads the two run on. Each stream remembers the last sync point of every other stream that
//!    it waited for, and never waits twice.
//! 6. An access is recorded while the memory is borrowed, so every access that must wait for it finds the record. A
//!    write of the whole allocation borrows it exclusively, so the stream of the last such write can be read without a
//!    lock.
//! 7. Separately borrowed parts of one allocation count as accesses to the whole: they wait for each other. Several
//!    threads may enqueue such accesses concurrently, each between the waits and the record of another. A write of a
//!    part therefore removes only the records that its stream is known to have waited for.
//! 8. An event cannot order captured work with work outside the capture: such a wait invalidates the capture. If two
//!    accesses are not in the same capture, the wait is an error before an event is used, unless the earlier access has
//!    completed. The capture status of a stream is queried only if one stream must wait for another.
//! 9. A capture has its own streams. Their accesses are recorded with the capture by the same rules, which give the
//!    graph the edges that streams would have, and the memory is *leased* to the graph. From the first lease on, the
//!    accesses of the owner and of the graph share one history, and the memory and its history live as long as either.
//!    Each launch of the graph is an access to every allocation that it leases.
//! 10. A launch borrows nothing, so rule 6 does not hold for it: each leased allocation has a lock of its own
//!     (`hazard/lease_lock.rs`). While no executable graph holds the memory, operations on the stream that wrote it
//!     last take no lock (`hazard/registrations.rs`). None of this applies to memory that was never leased.
//!
//! Streams are identified by numbers and never by their handles, which drivers reuse.
//!
//! # Contract
//!
//! For an owner of memory:
//!
//! - Every [`Operation`] on the memory calls [`Accesses::before_read`] or [`Accesses::before_write`], enqueues its work, and
//!   calls the matching `after_…` function, all while the memory is borrowed accordingly. Work that was not enqueued is not
//!   recorded: dropping the operation ends its access.
//! - An operation whose driver call may block until the stream has completed earlier work, such as a copy from pageable
//!   memory, is [blocking](Operation::blocking). No operation exists while the host waits, because a launch may wait for
//!   its end.
//! - The memory is freed after [`Accesses::before_write`] on the stream that frees it, or after
//!   [`Accesses::synchronize`]. If graphs lease it ([`Accesses::is_leased`]), the owner either leaves it to them
//!   ([`Accesses::leave`]) or revokes the leases ([`Accesses::revoke`]).
//! - The host accesses the memory while it holds a [`HostAccess`] and after [`Accesses::synchronize_writes`] or
//!   [`Accesses::synchronize`].
//!
//! The functions are safe because they access no memory; an owner that does not call them is responsible for its own
//! `unsafe` code. Locks are held while the driver records and waits for events. A [call observer](crate::observe_calls)
//! or a `tracing` subscriber that re-enters this module on the same thread receives an argument error.

mod capture_gate;
mod claims;
mod history;
mod launch;
mod lease;
mod lease_lock;
mod operation;
mod ordering;
mod registrations;
mod scope;
mod sync;
mod sync_point;
#[cfg(all(test, loom))]
mod tests;

use std::sync::{Arc, OnceLock};

use curium_sys::CUdeviceptr;

pub(crate) use self::capture_gate::Closed;
use self::history::{History, Memory};
pub(crate) use self::launch::LaunchLeases;
pub use self::lease::HostAccess;
pub(crate) use self::lease::Lease;
use self::lease::Leased;
pub(crate) use self::operation::Ordering;
pub(crate) use self::operation::expect_not_ordering;
pub use self::operation::{Operation, is_nested};
pub(crate) use self::scope::{CaptureLog, KeptValue};
pub(crate) use self::scope::{Key, Scope};
pub(crate) use self::sync_point::SyncPoints;
pub(crate) use self::sync_point::wait;
use crate::{Result, Stream};

/// The accesses to one allocation that later accesses may have to wait for.
#[derive(Debug)]
pub struct Accesses {
    /// The accesses, unless they are shared with graphs.
    history: History,
    /// The accesses shared with graphs, once a graph leases the memory.
    lease: OnceLock<Arc<Leased>>,
    /// The stream of the allocation, once the whole memory was written on another stream. Until then the history
    /// contains it.
    origin: Option<Stream>,
    /// `true` if the memory can outlive its owner, so graphs can lease it.
    is_leasable: bool,
}

/// The operation named in errors of waits for other accesses.
const OPERATION: &str = "access to device memory";

impl Accesses {
    /// Creates the record of memory allocated on `stream`. Graphs cannot lease it.
    #[must_use]
    #[inline]
    pub fn allocated(stream: &Stream) -> Self {
        Self::with(History::allocated(stream, Memory::default()))
    }

    /// Creates the record of memory allocated on `stream`, which graphs can lease. The owner leaves leased memory to
    /// them with [`Accesses::leave`].
    #[must_use]
    #[inline]
    pub fn leasable(stream: &Stream) -> Self {
        Self {
            is_leasable: true,
            ..Self::allocated(stream)
        }
    }

    /// Sets the address and the size in bytes, for reports of inserted waits.
    #[must_use]
    #[inline]
    pub fn at(mut self, address: CUdeviceptr, bytes: usize) -> Self {
        self.history.describe(Memory { address, bytes });
        self
    }

    /// Returns the stream on which the memory was allocated.
    #[must_use]
    #[inline]
    pub fn stream(&self) -> &Stream {
        self.origin
            .as_ref()
            .unwrap_or_else(|| self.history.writer())
    }

    /// Makes the stream of the operation wait for the accesses that a read must wait for.
    ///
    /// # Errors
    ///
    /// An argument error if the stream belongs to another driver; any error returned by the driver for an event. The
    /// read must then not take place.
    #[inline]
    pub fn before_read(&self, operation: &mut Operation<'_>) -> Result<()> {
        if self.reads_freely_on(operation.stream()) {
            Ok(())
        } else {
            self.before(operation, false)
        }
    }

    /// Returns `true` if a read on `stream` is known to need no wait.
    #[inline]
    pub fn reads_freely_on(&self, stream: &Stream) -> bool {
        self.history.reads_freely_on(stream)
    }

    /// Returns `true` if a write on `stream` is known to need no wait.
    #[inline]
    pub fn writes_freely_on(&self, stream: &Stream) -> bool {
        self.history.writes_freely_on(stream)
    }

    /// Makes [`Accesses::reads_freely_on`] and [`Accesses::writes_freely_on`] return `false` until an access has been
    /// ordered: the owner has something to do before the next one.
    #[inline]
    pub fn order_next(&self) {
        self.history.order_next();
    }

    /// Records an enqueued read.
    #[inline]
    pub fn after_read(&self, operation: &mut Operation<'_>) {
        if !self.history.has_recorded_read(operation.stream()) {
            self.after(operation, false);
        }
    }

    /// Makes the stream of the operation wait for the accesses that a write, or the deallocation, must wait for.
    ///
    /// # Errors
    ///
    /// As for [`Accesses::before_read`]. The write must then not take place.
    #[inline]
    pub fn before_write(&self, operation: &mut Operation<'_>) -> Result<()> {
        if self.writes_freely_on(operation.stream()) {
            Ok(())
        } else {
            self.before(operation, true)
        }
    }

    /// Makes `stream` wait for every access, before the deallocation.
    ///
    /// # Errors
    ///
    /// As for [`Accesses::before_read`]. The memory must then not be freed.
    #[inline]
    pub fn before_free(&self, stream: &Stream) -> Result<()> {
        if self.writes_freely_on(stream) {
            Ok(())
        } else {
            self.order_free(stream)
        }
    }

    /// Records a write that was enqueued while the whole memory was borrowed exclusively.
    #[inline]
    pub fn after_write(&mut self, operation: &mut Operation<'_>) {
        if self.writes_freely_on(operation.stream()) {
            self.history.record_free_write(operation.stream());
        } else {
            self.after_whole_write(operation);
        }
    }

    /// Records a write of a part that was enqueued while other parts may be borrowed elsewhere.
    #[inline]
    pub fn after_partial_write(&self, operation: &mut Operation<'_>) {
        if !self.history.has_recorded_write(operation.stream()) {
            self.after(operation, true);
        }
    }

    /// Returns the streams of the last writes, which a read waits for.
    #[inline]
    fn writers(&self) -> Result<Vec<Stream>> {
        self.streams(true)
    }

    /// Returns the streams of the last accesses, which a write waits for. It may contain duplicates.
    ///
    /// # Errors
    ///
    /// An argument error in a call observer whose thread is ordering an access.
    #[inline]
    pub fn users(&self) -> Result<Vec<Stream>> {
        self.streams(false)
    }

    /// Waits on the host until every access has completed.
    ///
    /// # Errors
    ///
    /// The error of earlier asynchronous work, after waiting for every stream.
    #[inline]
    pub fn synchronize(&self) -> Result<()> {
        self.users()?
            .iter()
            .map(Stream::drain)
            .fold(Ok(()), Result::and)
    }

    /// Waits on the host until every write has completed.
    ///
    /// # Errors
    ///
    /// As for [`Accesses::synchronize`].
    #[inline]
    pub fn synchronize_writes(&self) -> Result<()> {
        self.writers()?
            .iter()
            .map(Stream::drain)
            .fold(Ok(()), Result::and)
    }

    /// Returns `true` if graphs lease the memory. Once none of them leases it any more, the owner has sole use of it
    /// again.
    #[inline]
    pub fn is_leased(&mut self) -> bool {
        self.lease.get().is_some() && !self.reclaim()
    }

    /// Leaves leased memory to its graphs. When the last of them is dropped, `end` receives the accesses to wait for
    /// and frees the memory.
    #[inline]
    pub fn leave(&mut self, end: impl FnOnce(Self) -> Result<()> + Send + 'static) {
        if let Some(lease) = self.lease.get() {
            lease.leave(end);
        }
    }

    /// Revokes the leases of all graphs: launching them is an error from now on.
    ///
    /// # Errors
    ///
    /// An argument error in a call observer whose thread is ordering an access or launching a graph.
    #[inline]
    pub fn revoke(&mut self) -> Result<()> {
        if let Some(lease) = self.lease.get() {
            expect_not_ordering(OPERATION)?;
            lease.revoke();
        }
        Ok(())
    }

    /// Prevents the launch of graphs that conflict with a read, or a write, by the host while the result exists.
    ///
    /// # Errors
    ///
    /// An argument error if another view conflicts.
    #[inline]
    pub fn view(&self, operation: &'static str, is_write: bool) -> Result<HostAccess> {
        self.lease.get().map_or_else(
            || Ok(HostAccess::unleased(is_write)),
            |lease| lease.view(operation, is_write),
        )
    }

    /// Ends a view that was [left open](HostAccess::leave_open).
    #[inline]
    pub fn end_view_to_write(&self) {
        if let Some(lease) = self.lease.get() {
            lease.end_view(true);
        }
    }

    #[cold]
    #[inline(never)]
    fn order_free(&self, stream: &Stream) -> Result<()> {
        self.before(&mut stream.enqueue_release(OPERATION)?, true)
    }

    #[inline]
    fn with(history: History) -> Self {
        Self {
            history,
            lease: OnceLock::new(),
            origin: None,
            is_leasable: false,
        }
    }

    /// Returns the stream on which the memory was allocated, or last written as a whole.
    #[inline]
    fn owner_stream(&self) -> &Stream {
        self.history.writer()
    }

    #[inline]
    fn is_leasable(&self) -> bool {
        self.is_leasable
    }

    #[inline]
    fn leased(&self) -> Option<&Arc<Leased>> {
        self.lease.get()
    }

    /// Returns the history shared with graphs, and starts sharing it if necessary.
    #[inline]
    fn lease(&self) -> &Arc<Leased> {
        let mut others = self.history.others();
        // Under the lock: a thread that finds no lease there records its access before the history is shared.
        self.lease
            .get_or_init(|| Arc::new(Leased::new(self.history.leave(&mut others))))
    }

    #[inline]
    fn streams(&self, only_writes: bool) -> Result<Vec<Stream>> {
        expect_not_ordering(OPERATION)?;
        Ok(self.lease.get().map_or_else(
            || self.history.streams(only_writes),
            |lease| lease.streams(only_writes),
        ))
    }
}
