//! Waits for work before its memory is released.

use std::mem::ManuallyDrop;

pub(crate) use curium_driver::extend::until_done;
use curium_driver::extend::{dropping, leak, report, with_relaxed_capture_mode_if_possible};
use curium_driver::{Context, Driver, Error, Event, LeakedMemory, Result, Stream};

/// The number of retries before memory is leaked: the first error may come from earlier work.
const RETRIES: u32 = 2;

/// Waits until all work on `stream` has completed. If this fails, the memory that the work accesses
/// must be leaked.
///
/// # Errors
///
/// The error of the last attempt.
pub(crate) fn before_free(stream: &Stream) -> Result<()> {
    // In the common case the stream is idle and needs no wait.
    if stream.is_finished().unwrap_or(false) {
        Ok(())
    } else {
        repeated(|| stream.synchronize())
    }
}

/// Waits like [`before_free`], for the work before an event.
///
/// # Errors
///
/// As for [`before_free`].
pub(crate) fn before_free_event(event: &Event) -> Result<()> {
    repeated(|| event.synchronize())
}

/// Waits like [`before_free`], for all work in a context. Fails while a stream of the context is
/// being captured.
///
/// # Errors
///
/// As for [`before_free`].
pub(crate) fn before_free_context(context: &Context) -> Result<()> {
    repeated(|| context.synchronize())
}

/// Calls `end` for something that is being dropped, a second time if it fails, because no caller
/// can: the first error may come from earlier work. Captures of other code, on other threads,
/// neither prevent this nor are invalidated by it.
///
/// # Errors
///
/// The error of the second attempt.
pub(crate) fn twice(driver: &Driver, mut end: impl FnMut() -> Result<()>) -> Result<()> {
    with_relaxed_capture_mode_if_possible(driver, || end().or_else(|_| end()))
}

/// Calls `free`, up to [`twice`], for memory of `bytes` bytes that is being dropped. If both
/// attempts fail, the memory is leaked, counted and reported.
pub(crate) fn free_or_leak(driver: &Driver, bytes: u64, free: impl FnMut() -> Result<()>) {
    if let Some(Err(error)) = dropping(|| twice(driver, free)) {
        leak(driver, LeakedMemory::new(1, bytes), &error);
    }
}

/// Calls `free` for memory of `bytes` bytes that is being dropped and returns to a cache, which
/// makes no driver call that could disturb a capture. If it fails, the memory is leaked, counted
/// and reported.
#[inline]
pub(crate) fn return_or_leak(driver: &Driver, bytes: u64, free: impl FnOnce() -> Result<()>) {
    if let Some(Err(error)) = dropping(free) {
        leak(driver, LeakedMemory::new(1, bytes), &error);
    }
}

/// Drops `value`, which owns memory of `bytes` bytes, after `wait`, up to [`twice`], for its uses.
/// If both attempts fail, the memory is leaked, counted and reported, unless the context is lost:
/// then nothing accesses the memory.
pub(crate) fn drop_or_leak<T>(
    driver: &Driver,
    bytes: u64,
    value: T,
    wait: impl FnMut() -> Result<()>,
) {
    // Not dropped if the process is exiting.
    let value = ManuallyDrop::new(value);
    let waited = dropping(|| {
        let waited = twice(driver, wait);
        if waited.is_ok() || waited.as_ref().is_err_and(Error::is_sticky) {
            drop(ManuallyDrop::into_inner(value));
        }
        waited
    });
    match waited {
        Some(Err(error)) if error.is_sticky() => report(&error),
        Some(Err(error)) => leak(driver, LeakedMemory::new(1, bytes), &error),
        Some(Ok(())) | None => {}
    }
}

/// Waits, and retries on failure.
fn repeated(wait: impl Fn() -> Result<()>) -> Result<()> {
    let mut result = wait();
    for _ in 0..RETRIES {
        if result.is_err() {
            result = wait();
        }
    }
    result
}
