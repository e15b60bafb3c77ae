//! The symbols of an open library.

use core::ffi::{CStr, c_void};

use libloading::Library;
#[cfg(unix)]
use libloading::os::unix;

/// An open library whose symbols are looked up by the hundred. It is closed when this is dropped.
pub(super) struct Symbols {
    /// The handle of the system's loader. The library's own look-up would copy each name and the text of each failure.
    #[cfg(unix)]
    handle: *mut c_void,
    #[cfg(not(unix))]
    library: Library,
}

#[cfg(unix)]
impl Symbols {
    pub(super) fn of(library: Library) -> Self {
        Self { handle: unix::Library::from(library).into_raw() }
    }

    /// The address of a symbol, null if the library has none of this name.
    pub(super) fn address(&self, name: &CStr) -> *const c_void {
        // SAFETY: the handle is that of an open library, and the name ends with a NUL.
        unsafe { dlsym(self.handle, name.as_ptr()) }
    }
}

#[cfg(unix)]
impl Drop for Symbols {
    fn drop(&mut self) {
        // SAFETY: the handle came from `into_raw` and is not used after this.
        drop(unsafe { unix::Library::from_raw(self.handle) });
    }
}

#[cfg(not(unix))]
impl Symbols {
    pub(super) fn of(library: Library) -> Self {
        Self { library }
    }

    /// The address of a symbol, null if the library has none of this name.
    pub(super) fn address(&self, name: &CStr) -> *const c_void {
        // SAFETY: the symbol is only taken as an address here; a function pointer has the size that is asked for.
        let symbol = unsafe { self.library.get::<*const c_void>(name.to_bytes_with_nul()) };
        symbol.map_or(core::ptr::null(), |symbol| *symbol)
    }
}

// SAFETY: `dlsym` of the C library has this signature. `libloading` has linked to it.
#[cfg(unix)]
unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const core::ffi::c_char) -> *mut c_void;
}
