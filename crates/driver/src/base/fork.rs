//! Detection of processes that were forked after CUDA was initialized.
//!
//! `fork` copies neither the driver's threads nor its connection to the device. In the child, every
//! call returns an error, and every drop does nothing.
//!
//! A `pthread_atfork` handler sets a flag in the child, and makes every call take the slow path.
//! Calls test for that anyway, so detection adds no cost to a call.

use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(all(unix, not(miri)))]
use crate::base::slow_path;

static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// Returns `true` in a child forked from a process that had initialized a driver.
#[inline]
pub(crate) fn is_child() -> bool {
    IS_CHILD.load(Ordering::Relaxed)
}

/// Registers the fork handler.
#[inline]
pub(crate) fn watch_for_forks() {
    #[cfg(all(unix, not(miri)))]
    {
        static REGISTER: std::sync::Once = std::sync::Once::new();
        REGISTER.call_once(|| {
            pthread_atfork(None, None, Some(in_child));
        });
    }
}

/// Runs on the only thread of the child. Takes no lock and allocates nothing.
#[cfg(all(unix, not(miri)))]
extern "C" fn in_child() {
    IS_CHILD.store(true, Ordering::Relaxed);
    slow_path::enter();
}

#[cfg(all(unix, not(miri)))]
type Handler = Option<extern "C" fn()>;

// SAFETY: `pthread_atfork` of the C library has this signature; the handler only writes atomics.
#[cfg(all(unix, not(miri)))]
unsafe extern "C" {
    safe fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> std::ffi::c_int;
}
