//! The handle of cuBLAS, which lives until its owner and every graph that captured it are gone.

use std::ptr;

use curium_driver::Context;
use curium_driver::extend::release_handle;

use crate::CuBlas;
use crate::error::Result;
use crate::sys::cublasHandle_t;
use curium_sys::library_call as call;

/// A handle of cuBLAS in a context.
#[derive(Debug)]
pub(crate) struct Handle {
    raw: cublasHandle_t,
    library: CuBlas,
    context: Context,
}

// SAFETY: a handle may be used by any thread, by one at a time: calls are made through `Blas`,
// which is borrowed exclusively.
unsafe impl Send for Handle {}
// SAFETY: a shared handle is never passed to the library.
unsafe impl Sync for Handle {}

impl Handle {
    pub(crate) fn create(library: &CuBlas, context: &Context) -> Result<Self> {
        let mut raw = ptr::null_mut();
        let _entered = context.enter()?;
        // SAFETY: `raw` is valid for writes, and the context is current.
        unsafe { call!(library.api(), cublasCreate_v2(&raw mut raw)) }?;
        Ok(Self::new(raw, library, context))
    }

    pub(crate) fn new(raw: cublasHandle_t, library: &CuBlas, context: &Context) -> Self {
        Self {
            raw,
            library: library.clone(),
            context: context.clone(),
        }
    }

    #[inline]
    pub(crate) fn raw(&self) -> cublasHandle_t {
        self.raw
    }

    #[inline]
    pub(crate) fn library(&self) -> &CuBlas {
        &self.library
    }

    #[inline]
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        release_handle("Blas::drop", || {
            let _entered = self.context.enter()?;
            // SAFETY: the handle is live, its context is current, and nothing else uses it.
            unsafe { call!(self.library.api(), cublasDestroy_v2(self.raw)) }
        });
    }
}
