//! The lock of one leased allocation: how accesses of its owner and launches of graphs share it.
//!
//! An access of the owner takes three steps: it is ordered after earlier accesses, enqueued, and
//! recorded. A launch takes the same steps for every allocation that its graph leases. Neither may
//! run between the first and the last step of the other, or they would miss each other. The borrow
//! checker orders the accesses of the owner among themselves, so only launches need a protocol:
//!
//! - An executable graph **holds** an allocation from its launch until another access needs it.
//!   Launches of an executable graph that holds all its allocations take one lock, that of its
//!   [`LaunchRecord`].
//! - An access that conflicts with a holder **recalls** the allocation: the holder's launches are
//!   recorded, and the executable graph orders its next launch after everything recorded by then.
//! - An executable graph that lacks allocations **claims** them in address order. A claim blocks
//!   new accesses of the owner and waits until accesses in progress have been recorded. Claims make
//!   access fair: neither owners nor launches starve.
//! - Accesses on the **owner stream** take no lock unless they conflict with an executable graph
//!   that holds or claims the allocation: an operation registers and deregisters once on that
//!   stream ([`Registrations`]), however many allocations it accesses. A launch first revokes this
//!   permission, then waits for the registered operations.
//! - A thread that is enqueuing an access never waits for a claim, so claims cannot deadlock.
//!
//! No lock is held while the host waits for the device. `tests` checks the protocol with loom.

use std::sync::Arc;

use super::registrations::Registrations;
use crate::base::sync::{AtomicU64, Condvar, Mutex, MutexGuard, Relaxed, SeqCst, model_fence};

/// The accesses to one allocation that later accesses may have to wait for.
pub(super) trait Log {
    /// The accesses that only the holder of the lock reads and records.
    type Locked;
    /// The launches of an executable graph, in the form that later accesses wait for.
    type Launches;

    /// Records launches of an executable graph that is about to lose the allocation.
    fn record_launches(&self, locked: &mut Self::Locked, launches: &Self::Launches, is_write: bool);

    /// Returns the accesses on the owner stream that need no wait.
    fn free_accesses(&self, locked: &Self::Locked) -> FreeAccesses;
}

/// The accesses on the owner stream that need no lock.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[repr(u64)]
pub(super) enum FreeAccesses {
    None,
    Reads,
    All,
}

/// The lock of one leased allocation, with its accesses.
pub(super) struct LeaseLock<L: Log> {
    /// The operations of the owner stream: the stream on which the owner last wrote the allocation.
    owner_registrations: Arc<Registrations>,
    /// The [`FreeAccesses`]: those that need no wait and conflict with no executable graph that
    /// holds or claims the allocation.
    free: AtomicU64,
    pub(super) log: L,
    shared: Mutex<Shared<L>>,
    changed: Condvar,
}

/// The part of the state that the lock protects.
struct Shared<L: Log> {
    locked: L::Locked,
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

/// The held lock. Dropping it publishes the accesses that are free afterwards.
pub(super) struct Guard<'a, L: Log> {
    shared: MutexGuard<'a, Shared<L>>,
    lock: &'a LeaseLock<L>,
}

/// The launches of one executable graph.
pub(super) type LaunchRecord<U> = Mutex<Launches<U>>;

/// The launches of one executable graph since it acquired its allocations.
pub(super) struct Launches<U> {
    /// The indices of the leases whose allocations the executable graph does not hold.
    pub(super) missing: Vec<usize>,
    /// The latest launch; `None` before the first.
    pub(super) latest: Option<U>,
}

impl<L: Log> LeaseLock<L> {
    pub(super) fn new(log: L, locked: L::Locked, owner_registrations: Arc<Registrations>) -> Self {
        let shared = Shared {
            locked,
            accesses: Users::default(),
            claims: Users::default(),
            holders: Vec::new(),
            waiting: 0,
        };
        Self {
            owner_registrations,
            free: AtomicU64::new(FreeAccesses::None as u64),
            log,
            shared: Mutex::new(shared),
            changed: Condvar::new(),
        }
    }

