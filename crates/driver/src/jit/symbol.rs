//! External symbols of code.

use std::ffi::{CStr, c_char, c_void};
use std::fmt;

/// The address of a variable that code declares and does not define.
#[derive(Clone, Copy)]
pub struct HostSymbol<'a> {
    name: &'a CStr,
    address: *mut c_void,
}

// SAFETY: the address is a number here, which only the driver looks behind.
unsafe impl Send for HostSymbol<'_> {}
// SAFETY: as for `Send`.
unsafe impl Sync for HostSymbol<'_> {}

impl<'a> HostSymbol<'a> {
    /// Returns the variable `name` of the code is at `address`.
    ///
    /// # Safety
    ///
    /// - The device can reach `address`, and what is there has the size and the type that the code declares for `name`.
    /// - It stays there for as long as code that was loaded with this symbol may run.
    #[must_use]
    #[inline]
    pub const unsafe fn new(name: &'a CStr, address: *mut c_void) -> Self {
        Self { name, address }
    }

    #[inline]
    pub(super) const fn name(&self) -> *const c_char {
        self.name.as_ptr()
    }

    #[inline]
    pub(super) const fn address(&self) -> *mut c_void {
        self.address
    }
}

impl fmt::Debug for HostSymbol<'_> {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "HostSymbol({:?} at {:p})", self.name, self.address)
    }
}
