//! The flag that every driver call reads: whether it takes the slow path.

use std::sync::atomic::{AtomicBool, Ordering};

static IS_REQUIRED: AtomicBool = AtomicBool::new(false);

/// Returns `true` if a call must take the slow path: an observer is installed, or this process is a forked child.
#[inline]
pub(crate) fn is_required() -> bool {
    IS_REQUIRED.load(Ordering::Relaxed)
}

/// Makes every later call take the slow path.
#[cfg(all(unix, not(miri)))]
#[inline]
pub(crate) fn require() {
    set_required(true);
}

/// Sets whether later calls take the slow path.
#[inline]
pub(crate) fn set_required(is_required: bool) {
    IS_REQUIRED.store(is_required, Ordering::Relaxed);
}
