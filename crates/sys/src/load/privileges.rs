//! Programs that have rights which their caller lacks.
#![cfg_attr(
    all(target_os = "linux", not(miri)),
    expect(unsafe_code, reason = "the auxiliary vector is read through C")
)]

/// Whether the program runs with more rights than its caller, so that the caller must not choose code for it, nor files that it
/// writes.
#[doc(hidden)]
#[cfg(all(target_os = "linux", not(miri)))]
#[must_use]
pub fn has_raised_privileges() -> bool {
    const AT_SECURE: core::ffi::c_ulong = 23;
    // SAFETY: `getauxval` of the C library has this signature and no precondition.
    unsafe extern "C" {
        safe fn getauxval(kind: core::ffi::c_ulong) -> core::ffi::c_ulong;
    }
    getauxval(AT_SECURE) != 0
}

/// Other systems have no driver that such a program could be tricked with, and Miri has no C library to ask.
#[doc(hidden)]
#[cfg(not(all(target_os = "linux", not(miri))))]
#[must_use]
pub fn has_raised_privileges() -> bool {
    false
}
