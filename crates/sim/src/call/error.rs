//! Names and descriptions of the codes.

use std::ffi::c_char;

use curium_sys::CUresult;

use crate::argument::Pointer;
use crate::call::Call;
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuGetErrorName(&self, code: CUresult, name: Pointer<*const c_char>) -> Result {
        self.write_text(code, name, |entry| entry.1)
    }

    pub(crate) fn cuGetErrorString(&self, code: CUresult, text: Pointer<*const c_char>) -> Result {
        self.write_text(code, text, |entry| entry.2)
    }
}
