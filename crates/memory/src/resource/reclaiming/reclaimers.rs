//! Callbacks that free memory on demand.

use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// A reclaimer: receives the requested size in bytes, frees what it can, and returns the number of
/// freed bytes.
pub(super) type Reclaim = Arc<dyn Fn(usize) -> usize + Send + Sync>;

/// The registered reclaimers, in descending order of priority.
#[derive(Default)]
pub(super) struct Reclaimers {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    registered: Vec<Registered>,
    next: u64,
}

struct Registered {
    number: u64,
    priority: i32,
    reclaim: Reclaim,
}

/// The registration of a reclaimer. Dropping it unregisters the reclaimer, without waiting for a
/// call in progress.
#[must_use = "dropping the guard unregisters the reclaimer"]
pub struct ReclaimerGuard {
    reclaimers: Weak<Reclaimers>,
    number: u64,
}

impl Reclaimers {
    /// Adds a reclaimer after those of the same priority.
    pub(super) fn register(
        reclaimers: &Arc<Self>,
        priority: i32,
        reclaim: Reclaim,
    ) -> ReclaimerGuard {
        let mut state = reclaimers.state.lock();
        let number = state.next;
        state.next += 1;
        let position = state
            .registered
            .partition_point(|other| other.priority >= priority);
        state.registered.insert(
            position,
            Registered {
                number,
                priority,
                reclaim,
            },
        );
        ReclaimerGuard {
            reclaimers: Arc::downgrade(reclaimers),
            number,
        }
    }

    pub(super) fn by_priority(&self) -> Vec<Reclaim> {
        self.state
            .lock()
            .registered
            .iter()
            .map(|registered| Arc::clone(&registered.reclaim))
            .collect()
    }
}

impl fmt::Debug for ReclaimerGuard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ReclaimerGuard({})", self.number)
    }
}

impl Drop for ReclaimerGuard {
    fn drop(&mut self) {
        let Some(reclaimers) = self.reclaimers.upgrade() else {
            return;
        };
        let mut state = reclaimers.state.lock();
        let position = state
            .registered
            .iter()
            .position(|registered| registered.number == self.number);
        let removed = position.map(|position| state.registered.remove(position));
        // The captured values are user code, so they are dropped without the lock.
        drop(state);
        drop(removed);
    }
}
