//! Waiting for work that uses memory which the caller of a safe function has lent.

use std::thread;
use std::time::Duration;

use curium_driver::{Error, Result, Stream};

/// How often a stream is asked whether it is done after a wait for it has failed.
const ATTEMPTS: u32 = 1000;
const PAUSE: Duration = Duration::from_millis(10);

/// Waits until all work on `stream` is done, whatever the driver says: afterwards the device does not use what the work was given.
///
/// # Errors
///
/// That of any work that failed before, or of the wait.
///
/// # Panics
///
/// It does not: if the driver will not say for ten seconds that the work is done, the process is aborted, since the device may still
/// write into memory whose borrow is about to end.
pub(crate) fn until_done(stream: &Stream) -> Result<()> {
    stream.synchronize().map_err(|error| {
        make_sure(stream, &error);
        error
    })
}

/// Makes sure that no work is left on `stream` after a wait for it has failed.
#[cold]
fn make_sure(stream: &Stream, error: &Error) {
    // A context that is lost does no more work.
    let mut is_over = error.is_sticky();
    for _ in 0..ATTEMPTS {
        is_over = is_over
            || match stream.is_finished() {
                Ok(finished) => finished,
                Err(error) => error.is_sticky(),
            };
        if is_over {
            return;
        }
        thread::sleep(PAUSE);
    }
    abort(error);
}

#[cold]
fn abort(error: &Error) -> ! {
    curium_driver::report(error);
    std::process::abort()
}
