//! The calling thread's current context, which every call leaves unchanged.

use std::marker::PhantomData;

use curium_sys::CUcontext;

use crate::base::release::release;
use crate::call;
use crate::{Driver, Result};

/// A context that is current on this thread until this value is dropped
/// ([`Context::enter`](crate::Context::enter)).
#[derive(Debug)]
#[must_use = "the context is current until this value is dropped"]
pub struct Entered<'a> {
    /// The driver with which the context is popped; `None` if it was already current.
    pushed: Option<&'a Driver>,
    /// The stack belongs to this thread.
    _thread: PhantomData<*mut ()>,
}

impl<'a> Entered<'a> {
    /// Makes `context`, which is live for `'a`, current. Pushes nothing if it is already current,
    /// so the common case costs one query.
    #[inline(never)]
    pub(crate) fn new(driver: &'a Driver, context: CUcontext) -> Result<Self> {
        Self::inlined(driver, context)
    }

    /// As [`Entered::new`], inlined for operations of libraries: docs/performance.md, "Functions
    /// around a call".
    #[inline(always)]
    pub(crate) fn inlined(driver: &'a Driver, context: CUcontext) -> Result<Self> {
        if get(driver)? == context {
            return Ok(Self {
                pushed: None,
                _thread: PhantomData,
            });
        }
        Self::pushed(driver, context)
    }

    /// Pushes `context`, which is live for `'a`, even if it is already current, so that a context
    /// set in its place is also popped.
    #[cold]
    #[inline(never)]
    pub(crate) fn pushed(driver: &'a Driver, context: CUcontext) -> Result<Self> {
        // SAFETY: `context` is a live context of this driver.
        unsafe { call!(driver, cuCtxPushCurrent_v2(context)) }?;
        Ok(Self {
            pushed: Some(driver),
            _thread: PhantomData,
        })
    }
}

/// Pops the top of the calling thread's stack, and reports any error.
#[cold]
#[inline(never)]
fn pop(driver: &Driver) {
    let mut popped = std::ptr::null_mut();
    // SAFETY: `popped` is valid for writes.
    release(|| unsafe { call!(driver, cuCtxPopCurrent_v2(&raw mut popped)) });
}

/// Returns the handle of the calling thread's current context; null if none is current.
// Inlined: see `Entered::inlined`.
#[inline(always)]
pub(crate) fn get(driver: &Driver) -> Result<CUcontext> {
    let mut current = std::ptr::null_mut();
    // SAFETY: `current` is valid for writes.
    unsafe { call!(driver, cuCtxGetCurrent(&raw mut current)) }?;
    Ok(current)
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(driver) = self.pushed {
            pop(driver);
        }
    }
}
