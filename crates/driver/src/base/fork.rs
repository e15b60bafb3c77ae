//! Detection of processes that were forked after CUDA was initialized.
//!
//! `fork` copies neither the driver's threads nor its connection to the device. In the child, every call returns an
//! error, and every drop does nothing.
//!
//! A `pthread_atfork` handler sets two flags in the child. One of them is the flag of the call hook, which every call
//! reads anyway, so detection adds no cost to a call.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use curium_sys::Function;

use crate::base::error::report::{Note, OneLine, Report, debug_as_report};

static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// A driver call in a process that was forked after CUDA was initialized. The driver does not work there.
#[derive(Clone, Copy, Eq, PartialEq, thiserror::Error)]
#[error("{}", OneLine(self))]
#[non_exhaustive]
pub struct ForkError {
    /// The function, which was not called.
    pub function: Function,
}

impl ForkError {
    #[inline]
    pub(crate) fn new(function: Function) -> Self {
        Self { function }
    }
}

impl Report for ForkError {
    fn problem(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}: not called (this process was forked after CUDA was initialized)",
            self.function
        )
    }

    #[inline]
    fn notes(&self) -> Vec<Note<'_>> {
        vec![Note::Hint(
            "fork before `Driver::load`, or start a new program".into(),
        )]
    }
}

debug_as_report!(ForkError);

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
    crate::base::hook::attend();
}

#[cfg(all(unix, not(miri)))]
type Handler = Option<extern "C" fn()>;

// SAFETY: `pthread_atfork` of the C library has this signature; the handler only stores flags.
#[cfg(all(unix, not(miri)))]
unsafe extern "C" {
    safe fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> std::ffi::c_int;
}
