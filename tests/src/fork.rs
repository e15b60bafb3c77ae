//! Children of this process that share its memory up to their beginning.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// How long a child may take: one that hangs has failed.
const PATIENCE: Duration = Duration::from_secs(60);
/// `WNOHANG` of Linux.
const DO_NOT_WAIT: c_int = 1;
/// `SIGKILL`.
const KILL: c_int = 9;

/// Forks this process, runs `body` in the child, and asserts that it returns and does not panic. The child ends at once then, without
/// what a process does when it exits, unless `body` ends it otherwise.
///
/// # Panics
///
/// If the child panics, dies or hangs, or there can be none.
pub fn in_fork(body: impl FnOnce()) {
    // SAFETY: the child runs `body`, which is written for it, and ends without returning.
    let child = unsafe { fork() };
    assert!(child >= 0, "the process can be forked");
    if child == 0 {
        let failed = catch_unwind(AssertUnwindSafe(body)).is_err();
        // SAFETY: nothing of the child is needed any more.
        unsafe { _exit(if failed { 101 } else { 0 }) };
    }
    let status = wait(child);
    assert_eq!(status, Some(0), "the child's status, if it ended in time");
}

/// Returns the status of a child in the words of `waitpid`; nothing if it had to be killed.
fn wait(child: c_int) -> Option<c_int> {
    let (mut status, deadline) = (0, Instant::now() + PATIENCE);
    loop {
        // SAFETY: `status` is a valid place for the answer, and the child was not waited for yet.
        let ended = unsafe { waitpid(child, &raw mut status, DO_NOT_WAIT) };
        assert!(ended >= 0, "a child can be waited for");
        if ended == child {
            return Some(status);
        }
        if Instant::now() > deadline {
            // SAFETY: the child exists, since it was not waited for.
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
