//! The precision of the thread's sleeps.

/// Makes the sleeps of the calling thread precise. Linux delays the end of a sleep by up to 50 µs
/// otherwise, to combine wake-ups.
pub(super) fn minimize() {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        const PR_SET_TIMERSLACK: std::ffi::c_int = 29;
        /// In nanoseconds.
        const SLACK: std::ffi::c_ulong = 1_000;
        // SAFETY: the option takes one number, and changes only the calling thread. It cannot fail.
        unsafe { prctl(PR_SET_TIMERSLACK, SLACK) };
    }
}

// SAFETY: `prctl` of the C library has this signature.
#[cfg(all(target_os = "linux", not(miri)))]
unsafe extern "C" {
    fn prctl(option: std::ffi::c_int, ...) -> std::ffi::c_int;
}