    /// Locks the allocation, without recording the launches of its holders.
    pub(super) fn lock(&self) -> Guard<'_, L> {
        Guard {
            shared: self.shared.lock(),
            lock: self,
        }
    }

    /// Returns `true` if `registrations` are those of the owner stream.
    #[inline]
    pub(super) fn is_owner_stream(&self, registrations: &Arc<Registrations>) -> bool {
        Arc::ptr_eq(&self.owner_registrations, registrations)
    }

    /// Returns `true` if an access on the owner stream needs no lock. `begin` registers its
    /// operation there if necessary, and returns `false` if it cannot. The operation deregisters
    /// after its access is recorded.
    #[inline]
    pub(super) fn begin_on_owner_stream(
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

    /// Begins an access of the owner, which `order` orders after earlier ones. It ends with
    /// [`LeaseLock::end`] unless `order` fails.
    pub(super) fn begin<E>(
        &self,
        is_write: bool,
        is_nested: bool,
        order: impl FnOnce(&L, &mut L::Locked) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut guard = self.lock_recalled(is_write, is_nested);
        order(&self.log, &mut guard.shared.locked)?;
        *guard.shared.accesses.count_mut(is_write) += 1;
        Ok(())
    }

    /// Ends an access of the owner. `record` records it if it was enqueued.
    pub(super) fn end(&self, is_write: bool, record: impl FnOnce(&L, &mut L::Locked)) {
        let mut guard = self.lock();
        record(&self.log, &mut guard.shared.locked);
        *guard.shared.accesses.count_mut(is_write) -= 1;
        guard.wake();
    }

    /// Locks the allocation, and recalls it from executable graphs that conflict with a read, or a
    /// write. No such launch takes place in the meantime. A thread that `is_nested` in another
    /// access does not wait for claims.
    pub(super) fn lock_recalled(&self, is_write: bool, is_nested: bool) -> Guard<'_, L> {
        let mut guard = self.lock();
        if !is_nested {
            guard.wait_while(|shared| shared.claims.conflict(is_write));
        }
        guard.recall(|holder| is_write || holder.is_write);
        guard
    }

    /// Returns the accesses of a lock that is not shared.
    pub(super) fn get_mut(&mut self) -> (&mut L, &mut L::Locked) {
        (&mut self.log, &mut self.shared.get_mut().locked)
    }

    /// Claims the allocation for a launch, once no other claim conflicts.
    pub(super) fn claim(&self, is_write: bool) -> Claim<'_, L> {
        let mut guard = self.lock();
        guard.wait_while(|shared| shared.claims.conflict(is_write));
        *guard.shared.claims.count_mut(is_write) += 1;
        drop(guard);
        // Accesses on the owner stream take the lock from now on; those that started without it are
        // recorded when their operations end.
        self.owner_registrations.wait();
        Claim {
            lock: self,
            is_write,
        }
    }

    /// Records the launches of the executable graph, which is about to be dropped.
    pub(super) fn release_holder(&self, record: &Arc<LaunchRecord<L::Launches>>) {
        self.lock()
            .recall(|holder| Arc::ptr_eq(&holder.record, record));
    }
}

impl<L: Log> Guard<'_, L> {
    /// Returns the accesses that the lock protects.
    pub(super) fn locked(&mut self) -> &mut L::Locked {
        &mut self.shared.locked
    }

    /// Publishes which accesses on the owner stream need no lock once this one is released.
    fn publish(&self) {
        let shared = &*self.shared;
        let mut holders = shared.holders.iter();
        let allowed = if shared.claims.writing > 0 || holders.any(|holder| holder.is_write) {
            FreeAccesses::None
        } else if shared.claims.reading > 0 || !shared.holders.is_empty() {
            FreeAccesses::Reads
        } else {
            FreeAccesses::All
        };
        let free = self.lock.log.free_accesses(&shared.locked).min(allowed) as u64;
        if free != self.lock.free.load(Relaxed) {
            self.lock.free.store(free, SeqCst);
            model_fence();
        }
    }

    /// Unlocks and waits while `is_blocked` returns `true`.
    fn wait_while(&mut self, is_blocked: impl Fn(&Shared<L>) -> bool) {
        while is_blocked(&self.shared) {
            self.publish();
            self.shared.waiting += 1;
            self.lock.changed.wait(&mut self.shared);
            self.shared.waiting -= 1;
        }
    }

    /// Wakes the threads that wait for a change.
    fn wake(&self) {
        if self.shared.waiting > 0 {
            self.lock.changed.notify_all();
        }
    }

    /// Recalls the allocation from executable graphs.
    fn recall(&mut self, is_recalled: impl Fn(&Holder<L>) -> bool) {
        let lock = self.lock;
        let shared = &mut *self.shared;
        shared.holders.retain(|holder| {
            let is_recalled = is_recalled(holder);
            if is_recalled {
                let mut launches = holder.record.lock();
                launches.missing.push(holder.index);
                if let Some(latest) = &launches.latest {
                    lock.log
                        .record_launches(&mut shared.locked, latest, holder.is_write);
                }
            }
            !is_recalled
        });
    }
}

