//! Claims: a launch acquires the allocations that its executable graph does not hold.

use std::marker::PhantomData;
use std::sync::Arc;

use super::lease_lock::{LaunchRecord, Launches, LeaseLock, Log};

/// A lease as used by a launch.
pub(crate) trait Leases<L: Log> {
    /// Returns the lock of the allocation.
    fn lock(&self) -> &LeaseLock<L>;
    /// Returns `true` if the graph writes the allocation.
    fn is_write(&self) -> bool;
}

/// Claims of several allocations, released on drop.
struct Claims<'a, L: Log, A: Leases<L>> {
    leases: &'a [A],
    claimed: Vec<usize>,
    log: PhantomData<L>,
}

/// Claims and holds those of `leases`, sorted by address, that the executable graph of `record` is missing. Runs
/// `launch` with the record locked once it holds them all. `order` orders the launch after the accesses in a log.
#[inline]
pub(crate) fn launch_holding<L: Log, A: Leases<L>, E>(
    record: &Arc<LaunchRecord<L::Launches>>,
    leases: &[A],
    mut order: impl FnMut(&A, &mut L) -> Result<(), E>,
    launch: impl FnOnce(&mut Launches<L::Launches>) -> Result<(), E>,
) -> Result<(), E> {
    let mut wanted = Vec::new();
    loop {
        wanted.extend_from_slice(&record.lock().missing);
        wanted.sort_unstable();
        wanted.dedup();
        // Claims of an earlier round have been released, so all of them are acquired in address order.
        let mut claims = Claims {
            leases,
            claimed: Vec::with_capacity(wanted.len()),
            log: PhantomData,
        };
        for &index in &wanted {
            let lease = &leases[index];
            lease.lock().claim(lease.is_write());
            claims.claimed.push(index);
            lease
                .lock()
                .hold(record, index, lease.is_write(), |log| order(lease, log))?;
        }
        let mut launches = record.lock();
        // A thread that is enqueuing an access may have recalled an allocation in the meantime: it does not wait for
        // claims.
        if launches.missing.is_empty() {
            return launch(&mut launches);
        }
    }
}

impl<L: Log, A: Leases<L>> Drop for Claims<'_, L, A> {
    #[inline]
    fn drop(&mut self) {
        for &index in &self.claimed {
            self.leases[index]
                .lock()
                .unclaim(self.leases[index].is_write());
        }
    }
}
