//! Hazard tracking for device memory.
//!
//! Safe code may use a buffer on any stream. This module records which streams access an allocation and inserts the waits that
//! correctness requires, and no others. It is also the seam between this crate and those that own memory: they keep an [`Accesses`] for
//! each allocation and enqueue every operation under an [`AccessGuard`].
//!
//! # Rules
//!
//! 1. A read waits for the last write. A write, or the deallocation, waits for the last write and for *every* read since.
//! 2. Accesses on one stream are ordered by the stream. They cost no driver call, no lock and no atomic read-modify-write.
//! 3. Reads on different streams run concurrently.
//! 4. Streams wait for each other on the device. The earlier stream records an event after all work enqueued so far (a *sync point*), and
//!    the later stream waits for that event. The host does not block.
//! 5. Sync points of a stream are counted. An access stores the count that it reads *after* enqueuing its work; a sync point increments
//!    the count *before* it is recorded. A sync point with a higher number than the access therefore covers it, whichever threads the two
//!    run on. Each stream remembers the last sync point of every other stream that it waited for, and never waits twice.
//! 6. An access is recorded while the memory is borrowed, so that every access that has to wait for it finds it. A write of the whole
//!    borrows it exclusively, so that the stream of the last such write can be read without a lock.
//! 7. Parts of one allocation that are borrowed apart are accesses to the whole: they wait for each other. Several threads may enqueue
//!    them at once, each between the waits of another and its record; so a write of a part forgets only what its stream is known to have
//!    waited for.
//! 8. An event cannot order captured work with work that runs: recorded inside a capture and waited for outside, or the other way round, it
//!    invalidates the capture. Where two accesses are not in the same capture, the wait is an error before an event is touched, unless
//!    the earlier access has completed. Whether streams are being captured is queried only where one must wait for another.
//! 9. A capture has streams of its own. Their accesses are recorded with the capture, by the same rules, so that the graph gets the edges
//!    that streams would have; and the memory is *leased* to the graph. From the first lease on, the owner's accesses and the graph's
//!    share one history, and both the memory and the history live as long as either. Each launch of the graph is an access to every
//!    allocation that it leases.
//! 10. A launch borrows nothing, so rule 6 does not hold for it: each leased allocation has a lock of its own (`hazard/lease_lock.rs`).
//!     While no executable holds the memory, operations on the stream that wrote it last take no lock (`hazard/operations.rs`). Memory that
//!     was never leased pays for none of this.
//!
//! Streams are identified by numbers and never by their handles, which drivers reuse.
//!
//! # Contract
//!
//! For an owner of memory:
//!
//! - Every operation that enqueues work on the memory creates an [`AccessGuard`] for its stream, calls [`Accesses::before_read`] or
//!   [`Accesses::before_write`] with it, enqueues the work, and calls the matching `after_…` function, all while the memory is borrowed
//!   accordingly. Work that was not enqueued is not recorded: dropping the guard ends its access.
//! - An operation whose driver call may block until the stream has completed earlier work, such as a copy from pageable memory, creates
//!   its guard with [`AccessGuard::blocking`]. No guard is held while the host waits: a launch may wait for it.
//! - The memory is freed after [`Accesses::before_write`] on the stream that frees it, or after [`Accesses::synchronize`]. If graphs lease
//!   it ([`Accesses::is_leased`]), it is left to them ([`Accesses::leave`]) or taken away from them ([`Accesses::revoke`]) instead.
//! - The host accesses the memory while it holds a [`HostAccess`] and after [`Accesses::synchronize_writes`] or
//!   [`Accesses::synchronize`].
//!
//! The functions are safe since they touch no memory: what an owner does without them is its own `unsafe` code. Locks are held while the
//! driver records and waits for events; a [call observer](crate::observe_calls) or a `tracing` subscriber that gets here meanwhile, on the
//! same thread, receives an argument error.

mod capture_gate;
mod claims;
mod guard;
mod history;
#[cfg_attr(not(feature = "graphs"), expect(dead_code, reason = "captures make leases"))]
mod launch;
mod lease;
mod lease_lock;
mod operations;
mod ordering;
#[cfg_attr(not(feature = "graphs"), expect(dead_code, reason = "captures open scopes"))]
mod scope;
mod sync;
mod sync_point;
#[cfg(all(test, loom))]
mod tests;

use std::sync::{Arc, OnceLock};

use curium_sys::CUdeviceptr;

