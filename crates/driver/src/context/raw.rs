//! Contexts from and for other code.

use std::any::Any;
use std::ptr;
use std::sync::Arc;

use curium_sys::{CUcontext, CUgreenCtx, Function};

use super::{Context, Owned};
use crate::base::current::Entered;
use crate::base::handle::Handle;
use crate::call;
use crate::{Device, Driver, Result};

/// The handle of a context with what its holder owns.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RawContext {
    /// One retention of a primary context, made by `cuDevicePrimaryCtxRetain` and to be ended by `cuDevicePrimaryCtxRelease`.
    Primary(CUcontext),
    /// A context made by `cuCtxCreate` and to be ended by `cuCtxDestroy`.
    Created(CUcontext),
    /// A context made by `cuGreenCtxCreate` and to be ended by `cuGreenCtxDestroy`.
    Green(CUgreenCtx),
    /// A context that belongs to somebody else.
    Borrowed(CUcontext),
}

impl Context {
    /// Takes over a context that other code made: from now on it ends with this value, unless it is borrowed.
    ///
    /// CUDA: `cuCtxGetDevice`, and `cuCtxFromGreenCtx` for a green context.
    ///
    /// # Safety
    ///
    /// - The handle is that of a live context of `driver`, of the kind that it is said to be.
    /// - Unless it is borrowed, nobody else ends what is taken over.
    /// - If it is borrowed, it stays live for as long as the result, or anything made from it, exists.
    ///
    /// # Errors
    ///
    /// An error of the driver. The context is left as it is then.
    #[inline]
    pub unsafe fn from_raw(driver: &Driver, raw: RawContext) -> Result<Self> {
        let (context, owned) = match raw {
            RawContext::Primary(context) => (context, Owned::Primary),
            RawContext::Created(context) => (context, Owned::Created),
            RawContext::Green(green) => (Self::of_green(driver, green)?, Owned::Green(Handle::new(green))),
            RawContext::Borrowed(context) => (context, Owned::Borrowed { _owner: None }),
        };
        let device = Self::device_of(driver, context)?;
        Ok(Self::new(context, &device, owned))
    }

    /// Borrows a context that `owner` keeps alive, and keeps `owner` until nothing is left of the result.
    ///
    /// CUDA: `cuCtxGetDevice`.
    ///
    /// # Safety
    ///
    /// The handle is that of a context of `driver` that is live for as long as `owner` exists.
    ///
    /// # Errors
    ///
    /// An error of the driver.
    #[inline]
    pub unsafe fn from_raw_with_owner(driver: &Driver, raw: CUcontext, owner: impl Any + Send + Sync) -> Result<Self> {
        let device = Self::device_of(driver, raw)?;
        Ok(Self::new(raw, &device, Owned::Borrowed { _owner: Some(Box::new(owner)) }))
    }

    /// Passes the context to other code, which ends it. The owner of a borrowed context is dropped.
    ///
    /// # Errors
    ///
    /// Gives the context back if clones of it, or things made from it, still exist.
    #[inline]
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

    /// Returns the device of a context, which the caller vouches is live.
    #[inline]
    pub(super) fn device_of(driver: &Driver, context: CUcontext) -> Result<Device> {
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

    /// Returns the handle by which calls that know no green contexts name one.
    #[inline]
    pub(crate) fn of_green(driver: &Driver, green: CUgreenCtx) -> Result<CUcontext> {
        let mut context = ptr::null_mut();
        // SAFETY: `context` is valid for writes, and the green context is live.
        unsafe { call!(driver, cuCtxFromGreenCtx(&raw mut context, green) creates context) }?;
        Ok(context)
    }
}
