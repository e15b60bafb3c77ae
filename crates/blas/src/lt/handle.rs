//! The handle of cuBLASLt in a context.

use std::fmt;
use std::ptr;
use std::sync::Arc;

use curium_driver::extend::release_handle;
use curium_driver::{ComputeCapability, Context};

use super::CuBlasLt;
use crate::error::Result;
use crate::sys::cublasLtHandle_t;
use crate::sys::lt::Api;
use curium_sys::library_call as call;

/// A handle of cuBLASLt in a context, with which plans are created. Clones are cheap and share the
/// handle, also between threads.
#[derive(Clone)]
pub struct BlasLt(Arc<Handle>);

struct Handle {
    raw: cublasLtHandle_t,
    library: CuBlasLt,
    context: Context,
    capability: ComputeCapability,
    ownership: Ownership,
}

/// The owner of a raw handle.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Ownership {
    /// The handle is destroyed when the last clone is dropped.
    Owned,
    /// Other code destroys the handle.
    Borrowed,
}

// SAFETY: the functions of cuBLASLt may be called by any thread, also with one handle: it has no
// settings.
unsafe impl Send for Handle {}
// SAFETY: threads may call the functions with one handle at the same time.
unsafe impl Sync for Handle {}

impl BlasLt {
    /// Creates a handle in `context`.
    ///
    /// CUDA: `cublasLtCreate`.
    ///
    /// # Errors
    ///
    /// An error of the library.
    #[doc(alias = "cublasLtCreate")]
    pub fn new(library: &CuBlasLt, context: &Context) -> Result<Self> {
        let capability = context.device().compute_capability()?;
        let mut raw = ptr::null_mut();
        let _entered = context.enter()?;
        // SAFETY: `raw` is valid for writes, and the context is current.
        unsafe { call!(library.api(), cublasLtCreate(&raw mut raw)) }?;
        Ok(Self::with(
            raw,
            library,
            context,
            capability,
            Ownership::Owned,
        ))
    }

    /// Takes ownership of a handle that other code created in `context`.
    ///
    /// # Safety
    ///
    /// `raw` is a live handle of `library`, created while `context` was current, which no other
    /// code destroys.
    ///
    /// # Errors
    ///
    /// An error of the driver, in which case the caller keeps the handle.
    pub unsafe fn from_raw(
        library: &CuBlasLt,
        raw: cublasLtHandle_t,
        context: &Context,
    ) -> Result<Self> {
        Ok(Self::with(
            raw,
            library,
            context,
            context.device().compute_capability()?,
            Ownership::Owned,
        ))
    }

    /// Borrows a handle that other code created in `context` and will destroy. It may also be a
    /// `cublasHandle_t`.
    ///
    /// # Safety
    ///
    /// `raw` is a live handle of `library`, created while `context` was current. It lives until
    /// every plan and every graph that captured one is dropped.
    ///
    /// # Errors
    ///
    /// An error of the driver.
    pub unsafe fn borrow_raw(
        library: &CuBlasLt,
        raw: cublasLtHandle_t,
        context: &Context,
    ) -> Result<Self> {
        Ok(Self::with(
            raw,
            library,
            context,
            context.device().compute_capability()?,
            Ownership::Borrowed,
        ))
    }

    fn with(
        raw: cublasLtHandle_t,
        library: &CuBlasLt,
        context: &Context,
        capability: ComputeCapability,
        ownership: Ownership,
    ) -> Self {
        Self(Arc::new(Handle {
            raw,
            library: library.clone(),
            context: context.clone(),
            capability,
            ownership,
        }))
    }

    /// Returns the library.
    #[must_use]
    pub fn library(&self) -> &CuBlasLt {
        &self.0.library
    }

    /// Returns the context.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// Returns the raw handle, for functions that this crate does not wrap. It lives as long as
    /// `self`.
    #[must_use]
    pub fn as_raw(&self) -> cublasLtHandle_t {
        self.0.raw
    }

    pub(super) fn capability(&self) -> ComputeCapability {
        self.0.capability
    }

    /// Calls the library with the handle's context current.
    #[inline]
    pub(super) fn entered<T>(
        &self,
        operation: impl FnOnce(&Api, cublasLtHandle_t) -> Result<T>,
    ) -> Result<T> {
        let _entered = self.0.context.enter()?;
        operation(self.0.library.api(), self.0.raw)
    }

    /// Makes the graph of a capture keep the handle.
    #[inline]
    pub(super) fn keep(&self, operation: &curium_driver::hazard::Operation<'_>) {
        operation.keep(&self.0);
    }
}

impl fmt::Debug for BlasLt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("BlasLt")
            .field(&self.0.library)
            .field(&self.0.context)
            .finish()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.ownership == Ownership::Borrowed {
            return;
        }
        release_handle("BlasLt::drop", || {
            let _entered = self.context.enter()?;
            // SAFETY: the handle is live, its context is current, and nothing else uses it.
            unsafe { call!(self.library.api(), cublasLtDestroy(self.raw)) }
        });
    }
}
