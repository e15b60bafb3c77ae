//! Those who give up memory when it is short.

use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// Frees what it can of the bytes that it is told, and returns how many.
pub(super) type Reclaim = Arc<dyn Fn(usize) -> usize + Send + Sync>;

/// Those who are registered, the highest priority first.
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

/// Someone who gives up memory when it is short, until this value is dropped. A call that is under way ends first on its own.
#[must_use = "who is registered is forgotten when the guard is dropped"]
pub struct ReclaimerGuard {
    reclaimers: Weak<Reclaimers>,
    number: u64,
}

impl Reclaimers {
    /// Adds one behind those of the same priority.
    #[inline]
    pub(super) fn register(reclaimers: &Arc<Self>, priority: i32, reclaim: Reclaim) -> ReclaimerGuard {
        let mut state = reclaimers.state.lock();
        let number = state.next;
        state.next += 1;
        let place = state.registered.partition_point(|other| other.priority >= priority);
        state.registered.insert(place, Registered { number, priority, reclaim });
        ReclaimerGuard { reclaimers: Arc::downgrade(reclaimers), number }
    }

    #[inline]
    pub(super) fn by_priority(&self) -> Vec<Reclaim> {
        self.state.lock().registered.iter().map(|registered| Arc::clone(&registered.reclaim)).collect()
    }
}

impl fmt::Debug for ReclaimerGuard {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ReclaimerGuard({})", self.number)
    }
}

impl Drop for ReclaimerGuard {
    #[inline]
    fn drop(&mut self) {
        let Some(reclaimers) = self.reclaimers.upgrade() else { return };
        let mut state = reclaimers.state.lock();
        let place = state.registered.iter().position(|registered| registered.number == self.number);
        let removed = place.map(|place| state.registered.remove(place));
        // What the closure holds is dropped without the lock.
        drop(state);
        drop(removed);
    }
}
