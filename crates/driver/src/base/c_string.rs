//! Conversion of names and paths to C strings.

use std::ffi::CString;
use std::path::Path;

use crate::{Error, Result};

/// Converts a name to a C string.
pub(crate) fn c_name(operation: &'static str, name: &str) -> Result<CString> {
    CString::new(name)
        .map_err(|_| Error::argument(operation, format!("name contains a NUL ({name:?})")))
}

/// Converts a path to a C string.
pub(crate) fn c_path(operation: &'static str, path: &Path) -> Result<CString> {
    let bytes = path.as_os_str().as_encoded_bytes();
    CString::new(bytes)
        .map_err(|_| Error::argument(operation, format!("path contains a NUL ({path:?})")))
}
