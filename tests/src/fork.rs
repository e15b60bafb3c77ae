//! Runs code in forked children of this process.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// The time limit of a child: a child that hangs fails the test.
const PATIENCE: Duration = Duration::from_secs(60);
/// `WNOHANG` of Linux.
const DO_NOT_WAIT: c_int = 1;
/// `SIGKILL`.
const KILL: c_int = 9;

/// Forks this process, runs `body` in the child, and asserts that it returns and does not panic.
/// The child then ends immediately, without running exit handlers, unless `body` ends it otherwise.
///
/// # Panics
///
/// Panics if the child panics, dies or hangs, or if `fork` fails.
pub fn in_fork(body: impl FnOnce()) {
    // SAFETY: the child runs `body`, which is written for this, and ends without returning.
    let child = unsafe { fork() };
    assert!(child >= 0, "the process can be forked");
    if child == 0 {
        let failed = catch_unwind(AssertUnwindSafe(body)).is_err();
        // SAFETY: the child needs no cleanup.
        unsafe { _exit(if failed { 101 } else { 0 }) };
    }
    let status = wait(child);
    assert_eq!(status, Some(0), "the child's status, if it ended in time");
}

/// Returns the wait status of a child, or `None` if it had to be killed.
fn wait(child: c_int) -> Option<c_int> {
    let mut status = 0;
    let deadline = Instant::now() + PATIENCE;
    loop {
        // SAFETY: `status` is valid for writes, and the child has not been waited for yet.
        let ended = unsafe { waitpid(child, &raw mut status, DO_NOT_WAIT) };
        assert!(ended >= 0, "a child can be waited for");
        if ended == child {
            return Some(status);
        }
        if Instant::now() > deadline {
            // SAFETY: the child exists because it has not been waited for.
            unsafe { kill(child, KILL) };
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

// SAFETY: these are functions of the C library with these signatures.
unsafe extern "C" {
    fn fork() -> c_int;
    fn _exit(status: c_int) -> !;
    fn waitpid(child: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn kill(process: c_int, signal: c_int) -> c_int;
}
