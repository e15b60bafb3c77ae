//! The primary context of a device.

use super::{Context, ContextFlags, Owned};
use crate::call;
use crate::{Device, Result};

/// The state of a device's primary context.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct PrimaryState {
    /// The flags that it has, or will have when it is retained.
    pub flags: ContextFlags,
    /// `true` if any code of this process retains it.
    pub is_active: bool,
}

impl Device {
    /// Retains the primary context: the one that the runtime API and most libraries use. It stays for as long as a clone of the
    /// result, or anything made from it, exists.
    ///
    /// CUDA: `cuDevicePrimaryCtxRetain`.
    ///
    /// # Errors
    ///
    /// An error of the driver.
    #[doc(alias = "cuDevicePrimaryCtxRetain")]
    #[inline]
    pub fn primary_context(&self) -> Result<Context> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: `raw` is valid for writes, and the device belongs to this driver.
        unsafe { call!(self.driver(), cuDevicePrimaryCtxRetain(&raw mut raw, self.as_raw()) creates raw) }
            .map_err(|error| error.about(format!("primary context of device {}", self.as_raw())))?;
        Ok(Context::new(raw, self, Owned::Primary))
    }

    /// Returns the state of the primary context without creating it.
    ///
    /// CUDA: `cuDevicePrimaryCtxGetState`.
    ///
    /// # Errors
    ///
    /// An error of the driver.
    #[doc(alias = "cuDevicePrimaryCtxGetState")]
    #[inline]
    pub fn primary_state(&self) -> Result<PrimaryState> {
        let (mut flags, mut active) = (0, 0);
        // SAFETY: `flags` and `active` are valid for writes.
        unsafe { call!(self.driver(), cuDevicePrimaryCtxGetState(self.as_raw(), &raw mut flags, &raw mut active)) }?;
        Ok(PrimaryState { flags: ContextFlags::from_bits_retain(flags), is_active: active != 0 })
    }

    /// Sets the flags of the primary context, in place of those before, for all code of this process.
    ///
    /// CUDA: `cuDevicePrimaryCtxSetFlags_v2`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for flags that exclude each other or that a primary context cannot have, such as
    /// [`ContextFlags::MAP_HOST`], which it has anyway.
    #[doc(alias = "cuDevicePrimaryCtxSetFlags")]
    #[inline]
    pub fn set_primary_flags(&self, flags: ContextFlags) -> Result<()> {
        // SAFETY: the call takes no pointer, and the driver checks the flags.
        let result = unsafe { call!(self.driver(), cuDevicePrimaryCtxSetFlags_v2(self.as_raw(), flags.bits())) };
        result.map_err(|error| error.about(format!("{flags:?}")))
    }

    /// Destroys the primary context and everything in it, whoever made it, and leaves the retentions as they are.
    ///
    /// This does not undo an error that is sticky.
    ///
    /// CUDA: `cuDevicePrimaryCtxReset_v2`.
    ///
    /// # Safety
    ///
    /// - No code of this process uses anything of the primary context after this: contexts, streams, events, memory, modules, on
    ///   any thread.
    /// - That includes dropping: every handle of this crate that was made from the primary context is gone or forgotten.
    ///
    /// # Errors
    ///
    /// An error of the driver.
    #[doc(alias = "cuDevicePrimaryCtxReset")]
    #[inline]
    pub unsafe fn reset_primary_context(&self) -> Result<()> {
        // SAFETY: the caller guarantees that nothing of the context is used any more.
        unsafe { call!(self.driver(), cuDevicePrimaryCtxReset_v2(self.as_raw())) }
    }
}
