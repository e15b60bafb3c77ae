//! How a thread's calls and the captures of other threads get along.

use curium_sys::CUstreamCaptureMode;

use crate::call;
use crate::{Driver, Result, release};

/// Runs `operation` such that its harmless queries do not invalidate the captures that other threads have begun, which they do
/// otherwise. What the calling thread captures itself is not protected from it.
pub(crate) fn relaxed<T>(driver: &Driver, operation: impl FnOnce() -> Result<T>) -> Result<T> {
    let _relaxed = Relaxed { driver, before: exchange(driver, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED)? };
    operation()
}

/// Restores the mode of this thread.
struct Relaxed<'a> {
    driver: &'a Driver,
    before: CUstreamCaptureMode,
}

impl Drop for Relaxed<'_> {
    fn drop(&mut self) {
        release(|| exchange(self.driver, self.before).map(|_| ()));
    }
}

/// Sets the mode of this thread and returns the one before.
fn exchange(driver: &Driver, mut mode: CUstreamCaptureMode) -> Result<CUstreamCaptureMode> {
    // SAFETY: `mode` is a valid place that holds a mode and takes the one before.
    unsafe { call!(driver, cuThreadExchangeStreamCaptureMode(&raw mut mode)) }?;
    Ok(mode)
}
