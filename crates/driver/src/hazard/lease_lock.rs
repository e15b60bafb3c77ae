//! The lock of one leased allocation, and how accesses of its owner and launches of graphs share it.
//!
//! An access of the owner takes three steps: it is ordered after earlier accesses, enqueued, and recorded. A launch takes the same steps
//! for every allocation that its graph leases. Neither may take place between the first and the last step of the other, or each would
//! miss the other. The borrow checker orders the accesses of the owner among themselves, so that only launches need care:
//!
//! - An executable **holds** an allocation from its launch until somebody else uses it. Launches of an executable that holds all its
//!   allocations touch one lock, that of its [`LaunchRecord`], however many there are.
//! - Whoever conflicts with a holder **recalls** the allocation: its launches are recorded in the log, and the executable orders
//!   its next launch after whatever has been recorded by then.
//! - An executable that lacks allocations **claims** them in the order of their addresses, which keeps new accesses of owners away, and
//!   waits until accesses that are being enqueued have been recorded. Claims make launches and owners fair to each other.
//! - A thread that is in the middle of an access waits for no claim, so that claims never wait for each other in a circle.
//!
//! No lock is held while the host waits for the device. `tests` checks the protocol with loom.

use std::sync::Arc;

use super::sync::{Condvar, Mutex, MutexGuard};

/// The accesses to one allocation that later ones may have to wait for.
pub(crate) trait Log {
    /// The launches of an executable that holds allocations, as later accesses wait for them.
    type Launches;

    /// Records launches of an executable that is about to lose the allocation.
    fn record_launches(&mut self, launches: &Self::Launches, is_write: bool);
}

/// The lock of one leased allocation.
pub(crate) struct LeaseLock<L: Log> {
    state: Mutex<State<L>>,
    changed: Condvar,
}

struct State<L: Log> {
    log: L,
    /// Accesses of the owner that are ordered and not yet recorded.
    accesses: Users,
    /// Launches that are taking the allocation.
    claims: Users,
    holders: Vec<Holder<L>>,
    /// Threads that wait for a change.
    waiting: usize,
}

/// An executable that may launch without locking the allocation.
struct Holder<L: Log> {
    record: Arc<LaunchRecord<L::Launches>>,
    /// The index of the lease in the executable.
    index: usize,
    is_write: bool,
}

/// How many use an allocation at a time.
#[derive(Clone, Copy, Default)]
struct Users {
    reading: usize,
    writing: usize,
}

/// The launches of one executable.
pub(crate) struct LaunchRecord<U>(Mutex<Launches<U>>);

/// The launches of one executable since it holds its allocations.
pub(crate) struct Launches<U> {
    /// The leases, by index, whose allocations the executable does not hold.
    pub(crate) missing: Vec<usize>,
    /// The latest launches: none before the first.
    pub(crate) latest: Option<U>,
}

/// A lease, as launches use it.
pub(crate) trait Leases<L: Log> {
    /// The lock of the allocation.
    fn lock(&self) -> &LeaseLock<L>;
    /// Returns `true` if the graph writes the allocation.
    fn is_write(&self) -> bool;
}

/// Claims of several allocations, which end with this value.
struct Claims<'a, L: Log, A: Leases<L>> {
    leases: &'a [A],
    claimed: Vec<usize>,
    log: std::marker::PhantomData<L>,
}