impl<L: Log> Drop for Guard<'_, L> {
    fn drop(&mut self) {
        self.publish();
    }
}

impl Users {
    /// Returns `true` if a user conflicts with a read, or a write.
    fn conflict(self, is_write: bool) -> bool {
        self.writing > 0 || is_write && self.reading > 0
    }

    fn count_mut(&mut self, is_write: bool) -> &mut usize {
        if is_write {
            &mut self.writing
        } else {
            &mut self.reading
        }
    }
}

impl<U> Launches<U> {
    /// Creates the record of an executable graph with this many leases, none of which it holds.
    pub(super) fn recorded(leases: usize) -> LaunchRecord<U> {
        Mutex::new(Self {
            missing: (0..leases).collect(),
            latest: None,
        })
    }
}

/// A lease as used by a launch.
pub(super) trait Claimable<L: Log> {
    /// Claims the allocation.
    fn claim(&self) -> Claim<'_, L>;
}

/// A claim of an allocation, which ends when it is dropped.
pub(super) struct Claim<'a, L: Log> {
    lock: &'a LeaseLock<L>,
    is_write: bool,
}

impl<L: Log> Claim<'_, L> {
    /// Makes the executable graph of `record` the holder, after conflicting accesses and launches.
    /// `order` orders its launch.
    fn hold<E>(
        &self,
        record: &Arc<LaunchRecord<L::Launches>>,
        index: usize,
        order: impl FnOnce(&L, &mut L::Locked) -> Result<(), E>,
    ) -> Result<(), E> {
        let is_write = self.is_write;
        let mut guard = self.lock.lock();
        guard.wait_while(|shared| shared.accesses.conflict(is_write));
        let mut holders = guard.shared.holders.iter();
        if holders.any(|holder| Arc::ptr_eq(&holder.record, record)) {
            return Ok(());
        }
        guard.recall(|holder| is_write || holder.is_write);
        order(&self.lock.log, &mut guard.shared.locked)?;
        guard.shared.holders.push(Holder {
            record: Arc::clone(record),
            index,
            is_write,
        });
        record.lock().missing.retain(|missing| *missing != index);
        Ok(())
    }
}

impl<L: Log> Drop for Claim<'_, L> {
    fn drop(&mut self) {
        let mut guard = self.lock.lock();
        *guard.shared.claims.count_mut(self.is_write) -= 1;
        guard.wake();
    }
}

/// Claims and holds those of `leases`, sorted by address, that the executable graph of `record` is
/// missing. Runs `launch` with the record locked once it holds them all. `order` orders the launch
/// after the accesses to one.
pub(super) fn launch_holding<L: Log, A: Claimable<L>, E>(
    record: &Arc<LaunchRecord<L::Launches>>,
    leases: &[A],
    mut order: impl FnMut(&A, &L, &mut L::Locked) -> Result<(), E>,
    launch: impl FnOnce(&mut Launches<L::Launches>) -> Result<(), E>,
) -> Result<(), E> {
    let mut wanted = Vec::new();
    loop {
        wanted.extend_from_slice(&record.lock().missing);
        wanted.sort_unstable();
        wanted.dedup();
        // Claims of an earlier round have been released, so all of them are acquired in address
        // order.
        let mut claims = Vec::with_capacity(wanted.len());
        for &index in &wanted {
            let lease = &leases[index];
            let claim = lease.claim();
            claim.hold(record, index, |log, locked| order(lease, log, locked))?;
            claims.push(claim);
        }
        let mut launches = record.lock();
        // A thread that is enqueuing an access may have recalled an allocation in the meantime: it
        // does not wait for claims.
        if launches.missing.is_empty() {
            return launch(&mut launches);
        }
    }
}