#[cfg(feature = "graphs")]
pub(crate) use self::guard::Ordering;
pub(crate) use self::guard::expect_not_ordering;
pub use self::guard::{AccessGuard, is_nested};
use self::history::{History, Memory};
#[cfg(feature = "graphs")]
pub(crate) use self::launch::LaunchLeases;
pub use self::lease::HostAccess;
#[cfg(feature = "graphs")]
pub(crate) use self::lease::Lease;
use self::lease::Leased;
#[cfg(feature = "graphs")]
pub(crate) use self::scope::CaptureLog;
pub(crate) use self::scope::{Key, Scope};
pub(crate) use self::sync_point::SyncPoints;
#[cfg(feature = "graphs")]
pub(crate) use self::sync_point::wait;
use crate::base::capture_guard::PASS_THE_SCOPE;
use crate::{Result, Stream};

/// The accesses to one allocation that later ones may have to wait for.
#[derive(Debug)]
pub struct Accesses {
    /// The accesses, until they are shared with graphs.
    history: History,
    /// The accesses since then.
    lease: OnceLock<Arc<Leased>>,
    /// The stream that the memory was allocated on, once it was written as a whole on another: until then the history names it.
    origin: Option<Stream>,
    /// `true` if the memory can outlive its owner, so that graphs can lease it.
    is_leasable: bool,
}

/// The name of the operation in errors of waits for other accesses.
const OPERATION: &str = "access to device memory";

impl Accesses {
    /// Memory that was allocated on `stream`. No graph can use it: it ends with its owner.
    #[must_use]
    #[inline]
    pub fn allocated(stream: &Stream) -> Self {
        Self::with(History::allocated(stream, Memory::default()))
    }

    /// Memory that was allocated on `stream`, and that its owner leaves to graphs with [`Accesses::leave`] if they lease it.
    #[must_use]
    #[inline]
    pub fn leasable(stream: &Stream) -> Self {
        Self { is_leasable: true, ..Self::allocated(stream) }
    }

    /// The same for `bytes` bytes at `address`, which reports of inserted waits name.
    #[must_use]
    #[inline]
    pub fn at(mut self, address: CUdeviceptr, bytes: usize) -> Self {
        self.history.describe(Memory { address, bytes });
        self
    }

    /// The stream that the memory was allocated on.
    #[must_use]
    #[inline]
    pub fn stream(&self) -> &Stream {
        self.origin.as_ref().unwrap_or_else(|| self.history.writer())
    }

    /// Orders the guard's stream after the accesses that a read must wait for.
    ///
    /// # Errors
    ///
    /// An argument error if the stream belongs to another driver; whatever the driver returns for an event. The read must not take place
    /// then.
    #[inline]
    pub fn before_read(&self, guard: &mut AccessGuard<'_>) -> Result<()> {
        guard.stream().expect_captured(OPERATION, PASS_THE_SCOPE)?;
        if self.reads_freely_on(guard.stream()) { Ok(()) } else { self.before(guard, false) }
    }

    /// Returns `true` if a read on `stream` is known at once to wait for nothing.
    #[inline]
    pub fn reads_freely_on(&self, stream: &Stream) -> bool {
        self.history.reads_freely_on(stream)
    }

    /// Returns `true` if a write on `stream` is known at once to wait for nothing.
    #[inline]
    pub fn writes_freely_on(&self, stream: &Stream) -> bool {
        self.history.writes_freely_on(stream)
    }

    /// Makes [`Accesses::reads_freely_on`] and [`Accesses::writes_freely_on`] return `false` until an access has been ordered: the owner has
    /// something to do before the next one.
    #[inline]
    pub fn order_next(&self) {
        self.history.order_next();
    }

    /// Records a read that was enqueued.
    #[inline]
    pub fn after_read(&self, guard: &mut AccessGuard<'_>) {
        if !self.history.has_recorded_read(guard.stream()) {
            self.after(guard, false);
        }
    }

    /// Orders the guard's stream after the accesses that a write, or the deallocation, must wait for.
    ///
    /// # Errors
    ///
    /// As for [`Accesses::before_read`]. The write must not take place then.
    #[inline]
    pub fn before_write(&self, guard: &mut AccessGuard<'_>) -> Result<()> {
        guard.stream().expect_captured(OPERATION, PASS_THE_SCOPE)?;
        if self.writes_freely_on(guard.stream()) { Ok(()) } else { self.before(guard, true) }
    }

