//! Calls that end the use of borrowed memory, and must therefore succeed.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::thread;
use std::time::{Duration, Instant};

use curium_sys::CUresult;

use crate::base::capture_mode::with_relaxed_capture_mode;
use crate::base::release::report;
use crate::{Driver, Error, Result, Stream};

/// The time for which a failed call is retried, and the interval between two attempts.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(10);
/// The environment variable that replaces [`PATIENCE`]: a number of seconds, or `never`.
const ABORT_AFTER: &str = "CURIUM_ABORT_AFTER";

/// Waits until all work on `stream` has completed. Afterwards the device no longer accesses memory
/// that the work borrowed.
///
/// A failed wait is [retried](retry_or_abort).
///
/// # Errors
///
/// The error of earlier asynchronous work, or of the wait.
pub fn until_done(stream: &Stream) -> Result<()> {
    stream.synchronize().inspect_err(|error| {
        let reason = "memory that the device may still use cannot be waited for";
        // SAFETY: the wait ends the use of the memory that the caller has borrowed for the work on
        // the stream.
        unsafe { retry_or_abort(stream.driver(), error, reason, || stream.synchronize()) };
    })
}

/// Retries `attempt`, which ends the use of borrowed memory and failed with `error`, in the relaxed
/// capture mode, for ten seconds or for the time that `CURIUM_ABORT_AFTER` sets. Returns once it
/// succeeds or the context is lost.
///
/// Otherwise writes `reason` to standard error and aborts the process: the owner would reuse the
/// memory, and leaking it is not possible.
///
/// # Safety
///
/// `attempt` ends the use of memory by the device whose borrow ends when this function returns.
/// Nothing else justifies aborting the process.
#[cold]
pub unsafe fn retry_or_abort(
    driver: &Driver,
    error: &Error,
    reason: &str,
    mut attempt: impl FnMut() -> Result<()>,
) {
    let begin = Instant::now();
    let patience = patience(std::env::var_os(ABORT_AFTER).as_deref());
    while !is_over(driver, &mut attempt) {
        if patience.is_some_and(|patience| begin.elapsed() >= patience) {
            report(error);
            // Standard error reaches programs without a `tracing` subscriber. A failure to write is
            // ignored.
            let _ = writeln!(
                io::stderr(),
                "curium: {reason}, and the process aborts ({ABORT_AFTER}=SECONDS or {ABORT_AFTER}=never changes when): \
                 {error}"
            );
            std::process::abort();
        }
        thread::sleep(PAUSE);
    }
}

/// Returns the time limit from the value of the variable; `None` means no limit.
fn patience(value: Option<&OsStr>) -> Option<Duration> {
    let Some(value) = value.and_then(OsStr::to_str) else {
        return Some(PATIENCE);
    };
    match value.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) if value == "never" => None,
        Err(_) => Some(PATIENCE),
    }
}

/// Calls `wait` in the relaxed capture mode, so that captures on other threads do not interfere.
/// Returns `true` if the work has ended: the wait succeeded, or nothing runs any more, because the
/// context is lost or the driver has shut down.
pub(crate) fn is_over(driver: &Driver, wait: impl FnOnce() -> Result<()>) -> bool {
    match with_relaxed_capture_mode(driver, wait) {
        Ok(()) => true,
        Err(error) => error.is_sticky() || error.code() == Some(CUresult::CUDA_ERROR_DEINITIALIZED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_is_in_seconds_or_unlimited() {
        for (value, expected) in [
            ("0", Some(Duration::ZERO)),
            ("3", Some(Duration::from_secs(3))),
            ("never", None),
            ("soon", Some(PATIENCE)),
        ] {
            assert_eq!(patience(Some(OsStr::new(value))), expected, "{value}");
        }
        assert_eq!(patience(None), Some(PATIENCE));
    }
}
