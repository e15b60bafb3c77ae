//! The state word of a leased allocation.
//!
//! ```text
//!  bits   name              meaning                                             changed
//!  0      READS_FREE        reads on the owner stream need neither wait nor lock  with the lock
//!  1      WRITES_FREE       writes there need neither                             with the lock
//!  2      AWAITED           a thread waits for accesses to end                    with the lock
//!  3      REVOKED           the memory was freed while graphs lease it            with the lock
//!  4      VIEWED_TO_WRITE   the host has a view that writes                       begins with the lock
//!  8-21   VIEW              the number of host views that read                    begin with the lock
//!  22-42  READ              the number of reads in progress                       by every access
//!  43-63  WRITE             the number of writes in progress                      by every access
//! ```
//!
//! An access is in progress from before its waits until after its record. Its life on the owner stream is
//! [`begin_free`](State::begin_free), enqueue, record, [`end`](State::end): two atomic operations and no lock. Every
//! other access begins with the lock ([`begin_locked`](State::begin_locked)), and ends in the same way. A launch clears
//! the free bits with [`publish`](State::publish), so that no access begins without the lock, and then waits until the
//! counts of conflicting accesses are 0.
//!
//! All of these change one word, so their order is the same for all threads. An end releases the record of its access to the
//! launch that reads the count.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use super::sync::AtomicU64;

const READS_FREE: u64 = 1;
const WRITES_FREE: u64 = 1 << 1;
const AWAITED: u64 = 1 << 2;
const REVOKED: u64 = 1 << 3;
const VIEWED_TO_WRITE: u64 = 1 << 4;
const VIEW: u64 = 1 << 8;
const READ: u64 = 1 << 22;
const WRITE: u64 = 1 << 43;

const VIEWS: u64 = READ - VIEW;
const READS: u64 = WRITE - READ;
const WRITES: u64 = !(WRITE - 1);
/// The highest bit of each count. Nothing begins once one is set, so that no count overflows.
const FULL: u64 = READ >> 1 | WRITE >> 1 | 1 << 63;

/// The state word.
#[derive(Debug)]
pub(super) struct State(AtomicU64);

/// The state at one time.
#[derive(Clone, Copy)]
pub(super) struct Snapshot(u64);

/// The accesses on the owner stream that need no lock.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Free {
    Nothing,
    Reads,
    All,
}

impl State {
    /// Creates the state of memory that nobody uses. Every access takes the lock until the first
    /// [`publish`](Self::publish).
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    #[inline]
    pub(super) fn load(&self) -> Snapshot {
        Snapshot(self.0.load(Acquire))
    }

    /// Begins an access on the owner stream, unless it has to wait or to take the lock.
    #[inline]
    pub(super) fn begin_free(&self, is_write: bool) -> bool {
        let free = if is_write { WRITES_FREE } else { READS_FREE };
        let mut before = self.0.load(Relaxed);
        while before & (free | FULL) == free {
            let after = before + count(is_write);
            match self
                .0
                .compare_exchange_weak(before, after, Acquire, Relaxed)
            {
                Ok(_) => return true,
                Err(current) => before = current,
            }
        }
        false
    }

    /// Begins an access, with the lock. Returns `false` if too many are in progress.
    #[inline]
    pub(super) fn begin_locked(&self, is_write: bool) -> bool {
        let has_room = self.load().0 & FULL == 0;
        if has_room {
            self.0.fetch_add(count(is_write), Relaxed);
        }
        has_room
    }

    /// Ends an access, which has been recorded if it was enqueued. Returns `true` if a thread waits for that.
    #[inline]
    pub(super) fn end(&self, is_write: bool) -> bool {
        self.0.fetch_sub(count(is_write), Release) & AWAITED != 0
    }

    /// Sets which accesses are free, and whether a thread waits, when the lock is about to be released. Returns the new
    /// state.
    #[inline]
    pub(super) fn publish(&self, free: Free, is_awaited: bool) -> Snapshot {
        let mut bits = match free {
            Free::Nothing => 0,
            Free::Reads => READS_FREE,
            Free::All => READS_FREE | WRITES_FREE,
        };
        if is_awaited {
            bits |= AWAITED;
        }
        // Only the holder of the lock changes these bits.
        let changed = (self.load().0 ^ bits) & (READS_FREE | WRITES_FREE | AWAITED);
        if changed == 0 {
            return self.load();
        }
        Snapshot(self.0.fetch_xor(changed, AcqRel) ^ changed)
    }

