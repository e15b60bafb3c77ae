//! Waiting for work that uses memory which is about to leave its hands.

use std::thread;
use std::time::Duration;

use curium_driver::{Error, Result, Stream, relaxed, report};

/// How often a wait that has failed is tried again where nothing else will do, and the pause before.
const ATTEMPTS: u32 = 1000;
const PAUSE: Duration = Duration::from_millis(10);

/// Waits until all work on `stream` is done, whatever the driver says: afterwards the device does not use what the work was given, which
/// is the caller's for no longer.
///
/// If the driver will not say for ten seconds that the work is done, the process is aborted: the device may write to memory that
/// belongs to somebody else by then.
///
/// # Errors
///
/// That of any work that failed before, or of the wait.
pub(crate) fn until_done(stream: &Stream) -> Result<()> {
    stream.synchronize().inspect_err(|error| {
        let is_over = is_over(error) || (0..ATTEMPTS).any(|attempt| is_done(stream, attempt));
        if !is_over {
            report(error);
            std::process::abort();
        }
    })
}

/// Waits until all work on `stream` is done, so that what it uses can be freed. An error of that work is no concern.
///
/// # Errors
///
/// That of the wait, if the work may still be running.
pub(crate) fn before_free(stream: &Stream) -> Result<()> {
    match stream.synchronize() {
        Err(error) if !is_over(&error) && !is_done(stream, 0) => Err(error),
        _ => Ok(()),
    }
}

/// Whether the context that an error tells of does no more work.
fn is_over(error: &Error) -> bool {
    error.is_sticky()
}

/// Tries to wait again, such that the captures of other threads are no hindrance, and says whether the work is done.
#[cold]
fn is_done(stream: &Stream, attempt: u32) -> bool {
    if attempt > 0 {
        thread::sleep(PAUSE);
    }
    match relaxed(stream.driver(), || stream.synchronize()) {
        Ok(()) => true,
        Err(error) => is_over(&error),
    }
}