    /// Orders `stream` after every access, for the deallocation.
    ///
    /// # Errors
    ///
    /// As for [`Accesses::before_read`]. The memory must not be freed then.
    #[inline]
    pub fn before_free(&self, stream: &Stream) -> Result<()> {
        if self.writes_freely_on(stream) { Ok(()) } else { self.order_free(stream) }
    }

    /// Records a write that was enqueued while the whole memory was borrowed exclusively.
    #[inline]
    pub fn after_write(&mut self, guard: &mut AccessGuard<'_>) {
        if self.writes_freely_on(guard.stream()) {
            self.history.record_free_write(guard.stream());
        } else {
            self.after_whole_write(guard);
        }
    }

    /// Records a write of a part that was enqueued while other parts were borrowed by others.
    #[inline]
    pub fn after_partial_write(&self, guard: &mut AccessGuard<'_>) {
        if !self.history.has_recorded_write(guard.stream()) {
            self.after(guard, true);
        }
    }

    /// The streams of the last writes: a read waits for these.
    #[inline]
    fn writers(&self) -> Result<Vec<Stream>> {
        self.streams(true)
    }

    /// The streams of the last accesses: a write waits for these. One may come twice.
    ///
    /// # Errors
    ///
    /// An argument error if a call observer calls this while its thread orders an access.
    #[inline]
    pub fn users(&self) -> Result<Vec<Stream>> {
        self.streams(false)
    }

    /// Waits on the host until every access has completed.
    ///
    /// # Errors
    ///
    /// The error of any work that failed before; every stream is waited for all the same.
    #[inline]
    pub fn synchronize(&self) -> Result<()> {
        self.users()?.iter().map(Stream::drain).fold(Ok(()), Result::and)
    }

    /// Waits on the host until every write has completed.
    ///
    /// # Errors
    ///
    /// As for [`Accesses::synchronize`].
    #[inline]
    pub fn synchronize_writes(&self) -> Result<()> {
        self.writers()?.iter().map(Stream::drain).fold(Ok(()), Result::and)
    }

    /// Returns `true` if graphs lease the memory. Memory that none of them leases any more is the owner's alone again.
    #[inline]
    pub fn is_leased(&mut self) -> bool {
        self.lease.get().is_some() && !self.reclaim()
    }

    /// Leaves leased memory to its graphs. When the last of them is gone, `end` frees it and gets what it must wait for.
    #[inline]
    pub fn leave(&mut self, end: impl FnOnce(Self) -> Result<()> + Send + 'static) {
        if let Some(lease) = self.lease.get() {
            lease.leave(end);
        }
    }

    /// Takes leased memory away from its graphs: launching them is an error from now on.
    ///
    /// # Errors
    ///
    /// An argument error if a call observer calls this while its thread orders an access or launches a graph.
    #[inline]
    pub fn revoke(&mut self) -> Result<()> {
        if let Some(lease) = self.lease.get() {
            expect_not_ordering(OPERATION)?;
            lease.revoke();
        }
        Ok(())
    }

    /// Keeps graphs that conflict with a read, or a write, of the host from being launched while the result exists.
    ///
    /// # Errors
    ///
    /// An argument error if another view conflicts.
    #[inline]
    pub fn view(&self, operation: &'static str, is_write: bool) -> Result<HostAccess> {
        self.lease.get().map_or_else(|| Ok(HostAccess::of_owner(is_write)), |lease| lease.view(operation, is_write))
    }

    #[cold]
    #[inline(never)]
    fn order_free(&self, stream: &Stream) -> Result<()> {
        self.before(&mut AccessGuard::new(stream)?, true)
    }

    #[inline]
    fn with(history: History) -> Self {
        Self { history, lease: OnceLock::new(), origin: None, is_leasable: false }
    }

    /// The stream that the memory was allocated on, or last written as a whole.
    #[inline]
    fn home(&self) -> &Stream {
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

    /// The history that is shared with graphs, from now on if it was not yet.
    #[inline]
    fn lease(&self) -> &Arc<Leased> {
        let mut others = self.history.others();
        // Under the lock: a thread that finds no lease there records its access before the history is shared.
        self.lease.get_or_init(|| Arc::new(Leased::new(self.history.leave(&mut others))))
    }

    #[inline]
    fn streams(&self, only_writes: bool) -> Result<Vec<Stream>> {
        expect_not_ordering(OPERATION)?;
        Ok(self.lease.get().map_or_else(|| self.history.streams(only_writes), |lease| lease.streams(only_writes)))
    }
}
