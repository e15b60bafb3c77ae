//! The calling thread's stack of current contexts, as the driver sees it.

use std::ptr;

use curium_driver::{Device, Driver, Result, call};
use curium_sys::CUcontext;

/// Contexts that a test made current on its thread, to check that an operation does not change the
/// stack.
pub struct ContextStack<'a> {
    driver: &'a Driver,
    pushed: Vec<CUcontext>,
}

/// A context created by `cuCtxCreate_v2`, which is not a device's primary context.
pub struct CreatedContext {
    driver: Driver,
    raw: CUcontext,
}

impl<'a> ContextStack<'a> {
    /// Makes `contexts` current one after the other on a thread without a current context; the last
    /// becomes current.
    ///
    /// # Panics
    ///
    /// Panics if a context is already current, or if the driver call fails.
    #[must_use]
    pub fn push(driver: &'a Driver, contexts: &[CUcontext]) -> Self {
        assert!(
            current(driver).is_null(),
            "a context is already current on this thread"
        );
        for context in contexts {
            // SAFETY: the tests pass live contexts of this driver.
            unsafe { call!(driver, cuCtxPushCurrent_v2(*context)) }
                .expect("cuCtxPushCurrent failed");
        }
        Self {
            driver,
            pushed: contexts.to_vec(),
        }
    }

    /// Pops the contexts. `operation` is the subject of the message.
    ///
    /// # Panics
    ///
    /// Panics if the stack differs from the one that was pushed.
    #[track_caller]
    pub fn assert_unchanged(mut self, operation: &str) {
        let driver = self.driver;
        for (depth, expected) in std::mem::take(&mut self.pushed)
            .into_iter()
            .rev()
            .enumerate()
        {
            assert_eq!(
                current(driver),
                expected,
                "{operation}: the context {depth} below the top of the stack"
            );
            pop(driver);
        }
        let leftover = current(driver);
        assert!(
            leftover.is_null(),
            "{operation}: a context was left on the stack: {leftover:?}"
        );
    }

    /// Pops all contexts.
    ///
    /// # Panics
    ///
    /// Panics if the driver call fails.
    pub fn clear(mut self) {
        self.pushed.clear();
        while !current(self.driver).is_null() {
            pop(self.driver);
        }
    }
}

/// Pops what a test that ended early left on its thread, which the harness may use for another
/// test.
impl Drop for ContextStack<'_> {
    fn drop(&mut self) {
        for _ in &self.pushed {
            // A failure hides that of the test.
            let _ = try_pop(self.driver);
        }
    }
}

impl CreatedContext {
    /// Creates a context on `device` without making it current.
    ///
    /// # Panics
    ///
    /// Panics if the driver call fails.
    #[must_use]
    pub fn new(device: &Device) -> Self {
        let driver = device.driver().clone();
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` is valid for writes, and the device belongs to this driver.
        unsafe { call!(&driver, cuCtxCreate_v2(&raw mut raw, 0, device.as_raw())) }
            .expect("cuCtxCreate failed");
        pop(&driver);
        Self { driver, raw }
    }

    /// Returns the driver's handle.
    #[must_use]
    pub fn as_raw(&self) -> CUcontext {
        self.raw
    }
}

impl Drop for CreatedContext {
    fn drop(&mut self) {
        // SAFETY: the context is live, and owns no objects.
        let result = unsafe { call!(&self.driver, cuCtxDestroy_v2(self.raw)) };
        if !std::thread::panicking() {
            result.expect("cuCtxDestroy failed");
        }
    }
}

fn current(driver: &Driver) -> CUcontext {
    let mut context = ptr::null_mut();
    // SAFETY: `context` is valid for writes.
    unsafe { call!(driver, cuCtxGetCurrent(&raw mut context)) }.expect("cuCtxGetCurrent failed");
    context
}

fn pop(driver: &Driver) {
    try_pop(driver).expect("cuCtxPopCurrent failed");
}

fn try_pop(driver: &Driver) -> Result<()> {
    let mut context = ptr::null_mut();
    // SAFETY: `context` is valid for writes.
    unsafe { call!(driver, cuCtxPopCurrent_v2(&raw mut context)) }
}
