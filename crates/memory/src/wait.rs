//! Waits for work before its memory is released.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::mem::ManuallyDrop;
use std::thread;
use std::time::{Duration, Instant};

use curium_driver::extend::{dropping, leak, report, with_relaxed_capture_mode, with_relaxed_capture_mode_if_possible};
use curium_driver::{Context, Driver, Error, Event, LeakedMemory, Result, Stream};

/// The number of retries before memory is leaked: the first error may come from earlier work.
const RETRIES: u32 = 2;
/// The time for which a failed wait is retried, and the interval between two attempts.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(10);
/// The environment variable that replaces [`PATIENCE`]: a number of seconds, or `never`.
const ABORT_AFTER: &str = "CURIUM_ABORT_AFTER";

/// Waits until all work on `stream` has completed. If this fails, the memory that the work accesses must be leaked.
///
/// # Errors
///
/// The error of the last attempt.
pub(crate) fn before_free(stream: &Stream) -> Result<()> {
    // In the common case the stream is idle and needs no wait.
    if stream.is_finished().unwrap_or(false) { Ok(()) } else { repeated(|| stream.synchronize()) }
}

/// Waits like [`before_free`], for the work before an event.
///
/// # Errors
///
/// As for [`before_free`].
pub(crate) fn before_free_event(event: &Event) -> Result<()> {
    repeated(|| event.synchronize())
}

/// Waits like [`before_free`], for all work in a context. Fails while a stream of the context is being captured.
///
/// # Errors
///
/// As for [`before_free`].
pub(crate) fn before_free_context(context: &Context) -> Result<()> {
    repeated(|| context.synchronize())
}

/// Calls `free` for memory of `bytes` bytes that is being dropped, a second time if it fails, because no caller can. If that fails too,
/// the memory is leaked, counted and reported.
///
/// Captures of other code, on other threads, neither prevent this nor are invalidated by it.
pub(crate) fn free_or_leak(driver: &Driver, bytes: u64, mut free: impl FnMut() -> Result<()>) {
    let free = || with_relaxed_capture_mode_if_possible(driver, || free().or_else(|_| free()));
    if let Some(Err(error)) = dropping(free) {
        leak(driver, LeakedMemory::new(1, bytes), &error);
    }
}

/// Drops `value`, which owns memory of `bytes` bytes, after `wait` for its uses. If a second attempt fails too, the memory is leaked,
/// counted and reported, unless the context is lost: then nothing accesses the memory.
///
/// Captures of other code, on other threads, neither prevent this nor are invalidated by it.
pub(crate) fn drop_or_leak<T>(driver: &Driver, bytes: u64, value: T, mut wait: impl FnMut() -> Result<()>) {
    // Not dropped if the process is exiting.
    let value = ManuallyDrop::new(value);
    let waited = dropping(|| {
        let waited = with_relaxed_capture_mode_if_possible(driver, || wait().or_else(|_| wait()));
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
    let again = |result: Result<()>, _| result.or_else(|_: Error| wait());
    (0..RETRIES).fold(wait(), again)
}

/// Waits until all work on `stream` has completed. Afterwards the device no longer accesses memory that the work
/// borrowed.
///
/// Retries a failed wait for ten seconds, or for the time that `CURIUM_ABORT_AFTER` sets. If no attempt succeeds,
/// writes the reason to standard error and aborts the process: the caller would reuse memory that the device may still
/// write, and leaking it is not possible. See the documentation of [`copy`](crate::copy).
///
/// # Errors
///
/// The error of earlier asynchronous work, or of the wait.
pub(crate) fn until_done(stream: &Stream) -> Result<()> {
    stream.synchronize().inspect_err(|error| wait_or_abort(stream, error))
}

#[cold]
fn wait_or_abort(stream: &Stream, error: &Error) {
    let (begin, patience) = (Instant::now(), patience(std::env::var_os(ABORT_AFTER).as_deref()));
    while !is_done(stream) {
        if patience.is_some_and(|patience| begin.elapsed() >= patience) {
            report(error);
            // Standard error reaches programs without a `tracing` subscriber. A failure to write is ignored.
            let _ = writeln!(
                io::stderr(),
                "curium: memory that the device may still use cannot be waited for, and the process aborts \
                 ({ABORT_AFTER}=SECONDS or {ABORT_AFTER}=never changes when): {error}"
            );
            std::process::abort();
        }
        thread::sleep(PAUSE);
    }
}

/// Returns the time limit from the value of the variable; `None` means no limit.
fn patience(value: Option<&OsStr>) -> Option<Duration> {
    let Some(value) = value.and_then(OsStr::to_str) else { return Some(PATIENCE) };
    match value.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) if value == "never" => None,
        Err(_) => Some(PATIENCE),
    }
}

/// Waits in the relaxed capture mode, so that captures on other threads do not interfere. Returns `true` if the work
/// has completed.
fn is_done(stream: &Stream) -> bool {
    match with_relaxed_capture_mode(stream.driver(), || stream.synchronize()) {
        Ok(()) => true,
        // A lost context runs no work.
        Err(error) => error.is_sticky(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_is_a_number_of_seconds_or_without_end() {
        let of = |value: &str| patience(Some(OsStr::new(value)));
        assert_eq!((of("0"), of("3"), of("never")), (Some(Duration::ZERO), Some(Duration::from_secs(3)), None));
        assert_eq!((of("soon"), patience(None)), (Some(PATIENCE), Some(PATIENCE)));
    }
}
