//! The accesses to one allocation, for its owner.

use std::sync::{Arc, OnceLock};

use curium_sys::CUdeviceptr;
use parking_lot::{Mutex, MutexGuard};

use super::history::{AccessList, History};
use super::lease::{HostAccess, Leased, in_another_graph};
use super::operation::{Operation, complete};
use super::scope::Scope;
use super::sync_point::OPERATION;
use super::thread_state::{check_not_ordering, is_ordering};
use crate::stream::hazard_wait::Memory;
use crate::{Error, Result, Stream};

/// The accesses to one allocation that later accesses may have to wait for.
#[derive(Debug)]
pub struct Accesses {
    /// The accesses, unless they are shared with graphs.
    history: History,
    /// The accesses on other streams than the writer's. This is the lock of the history until the
    /// memory is leased.
    others: Mutex<AccessList>,
    /// The accesses shared with graphs, once a graph leases the memory.
    lease: OnceLock<Arc<Leased>>,
    /// The stream of the allocation, once the whole memory was written on another stream. Until
    /// then the history contains it.
    origin: Option<Stream>,
    /// `true` if the memory can outlive its owner, so graphs can lease it.
    is_leasable: bool,
}

impl Accesses {
    /// Creates the record of memory allocated on `stream`. Graphs cannot lease it.
    #[must_use]
    #[inline]
    pub fn allocated(stream: &Stream) -> Self {
        Self::with(
            History::allocated(stream, Memory::default()),
            AccessList::default(),
        )
    }

    /// Creates the record of memory allocated on `stream`, which graphs can lease. The owner leaves
    /// leased memory to them with [`Accesses::leave`].
    #[must_use]
    #[inline]
    pub fn leasable(stream: &Stream) -> Self {
        Self {
            is_leasable: true,
            ..Self::allocated(stream)
        }
    }

