//! The handle of a plan, which lives until its owner and every graph that captured it are gone.

use curium_driver::Context;
use curium_driver::extend::{release_handle, with_relaxed_capture_mode};

use crate::CuFft;
use crate::error::Result;
use crate::sys::cufftHandle;
use curium_sys::library_call as call;

/// A plan of cuFFT in a context.
#[derive(Debug)]
pub(crate) struct Handle {
    raw: cufftHandle,
    library: CuFft,
    context: Context,
}

impl Handle {
    /// Creates a plan without a workspace of its own.
    pub(crate) fn create(library: &CuFft, context: &Context) -> Result<Self> {
        let mut raw = 0;
        let _entered = context.enter()?;
        // SAFETY: `raw` is valid for writes, and the context is current.
        unsafe { call!(library.api(), cufftCreate(&raw mut raw)) }?;
        let handle = Self::new(raw, library, context);
        // SAFETY: the plan is live, and its context is current.
        unsafe { call!(library.api(), cufftSetAutoAllocation(raw, 0)) }?;
        Ok(handle)
    }

    pub(crate) fn new(raw: cufftHandle, library: &CuFft, context: &Context) -> Self {
        Self {
            raw,
            library: library.clone(),
            context: context.clone(),
        }
    }

    pub(crate) fn raw(&self) -> cufftHandle {
        self.raw
    }

    pub(crate) fn library(&self) -> &CuFft {
        &self.library
    }

    /// Calls the library with the context of the plan current.
    #[inline]
    pub(crate) fn entered<T>(&self, operation: impl FnOnce() -> Result<T>) -> Result<T> {
        let _entered = self.context.enter()?;
        operation()
    }

    /// As [`Self::entered`], for calls that allocate memory, which a capture forbids in any other
    /// than the relaxed mode.
    pub(crate) fn entered_relaxed<T>(&self, operation: impl FnOnce() -> Result<T>) -> Result<T> {
        with_relaxed_capture_mode(self.context.driver(), || Ok(self.entered(operation)))?
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        release_handle("Plan::drop", || {
            // SAFETY: the plan is live, its context is current, and nothing else uses it.
            self.entered(|| unsafe { call!(self.library.api(), cufftDestroy(self.raw)) })
        });
    }
}
