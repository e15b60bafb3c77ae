//! The primary context of a device.

use super::{Context, ContextFlags, Owned};
use crate::call;
use crate::{Device, Result};

/// The state of a device's primary context.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct PrimaryState {
    /// The flags that are in effect, or will be when the context is retained.
    pub flags: ContextFlags,
    /// `true` if the context is retained by any code of this process.
    pub is_active: bool,
}

impl Device {
    /// Retains the primary context, which the runtime API and most libraries use. It is released
    /// when the last clone of the result, and the last object created from it, is dropped.
    ///
    /// CUDA: `cuDevicePrimaryCtxRetain`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuDevicePrimaryCtxRetain")]
    #[doc(alias = "cudaSetDevice")]
    pub fn primary_context(&self) -> Result<Context> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: `raw` is valid for writes, and the device belongs to this driver.
        unsafe {
            call!(self.driver(), cuDevicePrimaryCtxRetain(&raw mut raw, self.as_raw()) creates raw)
        }
        .map_err(|error| error.about(format!("primary context of device {}", self.as_raw())))?;
        Ok(Context::new(raw, self, Owned::Primary))
    }

    /// Returns the state of the primary context without creating it.
    ///
    /// CUDA: `cuDevicePrimaryCtxGetState`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuDevicePrimaryCtxGetState")]
    pub fn primary_state(&self) -> Result<PrimaryState> {
        let mut flags = 0;
        let mut active = 0;
        // SAFETY: `flags` and `active` are valid for writes.
        unsafe {
            call!(
                self.driver(),
                cuDevicePrimaryCtxGetState(self.as_raw(), &raw mut flags, &raw mut active)
            )
        }?;
        Ok(PrimaryState {
            flags: ContextFlags::from_bits_retain(flags),
            is_active: active != 0,
        })
    }

    /// Sets the flags of the primary context for all code of this process, replacing the previous
    /// ones.
    ///
    /// CUDA: `cuDevicePrimaryCtxSetFlags_v2`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for mutually exclusive flags, or for flags that cannot be set on
    /// a primary context, such as [`ContextFlags::MAP_HOST`], which is always in effect.
    #[doc(alias = "cuDevicePrimaryCtxSetFlags")]
    pub fn set_primary_flags(&self, flags: ContextFlags) -> Result<()> {
        // SAFETY: the call takes no pointer, and the driver checks the flags.
        let result = unsafe {
            call!(
                self.driver(),
                cuDevicePrimaryCtxSetFlags_v2(self.as_raw(), flags.bits())
            )
        };
        result.map_err(|error| error.about(format!("{flags:?}")))
    }

    /// Destroys the primary context and everything in it, and leaves the number of retentions
    /// unchanged.
    ///
    /// A sticky error remains. Memory of a pool belongs to the device and not to the context: it
    /// lives until it is freed.
    ///
    /// CUDA: `cuDevicePrimaryCtxReset_v2`.
    ///
    /// # Safety
    ///
    /// - No code of this process uses any object of the primary context afterwards: contexts,
    ///   streams, events, memory or modules, on any thread.
    /// - This includes dropping: every handle of this crate created from the primary context has
    ///   been dropped or forgotten.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuDevicePrimaryCtxReset")]
    #[doc(alias = "cudaDeviceReset")]
    pub unsafe fn reset_primary_context(&self) -> Result<()> {
        // SAFETY: the caller guarantees that nothing of the context is used any more.
        unsafe { call!(self.driver(), cuDevicePrimaryCtxReset_v2(self.as_raw())) }
    }
}
