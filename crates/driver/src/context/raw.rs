//! Conversion of contexts to and from raw handles.

use std::any::Any;
use std::ptr;
use std::sync::Arc;

use curium_sys::{CUcontext, CUgreenCtx, Function};

use super::{Context, Owned};
use crate::base::current::Entered;
use crate::base::handle::Handle;
use crate::call;
use crate::{Device, Driver, Result};

/// A context handle, with the ownership that comes with it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RawContext {
    /// One retention of a primary context, obtained from `cuDevicePrimaryCtxRetain`, to be released
    /// with `cuDevicePrimaryCtxRelease`.
    Primary(CUcontext),
    /// A context created by `cuCtxCreate`, to be destroyed with `cuCtxDestroy`.
    Created(CUcontext),
    /// A context created by `cuGreenCtxCreate`, to be destroyed with `cuGreenCtxDestroy`.
    Green(CUgreenCtx),
    /// A context owned by other code.
    Borrowed(CUcontext),
}

impl Context {
    /// Takes ownership of a context that other code created, unless it is borrowed.
    ///
    /// CUDA: `cuCtxGetDevice`, and `cuCtxFromGreenCtx` for a green context.
    ///
    /// # Safety
    ///
    /// - The handle refers to a live context of `driver`, of the given kind.
    /// - Unless it is borrowed, no other code releases or destroys it.
    /// - If it is borrowed, it stays live for as long as the result, or any object created from it,
    ///   exists.
    ///
    /// # Errors
    ///
    /// An error returned by the driver. The context is not affected.
    pub unsafe fn from_raw(driver: &Driver, raw: RawContext) -> Result<Self> {
        let (context, owned) = match raw {
            RawContext::Primary(context) => (context, Owned::Primary),
            RawContext::Created(context) => (context, Owned::Created),
            RawContext::Green(green) => (
                Self::from_green(driver, green)?,
                Owned::Green(Handle::new(green)),
            ),
            RawContext::Borrowed(context) => (context, Owned::Borrowed { _owner: None }),
        };
        let device = Self::context_device(driver, context)?;
        Ok(Self::new(context, &device, owned))
    }

    /// Borrows a context that `owner` keeps alive. `owner` is dropped after the last clone of the
    /// result and the last object created from it.
    ///
    /// CUDA: `cuCtxGetDevice`.
    ///
    /// # Safety
    ///
    /// The handle refers to a context of `driver` that is live for as long as `owner` exists.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub unsafe fn borrow_raw(
        driver: &Driver,
        raw: CUcontext,
        owner: impl Any + Send + Sync,
    ) -> Result<Self> {
        let device = Self::context_device(driver, raw)?;
        Ok(Self::new(
            raw,
            &device,
            Owned::Borrowed {
                _owner: Some(Box::new(owner)),
            },
        ))
    }

    /// Transfers ownership of the context to the caller. The owner of a borrowed context is
    /// dropped.
    ///
    /// # Errors
    ///
    /// Returns the context to the caller if clones of it or objects created from it still exist.
    pub fn into_raw(self) -> Result<RawContext, Self> {
        let mut shared = Arc::try_unwrap(self.shared).map_err(|shared| Self { shared })?;
        shared.attachments.clear();
        let context = shared.raw.raw();
        let raw = match &shared.owned {
            Owned::Primary => RawContext::Primary(context),
            Owned::Created => RawContext::Created(context),
            Owned::Green(green) => RawContext::Green(green.raw()),
            Owned::Borrowed { .. } => RawContext::Borrowed(context),
        };
        shared.raw.clear();
        Ok(raw)
    }

    /// Returns the device of a context, which the caller guarantees is live.
    pub(super) fn context_device(driver: &Driver, context: CUcontext) -> Result<Device> {
        let mut device = 0;
        if driver.has(Function::cuCtxGetDevice_v2) {
            // SAFETY: `device` is valid for writes, and the context is live.
            unsafe { call!(driver, cuCtxGetDevice_v2(&raw mut device, context)) }?;
        } else {
            let _entered = Entered::new(driver, context)?;
            // SAFETY: `device` is valid for writes, and the context is current.
            unsafe { call!(driver, cuCtxGetDevice(&raw mut device)) }?;
        }
        Ok(Device::from_raw(driver, device))
    }

    /// Returns the `CUcontext` of a green context, for calls that do not take green contexts.
    pub(crate) fn from_green(driver: &Driver, green: CUgreenCtx) -> Result<CUcontext> {
        let mut context = ptr::null_mut();
        // SAFETY: `context` is valid for writes, and the green context is live.
        unsafe { call!(driver, cuCtxFromGreenCtx(&raw mut context, green) creates context) }?;
        Ok(context)
    }
}
