//! The security attributes of shareable Win32 handles.

use std::ffi::c_void;
use std::ptr;

/// `OBJECT_ATTRIBUTES` of Windows.
#[repr(C)]
struct ObjectAttributes {
    length: u32,
    root_directory: *mut c_void,
    object_name: *const c_void,
    attributes: u32,
    security_descriptor: *const c_void,
    security_quality_of_service: *const c_void,
}

/// `SECURITY_ATTRIBUTES` of Windows.
#[repr(C)]
struct SecurityAttributes {
    length: u32,
    security_descriptor: *const c_void,
    inherits: i32,
}

// SAFETY: the pointers are null.
unsafe impl Sync for ObjectAttributes {}
// SAFETY: the pointers are null.
unsafe impl Sync for SecurityAttributes {}

/// An object without a name, with the default security descriptor of the process.
static OBJECT: ObjectAttributes = ObjectAttributes {
    length: size_of::<ObjectAttributes>() as u32,
    root_directory: ptr::null_mut(),
    object_name: ptr::null(),
    attributes: 0,
    security_descriptor: ptr::null(),
    security_quality_of_service: ptr::null(),
};

/// The same for handles that child processes do not inherit.
static SECURITY: SecurityAttributes = SecurityAttributes {
    length: size_of::<SecurityAttributes>() as u32,
    security_descriptor: ptr::null(),
    inherits: 0,
};

/// Returns what `CUmemAllocationProp` requires for memory with Win32 handles. The driver only reads
/// it.
pub(crate) fn object_attributes() -> *mut c_void {
    (&raw const OBJECT).cast_mut().cast()
}

/// Returns what `CUmemPoolProps` requires for pools with Win32 handles. The driver only reads it.
pub(crate) fn handle_attributes() -> *mut c_void {
    (&raw const SECURITY).cast_mut().cast()
}
