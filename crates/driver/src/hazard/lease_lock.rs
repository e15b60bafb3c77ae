//! The lock of one leased allocation: how accesses of its owner and launches of graphs share it.
//!
//! An access of the owner takes three steps: it is ordered after earlier accesses, enqueued, and recorded. A launch
//! takes the same steps for every allocation that its graph leases. Neither may run between the first and the last step
//! of the other, or they would miss each other. The borrow checker orders the accesses of the owner among themselves,
//! so only launches need a protocol:
//!
//! - An executable graph **holds** an allocation from its launch until another access needs it. Launches of an
//!   executable graph that holds all its allocations take one lock, that of its [`LaunchRecord`].
//! - An access that conflicts with a holder **recalls** the allocation: the holder's launches are recorded in the log,
//!   and the executable graph orders its next launch after everything recorded by then.
//! - An executable graph that lacks allocations **claims** them in address order. A claim blocks new accesses of the
//!   owner and waits until accesses that are being enqueued have been recorded. Claims make access fair: neither owners
//!   nor launches starve.
//! - Accesses on the **owner stream** take no lock unless they conflict with an executable graph that holds or claims
//!   the allocation: an operation registers and deregisters once on that stream ([`Registrations`]), however many
//!   allocations it accesses. A launch first revokes this permission, then waits for the registered operations.
//! - A thread that is enqueuing an access never waits for a claim, so claims cannot deadlock.
//!
//! No lock is held while the host waits for the device. `tests` checks the protocol with loom.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::registrations::Registrations;
use super::sync::{AtomicU64, Condvar, Mutex, MutexGuard, Relaxed, SeqCst, model_fence};

/// The accesses to one allocation that later accesses may have to wait for.
pub(crate) trait Log {
    /// The launches of an executable graph that holds allocations, in the form that later accesses wait for.
    type Launches;

    /// Records launches of an executable graph that is about to lose the allocation.
    fn record_launches(&mut self, launches: &Self::Launches, is_write: bool);

    /// Records accesses on the owner stream, given its number of sync points at the last read and at the last write.
    fn record_on_owner_stream(&mut self, read: u64, written: u64);

    /// Returns the accesses on the owner stream that need no wait.
    fn free_on_owner_stream(&mut self) -> FreeAccesses;
}

/// The accesses on the owner stream that need no lock.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[repr(u64)]
pub(crate) enum FreeAccesses {
    None,
    Reads,
    All,
}

/// The lock of one leased allocation.
pub(crate) struct LeaseLock<L: Log> {
    /// The operations of the owner stream: the stream on which the owner last wrote the allocation.
    owner_registrations: Arc<Registrations>,
    /// The [`FreeAccesses`]: those that need no wait and conflict with no executable graph that holds or claims the
    /// allocation.
    free: AtomicU64,
    /// The last accesses on the owner stream without the lock, as passed to [`Log::record_on_owner_stream`].
    read: AtomicU64,
    written: AtomicU64,
    state: Mutex<State<L>>,
    changed: Condvar,
}

/// The locked state. Dropping it publishes the accesses that are free afterwards.
struct Locked<'a, L: Log> {
    state: MutexGuard<'a, State<L>>,
    lock: &'a LeaseLock<L>,
}

struct State<L: Log> {
    log: L,
    /// Accesses of the owner that are ordered and not yet recorded.
    accesses: Users,
    /// Launches that are claiming the allocation.
    claims: Users,
    holders: Vec<Holder<L>>,
    /// The number of threads that wait for a change.
    waiting: usize,
}

/// An executable graph that may launch without locking the allocation.
struct Holder<L: Log> {
    record: Arc<LaunchRecord<L::Launches>>,
    /// The index of the lease in the executable graph.
    index: usize,
    is_write: bool,
}

/// The numbers of reads and writes of an allocation in progress.
#[derive(Clone, Copy, Default)]
struct Users {
    reading: usize,
    writing: usize,
}

/// The launches of one executable graph.
pub(crate) struct LaunchRecord<U>(Mutex<Launches<U>>);

/// The launches of one executable graph since it acquired its allocations.
pub(crate) struct Launches<U> {
    /// The indices of the leases whose allocations the executable graph does not hold.
    pub(crate) missing: Vec<usize>,
    /// The latest launch; `None` before the first.
    pub(crate) latest: Option<U>,
}