    #[inline]
    fn with(history: History, others: AccessList) -> Self {
        Self {
            history,
            others: Mutex::new(others),
            lease: OnceLock::new(),
            origin: None,
            is_leasable: false,
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

    /// Makes [`Accesses::reads_freely_on`] and [`Accesses::writes_freely_on`] return `false` until
    /// an access has been ordered: the owner has something to do before the next one.
    #[inline]
    pub fn order_next(&self) {
        self.history.order_next();
    }

    /// Makes the stream of the operation wait for the accesses that a read must wait for.
    ///
    /// # Errors
    ///
    /// An argument error if the stream belongs to another driver; any error returned by the driver
    /// for an event. The read must then not take place.
    #[inline]
    pub fn before_read(&self, operation: &mut Operation<'_>) -> Result<()> {
        if self.reads_freely_on(operation.stream()) {
            Ok(())
        } else {
            self.order(operation, false)
        }
    }

    /// Makes the stream of the operation wait for the accesses that a write, or the deallocation,
    /// must wait for.
    ///
    /// # Errors
    ///
    /// As for [`Accesses::before_read`]. The write must then not take place.
    #[inline]
    pub fn before_write(&self, operation: &mut Operation<'_>) -> Result<()> {
        if self.writes_freely_on(operation.stream()) {
            Ok(())
        } else {
            self.order(operation, true)
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

    #[cold]
    #[inline(never)]
    fn order_free(&self, stream: &Stream) -> Result<()> {
        self.order(&mut stream.enqueue_release(OPERATION)?, true)
    }

    /// Starts a read, or a write, of leased memory if it is known to need neither a wait nor a
    /// lock, which requires the stream that wrote the memory last. Returns `false` for every other
    /// access. Does not check the capture of the calling thread.
    #[inline]
    pub fn begin_on_owner_stream(&self, operation: &mut Operation<'_>, is_write: bool) -> bool {
        self.lease
            .get()
            .is_some_and(|leased| operation.begin_on_owner_stream(leased, is_write))
    }

    #[cold]
    #[inline(never)]
    fn order(&self, operation: &mut Operation<'_>, is_write: bool) -> Result<()> {
        if self.begin_on_owner_stream(operation, is_write) {
            return Ok(());
        }
        let stream = operation.stream();
        if let Some(scope) = operation.scope() {
            return self.order_captured(scope, stream, is_write);
        }
        if self.history.writer().scope().is_some() {
            return Err(in_another_graph());
        }
        check_not_ordering(OPERATION)?;
        match self.lock_history() {
            Ok(mut others) => self.history.before(&mut others, stream, is_write),
            Err(leased) => operation.begin(leased, is_write),
        }
    }

    /// Locks the history, or returns the lease that shares it with graphs.
    #[inline]
    fn lock_history(&self) -> std::result::Result<MutexGuard<'_, AccessList>, &Arc<Leased>> {
        if let Some(leased) = self.lease.get() {
            return Err(leased);
        }
        let others = self.others.lock();
        // Under the lock: the first lease moves the history.
        self.lease.get().map_or(Ok(others), Err)
    }

    #[cold]
    fn order_captured(&self, scope: &Scope, stream: &Stream, is_write: bool) -> Result<()> {
        let owner = self.history.writer();
        stream.driver().check_same(owner.driver(), OPERATION)?;
        if owner.scope().is_some() && !scope.owns(owner) {
            return Err(in_another_graph());
        }
        if !self.is_leasable {
            return Err(not_leasable(stream));
        }
        scope.before(self.lease(), stream, is_write)
    }

    /// Records an enqueued read.
    #[inline]
    pub fn after_read(&self, operation: &mut Operation<'_>) {
        if !self.history.has_recorded_read(operation.stream()) {
            self.record(operation, false);
        }
    }

    /// Records a write of a part that was enqueued while other parts may be borrowed elsewhere.
    #[inline]
    pub fn after_partial_write(&self, operation: &mut Operation<'_>) {
        if !self.history.has_recorded_write(operation.stream()) {
            self.record(operation, true);
        }
    }

    /// Records a write that was enqueued while the whole memory was borrowed exclusively.
    #[inline]
    pub fn after_write(&mut self, operation: &mut Operation<'_>) {
        if self.writes_freely_on(operation.stream()) {
            self.history.record_free_write(operation.stream());
        } else {
            self.record_whole_write(operation);
        }
    }

    #[cold]
    #[inline(never)]
    fn record_whole_write(&mut self, operation: &mut Operation<'_>) {
        if let Some(leased) = self.lease.get() {
            operation.record(leased, true);
            if Arc::strong_count(leased) == 1 {
                self.reclaim();
            }
        } else {
            self.record_unleased_write(operation.stream());
        }
    }

    #[inline(never)]
    fn record_unleased_write(&mut self, stream: &Stream) {
        let others = self.others.get_mut();
        if let Some(writer) = self.history.record_whole_write(others, stream) {
            self.origin.get_or_insert(writer);
        }
    }

    #[cold]
    #[inline(never)]
    fn record(&self, operation: &mut Operation<'_>, is_write: bool) {
        if let Some(leased) = self.lease.get() {
            operation.record(leased, is_write);
        } else {
            self.record_unleased(operation, is_write);
        }
    }

    #[inline(never)]
    fn record_unleased(&self, operation: &mut Operation<'_>, is_write: bool) {
        if is_ordering() {
            self.record_in_observer(operation.stream(), is_write);
        } else {
            match self.lock_history() {
                Ok(mut others) => self
                    .history
                    .record(&mut others, operation.stream(), is_write),
                // A capture has leased it since the access was ordered.
                Err(leased) => operation.record(leased, is_write),
            }
        }
    }

    /// Records an access that a call observer enqueued while its thread is ordering another one and
    /// holds locks, of which this memory's may be one.
    #[cold]
    fn record_in_observer(&self, stream: &Stream, is_write: bool) {
        match self.others.try_lock() {
            Some(mut others) if self.lease.get().is_none() => {
                self.history.record(&mut others, stream, is_write);
            }
            _ => complete(stream),
        }
    }

    /// Returns the streams of the last accesses, or of the last writes.
    fn streams(&self, only_writes: bool) -> Result<Vec<Stream>> {
        check_not_ordering(OPERATION)?;
        Ok(match self.lock_history() {
            Ok(others) => self.history.streams(&others, only_writes),
            Err(leased) => leased.streams(only_writes),
        })
    }

    /// Waits on the host until every access has completed.
    ///
    /// # Errors
    ///
    /// The error of earlier asynchronous work, after waiting for every stream.
    #[inline]
    pub fn synchronize(&self) -> Result<()> {
        drain(&self.streams(false)?)
    }

    /// Waits on the host until every write has completed.
    ///
    /// # Errors
    ///
    /// As for [`Accesses::synchronize`].
    #[inline]
    pub fn synchronize_writes(&self) -> Result<()> {
        drain(&self.streams(true)?)
    }

    /// Prevents the launch of graphs that conflict with a read, or a write, by the host while the
    /// result exists.
    ///
    /// # Errors
    ///
    /// An argument error if another view conflicts.
    #[inline]
    pub fn view(&self, operation: &'static str, is_write: bool) -> Result<HostAccess> {
        let leased = self.lease.get();
        if let Some(leased) = leased {
            leased.begin_view(operation, is_write)?;
        }
        Ok(HostAccess::new(leased.cloned(), is_write))
    }

    /// Ends a view that was [left open](HostAccess::leave_open).
    #[inline]
    pub fn end_view_to_write(&self) {
        if let Some(leased) = self.lease.get() {
            leased.end_view(true);
        }
    }

    /// Returns `true` if graphs lease the memory. Once none of them leases it any more, the owner
    /// has sole use of it again.
    #[inline]
    pub fn is_leased(&mut self) -> bool {
        self.lease.get().is_some() && !self.reclaim()
    }

    /// Leaves leased memory to its graphs. When the last of them is dropped, `end` receives the
    /// accesses to wait for and frees the memory.
    pub fn leave(&mut self, end: impl FnOnce(Self) -> Result<()> + Send + 'static) {
        if let Some(leased) = self.lease.get() {
            leased.leave(|history, others| end(Self::with(history, others)));
        }
    }

    /// Revokes the leases of all graphs: launching them is an error from now on.
    ///
    /// # Errors
    ///
    /// An argument error in a call observer whose thread is ordering an access or launching a
    /// graph.
    pub fn revoke(&mut self) -> Result<()> {
        if let Some(leased) = self.lease.get() {
            check_not_ordering(OPERATION)?;
            leased.revoke();
        }
        Ok(())
    }

    /// Returns the history shared with graphs, and starts sharing it if necessary.
    fn lease(&self) -> &Arc<Leased> {
        let mut others = self.others.lock();
        // Under the lock: a thread that finds no lease there records its access before the history
        // is shared.
        self.lease.get_or_init(|| {
            Arc::new(Leased::new(
                self.history.leave(),
                std::mem::take(&mut *others),
            ))
        })
    }

    /// Makes the history the owner's alone if no graph shares it any more. Returns `true` if it is.
    #[cold]
    fn reclaim(&mut self) -> bool {
        let Some(leased) = self.lease.get_mut() else {
            return true;
        };
        let Some(unshared) = Arc::get_mut(leased) else {
            return false;
        };
        let (history, others) = unshared.take_history();
        self.history = history;
        *self.others.get_mut() = others;
        self.lease = OnceLock::new();
        true
    }
}

/// Waits until the work of every stream has completed, and returns the first error.
fn drain(streams: &[Stream]) -> Result<()> {
    streams.iter().map(Stream::drain).fold(Ok(()), Result::and)
}

/// Returns the error for memory that a graph cannot keep alive.
#[cold]
fn not_leasable(stream: &Stream) -> Error {
    let reason =
        format!("{stream:?} is being captured, and this kind of memory cannot be kept by a graph");
    Error::argument(OPERATION, reason)
}
