//! Operations of one stream that use leased memory without its lock.

use crate::base::sync::{AtomicU64, Condvar, Mutex, SeqCst, model_fence};

/// The operations in progress on a stream that access leased memory without its lock.
///
/// An operation registers here *before* it reads that it needs no lock, and a launch revokes that
/// *before* it waits here. One of them therefore observes the other.
///
/// Operations are counted per stream and not per allocation, which limits the cost to one atomic
/// read-modify-write at each end. The drawback: while the stream's launch queue is full and the
/// driver blocks in an operation, a launch on another thread waits for that operation even if it
/// leases other memory. Operations that are known to block lock their memory instead
/// (`Operation::blocking`).
#[derive(Debug, Default)]
pub(crate) struct Registrations {
    /// The number of operations in progress, plus [`LAUNCH`] for each launch that waits for them.
    state: AtomicU64,
    lock: Mutex<()>,
    ended: Condvar,
}

/// One waiting launch.
const LAUNCH: u64 = 1 << 32;

impl Registrations {
    /// Registers an operation. Returns `false` while a launch waits, so that new operations do not
    /// delay it.
    #[inline]
    pub(crate) fn begin(&self) -> bool {
        let before = self.state.fetch_add(1, SeqCst);
        model_fence();
        if before >= LAUNCH {
            self.end();
        }
        before < LAUNCH
    }

    /// Deregisters an operation, which has recorded its accesses.
    #[inline]
    pub(crate) fn end(&self) {
        if self.state.fetch_sub(1, SeqCst) > LAUNCH {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        drop(self.lock.lock());
        self.ended.notify_all();
    }

    /// Waits until the operations in progress have ended.
    pub(crate) fn wait(&self) {
        model_fence();
        if self.state.load(SeqCst) == 0 {
            return;
        }
        let mut lock = self.lock.lock();
        self.state.fetch_add(LAUNCH, SeqCst);
        while !self.state.load(SeqCst).is_multiple_of(LAUNCH) {
            self.ended.wait(&mut lock);
        }
        self.state.fetch_sub(LAUNCH, SeqCst);
    }
}
