//! Waiting for work that uses memory which is about to leave its hands.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::thread;
use std::time::{Duration, Instant};

use curium_driver::{Context, Event};
use curium_driver::{Error, Result, Stream, report, with_relaxed_capture_mode};

/// How often a wait is repeated before memory is leaked: the first error may be that of earlier work.
const RETRIES: u32 = 2;
/// How long a failed wait is repeated, and the pause between two attempts.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(10);
/// The environment variable that replaces [`PATIENCE`]: a number of seconds, or `never`.
const ABORT_AFTER: &str = "CURIUM_ABORT_AFTER";

/// Waits until all work on `stream` is done. The memory that it uses may be freed if this succeeds, and must be leaked otherwise.
///
/// # Errors
///
/// The error of the last wait, if none succeeded.
#[inline]
pub(crate) fn before_free(stream: &Stream) -> Result<()> {
    // An idle stream, which is the common case, needs no wait.
    if stream.is_finished().unwrap_or(false) { Ok(()) } else { repeated(|| stream.synchronize()) }
}

/// As [`before_free`], for the work before an event.
///
/// # Errors
///
/// As for [`before_free`].
#[inline]
pub(crate) fn before_free_event(event: &Event) -> Result<()> {
    repeated(|| event.synchronize())
}

/// As [`before_free`], for all work of a context. It fails while a stream of the context is being captured.
///
/// # Errors
///
/// As for [`before_free`].
#[inline]
pub(crate) fn before_free_context(context: &Context) -> Result<()> {
    repeated(|| context.synchronize())
}

/// Waits, and waits again if that failed.
#[inline]
fn repeated(wait: impl Fn() -> Result<()>) -> Result<()> {
    let again = |result: Result<()>, _| result.or_else(|_: Error| wait());
    (0..RETRIES).fold(wait(), again)
}

/// Waits until all work on `stream` is done. The device does not use the memory that the caller has lent to the work after this returns.
///
/// A failed wait is repeated for ten seconds, or as long as `CURIUM_ABORT_AFTER` says. If none succeeds, the reason is written to the
/// standard error and the process aborts: the memory is the caller's again once this returns, and the device may still write to it.
/// There is nothing to leak instead. The documentation of [`copy`](crate::copy) states this policy.
///
/// # Errors
///
/// That of any work that failed before, or of the wait.
#[inline]
pub(crate) fn until_done(stream: &Stream) -> Result<()> {
    stream.synchronize().inspect_err(|error| wait_or_abort(stream, error))
}

#[cold]
fn wait_or_abort(stream: &Stream, error: &Error) {
    let (begin, patience) = (Instant::now(), patience(std::env::var_os(ABORT_AFTER).as_deref()));
    while !is_done(stream) {
        if patience.is_some_and(|patience| begin.elapsed() >= patience) {
            report(error);
            // Also where nobody subscribes to `tracing`. A failure to write changes nothing.
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

/// How long a failed wait is repeated, by the value of the variable; nothing is for ever.
fn patience(value: Option<&OsStr>) -> Option<Duration> {
    let Some(value) = value.and_then(OsStr::to_str) else { return Some(PATIENCE) };
    match value.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) if value == "never" => None,
        Err(_) => Some(PATIENCE),
    }
}

/// Waits again, such that the captures of other threads are no hindrance. Returns `true` if the work is done.
fn is_done(stream: &Stream) -> bool {
    match with_relaxed_capture_mode(stream.driver(), || stream.synchronize()) {
        Ok(()) => true,
        // A context that is lost does no more work.
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
