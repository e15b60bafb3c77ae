//! The symbols of an open library.

use core::ffi::{CStr, c_void};

use libloading::Library;
#[cfg(unix)]
use libloading::os::unix;

/// The symbols of an open library, which is closed on drop.
#[derive(Debug)]
pub(super) struct Symbols {
    /// The handle of the system's loader. `Library::get` would copy each name and each error
    /// message.
    #[cfg(unix)]
    handle: *mut c_void,
    #[cfg(not(unix))]
    library: Library,
}

#[cfg(unix)]
impl Symbols {
    pub(super) fn new(library: Library) -> Self {
        Self {
            handle: unix::Library::from(library).into_raw(),
        }
    }

    /// Returns the address of a symbol, null if the library does not export it.
    pub(super) fn address(&self, name: &CStr) -> *const c_void {
        // SAFETY: the handle belongs to an open library, and the name ends with a NUL.
        unsafe { dlsym(self.handle, name.as_ptr()) }
    }
}

#[cfg(unix)]
impl Drop for Symbols {
    fn drop(&mut self) {
        // SAFETY: the handle came from `into_raw` and is not used afterwards.
        drop(unsafe { unix::Library::from_raw(self.handle) });
    }
}

#[cfg(not(unix))]
impl Symbols {
    pub(super) fn new(library: Library) -> Self {
        Self { library }
    }

    /// Returns the address of a symbol, null if the library does not export it.
    pub(super) fn address(&self, name: &CStr) -> *const c_void {
        // SAFETY: the symbol is read as an address only, which has the size of a function pointer.
        let symbol = unsafe { self.library.get::<*const c_void>(name.to_bytes_with_nul()) };
        symbol.map_or(core::ptr::null(), |symbol| *symbol)
    }
}

// SAFETY: `dlsym` of the C library has this signature. `libloading` links to it.
#[cfg(unix)]
unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const core::ffi::c_char) -> *mut c_void;
}