impl<L: Log> LeaseLock<L> {
    #[inline]
    pub(crate) fn new(log: L) -> Self {
        let state =
            State { log, accesses: Users::default(), claims: Users::default(), holders: Vec::new(), waiting: 0 };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Begins an access of the owner, which `order` orders after earlier ones. It ends with [`LeaseLock::end`] unless `order` fails. A
    /// thread that `is_nested` in another access does not wait for claims.
    #[inline]
    pub(crate) fn begin<E>(
        &self,
        is_write: bool,
        is_nested: bool,
        order: impl FnOnce(&mut L) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut state = self.state.lock();
        while !is_nested && state.claims.conflict(is_write) {
            state = self.wait(state);
        }
        state.recall(is_write);
        order(&mut state.log)?;
        *state.accesses.of(is_write) += 1;
        Ok(())
    }

    /// Ends an access of the owner, which `record` records if it was enqueued.
    #[inline]
    pub(crate) fn end(&self, is_write: bool, record: impl FnOnce(&mut L)) {
        let mut state = self.state.lock();
        record(&mut state.log);
        *state.accesses.of(is_write) -= 1;
        self.wake(&state);
    }

    /// Gives the log with all that conflicts with a read, or a write, to `operation`. No launch takes place meanwhile.
    #[inline]
    pub(crate) fn with<T>(&self, is_write: bool, is_nested: bool, operation: impl FnOnce(&mut L) -> T) -> T {
        let mut state = self.state.lock();
        while !is_nested && state.claims.conflict(is_write) {
            state = self.wait(state);
        }
        state.recall(is_write);
        operation(&mut state.log)
    }

    /// Gives the log to `operation`, without what launches have not recorded yet.
    #[inline]
    pub(crate) fn peek<T>(&self, operation: impl FnOnce(&mut L) -> T) -> T {
        operation(&mut self.state.lock().log)
    }

    /// The log of a lock that nobody shares.
    #[inline]
    pub(crate) fn log_mut(&mut self) -> &mut L {
        &mut self.state.get_mut().log
    }

    /// Claims the allocation for a launch, once no other launch conflicts.
    #[inline]
    fn claim(&self, is_write: bool) {
        let mut state = self.state.lock();
        while state.claims.conflict(is_write) {
            state = self.wait(state);
        }
        *state.claims.of(is_write) += 1;
    }

    #[inline]
    fn unclaim(&self, is_write: bool) {
        let mut state = self.state.lock();
        *state.claims.of(is_write) -= 1;
        self.wake(&state);
    }

    /// Has the executable of `record` hold the allocation, which it has claimed.
    #[inline]
    fn hold<E>(
        &self,
        record: &Arc<LaunchRecord<L::Launches>>,
        index: usize,
        is_write: bool,
        order: &mut impl FnMut(&mut L, bool) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut state = self.state.lock();
        while state.accesses.conflict(is_write) {
            state = self.wait(state);
        }
        if state.holders.iter().any(|holder| Arc::ptr_eq(&holder.record, record)) {
            return Ok(());
        }
        state.recall(is_write);
        order(&mut state.log, is_write)?;
        state.holders.push(Holder { record: Arc::clone(record), index, is_write });
        record.lock().missing.retain(|missing| *missing != index);
        Ok(())
    }

    /// Records the launches of the executable, which is about to go.
    #[inline]
    pub(crate) fn let_go(&self, record: &Arc<LaunchRecord<L::Launches>>) {
        self.state.lock().recall_if(|holder| Arc::ptr_eq(&holder.record, record));
    }

    #[inline]
    fn wait<'a>(&self, mut state: MutexGuard<'a, State<L>>) -> MutexGuard<'a, State<L>> {
        state.waiting += 1;
        state = self.changed.wait(state);
        state.waiting -= 1;
        state
    }

    #[inline]
    fn wake(&self, state: &State<L>) {
        if state.waiting > 0 {
            self.changed.notify_all();
        }
    }
}

impl<L: Log> State<L> {
    /// Recalls the allocation from executables that conflict with a read, or a write.
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
    /// Returns `true` if one of them conflicts with a read, or a write.
    #[inline]
    fn conflict(self, is_write: bool) -> bool {
        self.writing > 0 || is_write && self.reading > 0
    }

    #[inline]
    fn of(&mut self, is_write: bool) -> &mut usize {
        if is_write { &mut self.writing } else { &mut self.reading }
    }
}

impl<U> LaunchRecord<U> {
    /// The record of an executable with as many leases, which holds none of them.
    #[inline]
    pub(crate) fn new(leases: usize) -> Self {
        Self(Mutex::new(Launches { missing: (0..leases).collect(), latest: None }))
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, Launches<U>> {
        self.0.lock()
    }
}

/// Claims and holds what the executable of `record` lacks of `leases`, which are in the order of their addresses, and runs `launch` with
/// the record locked once it holds them all. `order` orders the launch after the accesses in a log.
#[inline]
pub(crate) fn launch_holding<L: Log, A: Leases<L>, E>(
    record: &Arc<LaunchRecord<L::Launches>>,
    leases: &[A],
    mut order: impl FnMut(&mut L, bool) -> Result<(), E>,
    launch: impl FnOnce(&mut Launches<L::Launches>) -> Result<(), E>,
) -> Result<(), E> {
    let mut wanted = Vec::new();
    loop {
        wanted.extend_from_slice(&record.lock().missing);
        wanted.sort_unstable();
        wanted.dedup();
        // Claims of an earlier round have ended, so that all of them are taken in the order of the addresses.
        let mut claims = Claims { leases, claimed: Vec::with_capacity(wanted.len()), log: std::marker::PhantomData };
        for &index in &wanted {
            let (lock, is_write) = (leases[index].lock(), leases[index].is_write());
            lock.claim(is_write);
            claims.claimed.push(index);
            lock.hold(record, index, is_write, &mut order)?;
        }
        let mut launches = record.lock();
        // A thread in the middle of an access may have recalled one meanwhile: it waits for no claim.
        if launches.missing.is_empty() {
            return launch(&mut launches);
        }
    }
}

impl<L: Log, A: Leases<L>> Drop for Claims<'_, L, A> {
    #[inline]
    fn drop(&mut self) {
        for &index in &self.claimed {
            self.leases[index].lock().unclaim(self.leases[index].is_write());
        }
    }
}
