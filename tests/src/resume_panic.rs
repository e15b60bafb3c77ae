//! The results of other threads.

use std::panic::resume_unwind;
use std::thread;

/// Returns the value of a thread that was joined: `resume_panic(thread.join())`.
///
/// # Panics
///
/// Panics with the thread's own message if the thread panicked.
pub fn resume_panic<T>(result: thread::Result<T>) -> T {
    result.unwrap_or_else(|payload| resume_unwind(payload))
}
