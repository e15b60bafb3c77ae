//! Waiting for work that uses memory which is about to leave its hands.

use std::thread;
use std::time::Duration;

use curium_driver::{Result, Stream, relaxed, report};

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
#[inline]
pub(crate) fn until_done(stream: &Stream) -> Result<()> {
    stream.synchronize().inspect_err(|error| {
        if !(0..ATTEMPTS).any(|attempt| is_done(stream, attempt)) {
            report(error);
            std::process::abort();
        }
    })
}

/// Tries to wait again, such that the captures of other threads are no hindrance, and says whether the work is done.
#[cold]
#[inline]
fn is_done(stream: &Stream, attempt: u32) -> bool {
    if attempt > 0 {
        thread::sleep(PAUSE);
    }
    match relaxed(stream.driver(), || stream.synchronize()) {
        Ok(()) => true,
        // A context that is lost does no more work.
        Err(error) => error.is_sticky(),
    }
}