    /// Revokes all leases, with the lock.
    #[inline]
    pub(super) fn revoke(&self) {
        self.0.fetch_or(REVOKED, Relaxed);
    }

    /// Begins a host view, with the lock. Returns `false` if another view conflicts with it.
    #[inline]
    pub(super) fn begin_view(&self, is_write: bool) -> bool {
        let before = self.load();
        let is_free = !before.is_viewed(is_write) && before.0 & FULL == 0;
        if is_free {
            let view = if is_write { VIEWED_TO_WRITE } else { VIEW };
            self.0.fetch_add(view, Relaxed);
        }
        is_free
    }

    /// Ends a host view. A thread that observes the end also observes the host's reads and writes.
    #[inline]
    pub(super) fn end_view(&self, is_write: bool) {
        if is_write {
            // A view that was left open may have begun before the memory was leased.
            self.0.fetch_and(!VIEWED_TO_WRITE, Release);
        } else {
            self.0.fetch_sub(VIEW, Release);
        }
    }
}

impl Snapshot {
    /// Returns `true` if an access in progress conflicts with a read, or a write.
    #[inline]
    pub(super) fn is_accessed(self, is_write: bool) -> bool {
        self.0 & (if is_write { READS | WRITES } else { WRITES }) != 0
    }

    /// Returns `true` if a host view conflicts with a read, or a write.
    #[inline]
    pub(super) fn is_viewed(self, is_write: bool) -> bool {
        let viewed = if is_write {
            VIEWED_TO_WRITE | VIEWS
        } else {
            VIEWED_TO_WRITE
        };
        self.0 & viewed != 0
    }

    #[inline]
    pub(super) fn is_revoked(self) -> bool {
        self.0 & REVOKED != 0
    }
}

/// One access.
#[inline]
fn count(is_write: bool) -> u64 {
    if is_write { WRITE } else { READ }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn free_bits_permit_accesses() {
        let state = State::new();
        for (free, reads, writes) in [
            (Free::Nothing, false, false),
            (Free::Reads, true, false),
            (Free::All, true, true),
            (Free::Nothing, false, false),
        ] {
            state.publish(free, false);
            for (is_write, begins) in [(false, reads), (true, writes)] {
                assert_eq!(state.begin_free(is_write), begins, "{free:?}");
                if begins {
                    assert!(state.load().is_accessed(true));
                    assert_eq!(state.load().is_accessed(false), is_write);
                    assert!(!state.end(is_write), "no thread waits");
                }
                assert!(!state.load().is_accessed(true));
            }
        }
    }

    #[test]
    fn end_reports_a_waiting_thread() {
        let state = State::new();
        assert!(state.begin_locked(true));
        state.publish(Free::Nothing, true);
        assert!(state.end(true));
    }

    #[test]
    fn counts_do_not_overflow() {
        for is_write in [false, true] {
            let state = State::new();
            state.publish(Free::All, false);
            let begun = (0_u32..).take_while(|_| state.begin_free(is_write)).count();
            assert_eq!(begun, 1 << 20);
            assert!(!state.begin_locked(false) && !state.begin_view(false));
            for _ in 0..begun {
                state.end(is_write);
            }
            assert!(!state.load().is_accessed(true) && state.begin_free(is_write));
        }
    }

    #[test]
    fn views_exclude_each_other() {
        let state = State::new();
        assert!(state.begin_view(false) && state.begin_view(false));
        assert!(!state.begin_view(true) && !state.load().is_viewed(false));
        state.end_view(false);
        state.end_view(false);
        assert!(state.begin_view(true) && !state.begin_view(false));
        // The owner may end a view that was left open more than once.
        state.end_view(true);
        state.end_view(true);
        assert!(!state.load().is_viewed(true));
        state.revoke();
        assert!(state.load().is_revoked());
    }
}
