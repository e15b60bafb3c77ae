//! Detection of set-uid programs.
#![cfg_attr(
    all(target_os = "linux", not(miri)),
    expect(
        unsafe_code,
        reason = "the auxiliary vector is read through the C library"
    )
)]

/// Returns `true` if the program runs with more privileges than its caller (set-uid, set-gid, file
/// capabilities).
///
/// The environment of such a program must not select code that it loads or files that it writes.
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

/// Returns `false`: CUDA supports no other system with set-uid programs, and Miri cannot read the
/// auxiliary vector.
#[cfg(not(all(target_os = "linux", not(miri))))]
#[must_use]
pub fn has_raised_privileges() -> bool {
    false
}
