//! A memory barrier on every thread of the process, which one thread executes for all.
//!
//! Linux: `membarrier` with `MEMBARRIER_CMD_PRIVATE_EXPEDITED`, since 4.14. Sandboxes may refuse
//! it, and other systems lack it.

use std::ffi::c_int;
use std::sync::LazyLock;

const PRIVATE_EXPEDITED: c_int = 1 << 3;
const REGISTER_PRIVATE_EXPEDITED: c_int = 1 << 4;

/// `true` if the system has registered this process.
static IS_REGISTERED: LazyLock<bool> = LazyLock::new(|| call(REGISTER_PRIVATE_EXPEDITED));

/// Returns `true` if [`execute`] works. The system does not withdraw it, except from a process that
/// later confines itself.
pub(super) fn is_available() -> bool {
    *IS_REGISTERED
}

/// Makes every running thread of the process execute a barrier. Returns `false` if the system
/// refuses.
pub(super) fn execute() -> bool {
    call(PRIVATE_EXPEDITED)
}

#[cfg(all(target_os = "linux", not(miri)))]
fn call(command: c_int) -> bool {
    let flags: c_int = 0;
    let processor: c_int = 0;
    // SAFETY: the call takes three numbers, and accesses no memory of the process.
    unsafe { libc::syscall(libc::SYS_membarrier, command, flags, processor) == 0 }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn call(_command: c_int) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn barrier_that_is_available_can_be_executed() {
        assert!(!is_available() || execute());
    }
}