impl<L: Log> LeaseLock<L> {
    #[inline]
    pub(crate) fn new(log: L, owner_registrations: Arc<Registrations>) -> Self {
        Self {
            owner_registrations,
            free: AtomicU64::new(FreeAccesses::None as u64),
            read: AtomicU64::new(0),
            written: AtomicU64::new(0),
            state: Mutex::new(State {
                log,
                accesses: Users::default(),
                claims: Users::default(),
                holders: Vec::new(),
                waiting: 0,
            }),
            changed: Condvar::new(),
        }
    }

    /// Returns `true` if `operations` belong to the owner stream.
    #[inline]
    pub(crate) fn is_owner_stream(&self, registrations: &Arc<Registrations>) -> bool {
        Arc::ptr_eq(&self.owner_registrations, registrations)
    }

    /// Returns `true` if an access on the owner stream needs no lock. `begin` registers its operation there if
    /// necessary, and returns `false` if it cannot; the operation ends after [`LeaseLock::record_on_owner_stream`].
    #[inline]
    pub(crate) fn begin_on_owner_stream(
        &self,
        is_write: bool,
        begin: impl FnOnce() -> bool,
    ) -> bool {
        let needed = if is_write {
            FreeAccesses::All
        } else {
            FreeAccesses::Reads
        } as u64;
        self.free.load(Relaxed) >= needed && begin() && self.free.load(SeqCst) >= needed
    }

    /// Records an access on the owner stream that took no lock, with the stream's number of sync points.
    #[inline]
    pub(crate) fn record_on_owner_stream(&self, is_write: bool, sync_points: u64) {
        let last = if is_write { &self.written } else { &self.read };
        if last.load(Relaxed) < sync_points {
            last.fetch_max(sync_points, Relaxed);
        }
    }

    #[inline]
    fn lock(&self) -> Locked<'_, L> {
        let mut locked = Locked {
            state: self.state.lock(),
            lock: self,
        };
        locked.absorb();
        locked
    }

    /// Starts an access of the owner, which `order` orders after earlier ones. It ends with [`LeaseLock::end`] unless
    /// `order` fails. A thread that `is_nested` in another access does not wait for claims.
    #[inline]
    pub(crate) fn begin<E>(
        &self,
        is_write: bool,
        is_nested: bool,
        order: impl FnOnce(&mut L) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut state = self.lock();
        while !is_nested && state.claims.conflict(is_write) {
            state.wait();
        }
        state.recall(is_write);
        order(&mut state.log)?;
        *state.accesses.count_mut(is_write) += 1;
        Ok(())
    }

    /// Ends an access of the owner. `record` records it if it was enqueued.
    #[inline]
    pub(crate) fn end(&self, is_write: bool, record: impl FnOnce(&mut L)) {
        let mut state = self.lock();
        record(&mut state.log);
        *state.accesses.count_mut(is_write) -= 1;
        self.wake(&state);
    }

    /// Passes the log, including everything that conflicts with a read or a write, to `operation`. No launch takes
    /// place in the meantime.
    #[inline]
    pub(crate) fn with<T>(
        &self,
        is_write: bool,
        is_nested: bool,
        operation: impl FnOnce(&mut L) -> T,
    ) -> T {
        let mut state = self.lock();
        while !is_nested && state.claims.conflict(is_write) {
            state.wait();
        }
        state.recall(is_write);
        operation(&mut state.log)
    }

    /// Passes the log to `operation`, without launches that are not yet recorded.
    #[inline]
    pub(crate) fn peek<T>(&self, operation: impl FnOnce(&mut L) -> T) -> T {
        operation(&mut self.lock().log)
    }

    /// Returns the log of a lock that is not shared.
    #[inline]
    pub(crate) fn log_mut(&mut self) -> &mut L {
        let read = self.read.load(Relaxed);
        let written = self.written.load(Relaxed);
        let log = &mut self.state.get_mut().log;
        log.record_on_owner_stream(read, written);
        log
    }

    /// Claims the allocation for a launch, once no other launch conflicts.
    #[inline]
    pub(super) fn claim(&self, is_write: bool) {
        let mut state = self.lock();
        while state.claims.conflict(is_write) {
            state.wait();
        }
        *state.claims.count_mut(is_write) += 1;
        drop(state);
        // Accesses on the owner stream take the lock from now on; those that started without it are recorded when their
        // operations end.
        self.owner_registrations.wait();
    }

    #[inline]
    pub(super) fn unclaim(&self, is_write: bool) {
        let mut state = self.lock();
        *state.claims.count_mut(is_write) -= 1;
        self.wake(&state);
    }

    /// Makes the executable graph of `record`, which has claimed the allocation, its holder.
    #[inline]
    pub(super) fn hold<E>(
        &self,
        record: &Arc<LaunchRecord<L::Launches>>,
        index: usize,
        is_write: bool,
        order: impl FnOnce(&mut L) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut state = self.lock();
        while state.accesses.conflict(is_write) {
            state.wait();
        }
        if state
            .holders
            .iter()
            .any(|holder| Arc::ptr_eq(&holder.record, record))
        {
            return Ok(());
        }
        state.recall(is_write);
        order(&mut state.log)?;
        state.holders.push(Holder {
            record: Arc::clone(record),
            index,
            is_write,
        });
        record.lock().missing.retain(|missing| *missing != index);
        Ok(())
    }

    /// Records the launches of the executable graph, which is about to be dropped.
    #[inline]
    pub(crate) fn release_holder(&self, record: &Arc<LaunchRecord<L::Launches>>) {
        self.lock()
            .recall_if(|holder| Arc::ptr_eq(&holder.record, record));
    }

    #[inline]
    fn wake(&self, state: &State<L>) {
        if state.waiting > 0 {
            self.changed.notify_all();
        }
    }
}

