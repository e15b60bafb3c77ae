//! The calling thread's context stack.
//!
//! Curium itself does not depend on the current context. These operations serve calls to other
//! libraries, which use the context on top of the calling thread's stack. No other operation
//! changes that stack.

use curium_sys::CUcontext;

use super::{Context, Owned};
use crate::base::current::{self, Entered};
use crate::base::hook::refuse_in_observer;
use crate::call;
use crate::{Driver, Result};

impl Context {
    /// Makes this context current on the calling thread, replacing the one on top of its stack.
    ///
    /// The context stays on the stack after this value is dropped; calls that need a current
    /// context then fail. [`Context::scoped`] restores the stack by itself.
    ///
    /// CUDA: `cuCtxSetCurrent`.
    ///
    /// # Errors
    ///
    /// The error that the driver returns; an argument error in a call observer.
    #[doc(alias = "cuCtxSetCurrent")]
    #[inline]
    pub fn set_current(&self) -> Result<()> {
        refuse_in_observer("Context::set_current")?;
        // SAFETY: the context is live.
        unsafe { call!(self.driver(), cuCtxSetCurrent(self.as_raw())) }
    }

    /// Pops the context on top of the calling thread's stack, if any.
    ///
    /// CUDA: `cuCtxSetCurrent`.
    ///
    /// # Errors
    ///
    /// The error that the driver returns; an argument error in a call observer.
    #[inline]
    pub fn unset_current(driver: &Driver) -> Result<()> {
        refuse_in_observer("Context::unset_current")?;
        // SAFETY: a null context pops the stack.
        unsafe { call!(driver, cuCtxSetCurrent(std::ptr::null_mut())) }
    }

    /// Pushes this context onto the calling thread's stack, until it is [popped](Context::pop).
    ///
    /// CUDA: `cuCtxPushCurrent_v2`.
    ///
    /// # Errors
    ///
    /// The error that the driver returns; an argument error in a call observer.
    #[doc(alias = "cuCtxPushCurrent")]
    #[inline]
    pub fn push(&self) -> Result<()> {
        refuse_in_observer("Context::push")?;
        // SAFETY: the context is live.
        unsafe { call!(self.driver(), cuCtxPushCurrent_v2(self.as_raw())) }
    }

    /// Pops the context on top of the calling thread's stack and returns its handle. The context
    /// need not have been pushed by Curium.
    ///
    /// CUDA: `cuCtxPopCurrent_v2`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_CONTEXT` if the stack is empty; an argument error in a call observer.
    #[doc(alias = "cuCtxPopCurrent")]
    pub fn pop(driver: &Driver) -> Result<CUcontext> {
        refuse_in_observer("Context::pop")?;
        let mut popped = std::ptr::null_mut();
        // SAFETY: `popped` is valid for writes.
        unsafe { call!(driver, cuCtxPopCurrent_v2(&raw mut popped)) }?;
        Ok(popped)
    }

    /// Returns `true` if this is the calling thread's current context.
    ///
    /// CUDA: `cuCtxGetCurrent`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[inline]
    pub fn is_current(&self) -> Result<bool> {
        Ok(current::get(self.driver())? == self.as_raw())
    }

    /// Returns the handle of the calling thread's current context; null if there is none.
    ///
    /// CUDA: `cuCtxGetCurrent`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[inline]
    pub fn current_raw(driver: &Driver) -> Result<CUcontext> {
        current::get(driver)
    }

    /// Returns the calling thread's current context as a borrowed context; `None` if there is none.
    ///
    /// CUDA: `cuCtxGetCurrent` and `cuCtxGetDevice`.
    ///
    /// # Safety
    ///
    /// The context stays live for as long as the result, or any object created from it, exists.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuCtxGetCurrent")]
    pub unsafe fn current(driver: &Driver) -> Result<Option<Self>> {
        let raw = current::get(driver)?;
        if raw.is_null() {
            return Ok(None);
        }
        let device = Self::context_device(driver, raw)?;
        Ok(Some(Self::new(
            raw,
            &device,
            Owned::Borrowed { _owner: None },
        )))
    }

    /// Runs `operation` with this context current on the calling thread, and pops it when
    /// `operation` returns or panics.
    ///
    /// A context that `operation` sets with `cuCtxSetCurrent`, as the runtime API does, is popped
    /// too. `operation` must pop what it pushes.
    ///
    /// CUDA: `cuCtxPushCurrent_v2`, then `cuCtxPopCurrent_v2`.
    ///
    /// If `operation` returns a `Result`, use `?` twice: once for the push and once for the
    /// operation.
    ///
    /// ```
    /// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
    /// # let context = driver.device(0)?.primary_context()?;
    /// let number = context.scoped(|| "42".parse::<u32>())??;
    /// assert_eq!(number, 42);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// An error returned by the driver for the push. `operation` is not run in that case.
    #[inline]
    pub fn scoped<T>(&self, operation: impl FnOnce() -> T) -> Result<T> {
        let _entered = Entered::pushed(self.driver(), self.as_raw())?;
        Ok(operation())
    }
}
