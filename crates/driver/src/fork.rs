//! What happens in a process that was forked from one that uses CUDA: nothing. The driver's threads and its ties to the device are
//! not copied, so that every call of the child is an error and every drop does nothing.
//!
//! The child learns of it from a handler that runs within `fork` and only stores two flags. One is the hook's, which every call
//! looks at anyhow, so that no call pays for this.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use curium_sys::Function;

static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// The driver was to be called in a process that was forked from the one that initialised it, where it does not work.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ForkError {
    /// The function that was to be called.
    pub function: Function,
}

impl ForkError {
    #[inline]
    pub(crate) fn new(function: Function) -> Self {
        Self { function }
    }
}

impl fmt::Display for ForkError {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} was not called: this process was forked after CUDA was initialised, and the driver works in the parent only; \
             fork before `Driver::load`, or start a program of its own",
            self.function
        )
    }
}

impl std::error::Error for ForkError {}

/// Whether this process was forked from one in which a driver had been initialised.
#[inline]
pub(crate) fn is_child() -> bool {
    IS_CHILD.load(Ordering::Relaxed)
}

/// Has every later fork of this process tell its child.
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

/// Runs in the child, on the one thread that it has: it takes no lock and allocates nothing.
#[cfg(all(unix, not(miri)))]
extern "C" fn in_child() {
    IS_CHILD.store(true, Ordering::Relaxed);
    crate::hook::attend();
}

#[cfg(all(unix, not(miri)))]
type Handler = Option<extern "C" fn()>;

// SAFETY: `pthread_atfork` of the C library has this signature; the handler only stores flags.
#[cfg(all(unix, not(miri)))]
unsafe extern "C" {
    safe fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> std::ffi::c_int;
}
