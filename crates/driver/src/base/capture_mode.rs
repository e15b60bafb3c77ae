//! How a thread's calls and the captures of other threads get along.

use curium_sys::CUstreamCaptureMode;

use crate::call;
use crate::{Driver, Result};

/// Runs `operation` such that its harmless queries do not invalidate the captures that other threads have begun, which they do
/// otherwise. What the calling thread captures itself is not protected from it.
///
/// # Errors
///
/// That of `operation`, or whatever the driver returns for a mode.
#[doc(hidden)]
#[inline]
pub fn with_relaxed_capture_mode<T>(driver: &Driver, operation: impl FnOnce() -> Result<T>) -> Result<T> {
    let before = exchange(driver, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED)?;
    let result = operation();
    let restored = exchange(driver, before);
    result.and_then(|value| restored.map(|_| value))
}

/// Runs `operation` as [`with_relaxed_capture_mode`] does. It runs in the thread's own mode if the driver refuses to change the mode.
///
/// This is for teardown, which takes place in any case.
#[doc(hidden)]
#[inline]
pub fn with_relaxed_capture_mode_if_possible<T>(driver: &Driver, operation: impl FnOnce() -> T) -> T {
    let before = exchange(driver, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED);
    let value = operation();
    if let Ok(before) = before {
        // The thread stays in the relaxed mode if this fails, which forbids nothing.
        let _ = exchange(driver, before);
    }
    value
}

/// Sets the mode of this thread and returns the one before.
#[inline]
fn exchange(driver: &Driver, mut mode: CUstreamCaptureMode) -> Result<CUstreamCaptureMode> {
    // SAFETY: `mode` is a valid place that holds a mode and takes the one before.
    unsafe { call!(driver, cuThreadExchangeStreamCaptureMode(&raw mut mode)) }?;
    Ok(mode)
}
