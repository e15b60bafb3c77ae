//! Memory, images and semaphores shared between CUDA and OpenGL, EGL or Vulkan, on a machine with a
//! GPU that supports them.
//!
//! They run with `CURIUM_TEST_DRIVER=cuda`. If an interface cannot be opened its tests are skipped,
//! or fail with `CURIUM_TEST_GRAPHICS=required`.
#![cfg(all(target_os = "linux", not(miri)))]

mod buffer;
mod egl;
mod egl_image;
mod egl_stream;
mod external_image;
mod external_memory;
mod external_semaphore;
mod image;
mod opengl;
mod vulkan;

use curium_tests::{TestDriver, TestResult, on_driver, skip, uses_cuda};

/// Runs a test on this machine's driver with the interface that `open` opens.
fn on_hardware<I>(
    open: impl FnOnce(&TestDriver) -> Result<I, String>,
    test: impl FnOnce(&TestDriver, &I) -> TestResult,
) -> TestResult {
    if !uses_cuda() {
        return skip("needs a GPU");
    }
    on_driver(|driver| match open(driver) {
        Ok(interface) => test(driver, &interface),
        Err(reason) => {
            let is_required =
                std::env::var_os("CURIUM_TEST_GRAPHICS").is_some_and(|value| value == "required");
            assert!(!is_required, "the interface cannot be opened: {reason}");
            skip(&reason)
        }
    })
}
