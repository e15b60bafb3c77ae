//! The stream capture mode of the calling thread.

use curium_sys::CUstreamCaptureMode;

use crate::call;
use crate::{Driver, Result};

/// Runs `operation` with the calling thread in the relaxed capture mode.
///
/// In the other modes, a query such as `cuEventQuery` invalidates captures in progress on other
/// threads. A capture on the calling thread is not protected.
///
/// CUDA: `cuThreadExchangeStreamCaptureMode`.
///
/// # Errors
///
/// The error of `operation`, or an error returned by the driver if the mode cannot be set.
#[inline]
pub fn with_relaxed_capture_mode<T>(
    driver: &Driver,
    operation: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let restore = RestoreMode::relax(driver)?;
    let result = operation();
    let restored = restore.now();
    result.and_then(|value| restored.map(|()| value))
}

/// Runs `operation` with the calling thread in the relaxed capture mode, or in its current mode if
/// the driver cannot change it.
///
/// Used for teardown, which must take place in any case.
///
/// CUDA: `cuThreadExchangeStreamCaptureMode`.
#[inline]
pub fn with_relaxed_capture_mode_if_possible<T>(
    driver: &Driver,
    operation: impl FnOnce() -> T,
) -> T {
    // If restoring fails, the thread stays in the relaxed mode, which forbids nothing.
    let _restore = RestoreMode::relax(driver).ok();
    operation()
}

/// Restores the thread's mode when dropped, including on panic.
struct RestoreMode<'a> {
    driver: &'a Driver,
    before: CUstreamCaptureMode,
}

impl<'a> RestoreMode<'a> {
    /// Puts the thread in the relaxed mode.
    fn relax(driver: &'a Driver) -> Result<Self> {
        let before = exchange(driver, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED)?;
        Ok(Self { driver, before })
    }

    fn now(self) -> Result<()> {
        let restored = exchange(self.driver, self.before);
        std::mem::forget(self);
        restored.map(drop)
    }
}

impl Drop for RestoreMode<'_> {
    fn drop(&mut self) {
        let _ = exchange(self.driver, self.before);
    }
}

/// Sets the mode of this thread and returns the previous one.
fn exchange(driver: &Driver, mut mode: CUstreamCaptureMode) -> Result<CUstreamCaptureMode> {
    // SAFETY: `mode` is valid for reads and writes; the driver reads the new mode and writes the
    // previous one.
    unsafe { call!(driver, cuThreadExchangeStreamCaptureMode(&raw mut mode)) }?;
    Ok(mode)
}
