//! The count that every driver call reads: whether it takes the slow path.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of installed observers of calls, plus one in a forked child.
static REASONS: AtomicUsize = AtomicUsize::new(0);

/// Returns `true` if a call must take the slow path: an observer is installed, or this process is a
/// forked child.
#[inline]
pub(crate) fn is_required() -> bool {
    REASONS.load(Ordering::Relaxed) != 0
}

/// Makes later calls take the slow path, until [`leave`] has been called as often.
pub(crate) fn enter() {
    REASONS.fetch_add(1, Ordering::Relaxed);
}

/// Ends one [`enter`].
pub(crate) fn leave() {
    REASONS.fetch_sub(1, Ordering::Relaxed);
}
