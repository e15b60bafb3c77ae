//! The texts of codes that `cuGetErrorName` and `cuGetErrorString` return.

use std::ffi::{CStr, c_char};

use curium_sys::CUresult;

use crate::argument::Pointer;
use crate::driver::Driver;
use crate::error_code::{CODES, Entry, NEW_CODES, NEW_CODES_SINCE};
use crate::result::Result;

impl Driver {
    /// Writes one text of the entry for `code`; an unknown code is an invalid value and gives a
    /// null pointer.
    pub(crate) fn write_text(
        &self,
        code: CUresult,
        output: Pointer<*const c_char>,
        text: impl Fn(&Entry) -> &'static CStr,
    ) -> Result {
        let is_known =
            self.config().driver_version >= NEW_CODES_SINCE || !NEW_CODES.contains(&code);
        let entry = CODES.iter().find(|entry| is_known && entry.0 == code);
        output.write(entry.map_or(std::ptr::null(), |entry| text(entry).as_ptr()))?;
        entry.map(|_| ()).ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)
    }
}
