//! The stream capture mode of the calling thread.

use curium_sys::CUstreamCaptureMode;

use crate::call;
use crate::{Driver, Result};

/// Runs `operation` in the relaxed capture mode of the calling thread.
///
/// In the other modes, queries such as `cuEventQuery` invalidate the captures that other threads have begun. A capture that the calling
/// thread records itself is not protected.
///
/// CUDA: `cuThreadExchangeStreamCaptureMode`.
///
/// # Errors
///
/// The error of `operation`, or an error of the driver if the mode cannot be set.
#[inline]
pub fn with_relaxed_capture_mode<T>(driver: &Driver, operation: impl FnOnce() -> Result<T>) -> Result<T> {
    let before = exchange(driver, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED)?;
    let restore = RestoreMode { driver, before };
    let result = operation();
    let restored = restore.now();
    result.and_then(|value| restored.map(|()| value))
}

/// Runs `operation` in the relaxed capture mode, or in the thread's own mode if the driver refuses to change it.
///
/// It is for teardown, which takes place in any case.
///
/// CUDA: `cuThreadExchangeStreamCaptureMode`.
#[inline]
pub fn with_relaxed_capture_mode_if_possible<T>(driver: &Driver, operation: impl FnOnce() -> T) -> T {
    let before = exchange(driver, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED);
    // The thread stays in the relaxed mode if this fails, which forbids nothing.
    let _restore = before.ok().map(|before| RestoreMode { driver, before });
    operation()
}

/// Restores the mode of this thread when it is dropped, also if the operation panics.
struct RestoreMode<'a> {
    driver: &'a Driver,
    before: CUstreamCaptureMode,
}

impl RestoreMode<'_> {
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

/// Sets the mode of this thread and returns the one before.
#[inline]
fn exchange(driver: &Driver, mut mode: CUstreamCaptureMode) -> Result<CUstreamCaptureMode> {
    // SAFETY: `mode` is a valid place that holds a mode and takes the one before.
    unsafe { call!(driver, cuThreadExchangeStreamCaptureMode(&raw mut mode)) }?;
    Ok(mode)
}
