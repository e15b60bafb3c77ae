//! Copies of the function table of a library, in which a test replaces functions.

use std::ffi::{CStr, c_void};
use std::ptr;

use curium_sys::FunctionTable;

/// Returns the address of a function of a table; null if the library lacks the function.
///
/// # Panics
///
/// Panics if tables of this type do not list the function.
#[must_use]
pub fn address_of<T: FunctionTable>(table: &T, name: &CStr) -> *const c_void {
    let index = T::FUNCTIONS
        .iter()
        .position(|function| function.c_name() == name)
        .expect("the function is listed");
    // SAFETY: the table has one slot for each function.
    let slot = unsafe { ptr::from_ref(table).cast::<*const c_void>().add(index) };
    // SAFETY: the slot is a live function pointer or null.
    unsafe { slot.read() }
}

/// Returns a copy of the table of a library that stays loaded.
#[must_use]
pub fn copy_of<T: FunctionTable>(table: &T) -> T {
    // SAFETY: `address_of` returns null or the library's function of this name, and the library
    // stays loaded.
    unsafe { T::from_resolver(|name| address_of(table, name)) }
}