impl<L: Log> Locked<'_, L> {
    /// Records the accesses that took no lock.
    #[inline]
    fn absorb(&mut self) {
        let read = self.lock.read.load(Relaxed);
        let written = self.lock.written.load(Relaxed);
        self.state.log.record_on_owner_stream(read, written);
    }

    /// Publishes which accesses on the owner stream need no lock.
    #[inline]
    fn publish(&mut self) {
        let free = self.state.free_accesses() as u64;
        if free != self.lock.free.load(Relaxed) {
            self.lock.free.store(free, SeqCst);
            model_fence();
        }
    }

    /// Unlocks the state and waits until it has changed.
    #[cold]
    fn wait(&mut self) {
        self.publish();
        self.state.waiting += 1;
        self.lock.changed.wait(&mut self.state);
        self.state.waiting -= 1;
        self.absorb();
    }
}

impl<L: Log> Deref for Locked<'_, L> {
    type Target = State<L>;

    #[inline]
    fn deref(&self) -> &State<L> {
        &self.state
    }
}

impl<L: Log> DerefMut for Locked<'_, L> {
    #[inline]
    fn deref_mut(&mut self) -> &mut State<L> {
        &mut self.state
    }
}

impl<L: Log> Drop for Locked<'_, L> {
    #[inline]
    fn drop(&mut self) {
        self.publish();
    }
}

impl<L: Log> State<L> {
    #[inline]
    fn free_accesses(&mut self) -> FreeAccesses {
        let is_written =
            self.claims.writing > 0 || self.holders.iter().any(|holder| holder.is_write);
        let is_read = self.claims.reading > 0 || !self.holders.is_empty();
        match (is_written, is_read) {
            (true, _) => FreeAccesses::None,
            (false, true) => self.log.free_on_owner_stream().min(FreeAccesses::Reads),
            (false, false) => self.log.free_on_owner_stream(),
        }
    }

    /// Recalls the allocation from executable graphs that conflict with a read, or a write.
    #[inline]
    fn recall(&mut self, is_write: bool) {
        if !self.holders.is_empty() {
            self.recall_if(|holder| is_write || holder.is_write);
        }
    }

    #[inline]
    fn recall_if(&mut self, is_recalled: impl Fn(&Holder<L>) -> bool) {
        let log = &mut self.log;
        self.holders.retain(|holder| {
            let is_recalled = is_recalled(holder);
            if is_recalled {
                let mut launches = holder.record.lock();
                launches.missing.push(holder.index);
                if let Some(latest) = &launches.latest {
                    log.record_launches(latest, holder.is_write);
                }
            }
            !is_recalled
        });
    }
}

impl Users {
    /// Returns `true` if a user conflicts with a read, or a write.
    #[inline]
    fn conflict(self, is_write: bool) -> bool {
        self.writing > 0 || is_write && self.reading > 0
    }

    #[inline]
    fn count_mut(&mut self, is_write: bool) -> &mut usize {
        if is_write {
            &mut self.writing
        } else {
            &mut self.reading
        }
    }
}

impl<U> LaunchRecord<U> {
    /// Creates the record of an executable graph with this many leases, none of which it holds.
    #[inline]
    pub(crate) fn new(leases: usize) -> Self {
        Self(Mutex::new(Launches {
            missing: (0..leases).collect(),
            latest: None,
        }))
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, Launches<U>> {
        self.0.lock()
    }
}
