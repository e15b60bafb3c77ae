//! External symbols, resolved to host-provided addresses.

use std::ffi::{CStr, c_char, c_void};
use std::fmt;

/// The address of a variable that code declares but does not define.
#[derive(Clone, Copy)]
pub struct HostSymbol<'a> {
    name: &'a CStr,
    address: *mut c_void,
}

// SAFETY: the address is never dereferenced here; only the driver uses it.
unsafe impl Send for HostSymbol<'_> {}
// SAFETY: the address is never dereferenced here; only the driver uses it.
unsafe impl Sync for HostSymbol<'_> {}

impl<'a> HostSymbol<'a> {
    /// Maps the variable `name` of the code to `address`.
    ///
    /// # Safety
    ///
    /// - The device can access `address`, and the memory there has the size and type that the code
    ///   declares for `name`.
    /// - The memory stays valid for as long as code that was loaded with this symbol may run.
    #[must_use]
    pub const unsafe fn new(name: &'a CStr, address: *mut c_void) -> Self {
        Self { name, address }
    }

    pub(super) const fn name(&self) -> *const c_char {
        self.name.as_ptr()
    }

    pub(super) const fn address(&self) -> *mut c_void {
        self.address
    }
}

impl fmt::Debug for HostSymbol<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "HostSymbol({:?} at {:p})",
            self.name, self.address
        )
    }
}
