//! Handing PTX to the driver's compiler, and what it says about it.

use std::borrow::Cow;
use std::ffi::{CString, c_uint, c_void};

use curium_sys::{CUjit_option, CUresult, CudaVersion};

use crate::error::CallError;
use crate::{Driver, Error, Result};

/// Room for what the compiler writes, in bytes.
const LOG_SIZE: usize = 16 * 1024;

/// PTX text as C reads it, checked to be text of that kind: the driver would take other bytes for a binary image, and may crash
/// on a broken one.
pub(crate) fn checked_ptx(operation: &'static str, ptx: &str) -> Result<CString> {
    let start = ptx.trim_start();
    if !start.starts_with('.') && !start.starts_with('/') {
        let found: String = start.chars().take(12).collect();
        return Err(Error::argument(
            operation,
            format!("PTX begins with a directive or a comment, not with {found:?}"),
        ));
    }
    CString::new(ptx).map_err(|error| {
        let position = error.nul_position();
        Error::argument(operation, format!("the PTX has a NUL at byte {position} of {}", ptx.len()))
    })
}

/// The options that have the compiler write down its errors.
pub(crate) struct Log {
    buffer: Box<[u8]>,
    options: [CUjit_option; 2],
    values: [*mut c_void; 2],
}

impl Log {
    pub(crate) fn new() -> Self {
        let mut buffer = vec![0; LOG_SIZE].into_boxed_slice();
        let options = [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        let values = [buffer.as_mut_ptr().cast(), std::ptr::without_provenance_mut(LOG_SIZE)];
        Self { buffer, options, values }
    }

    pub(crate) fn len(&self) -> c_uint {
        2
    }

    pub(crate) fn options(&mut self) -> *mut CUjit_option {
        self.options.as_mut_ptr()
    }

    pub(crate) fn values(&mut self) -> *mut *mut c_void {
        self.values.as_mut_ptr()
    }

    /// Whether the compiler wrote nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.first().is_none_or(|byte| *byte == 0)
    }

    /// Adds to `error` what the compiler wrote, and advice where the reason is the version of `ptx`.
    #[cold]
    pub(crate) fn explain(&self, driver: &Driver, ptx: &str, error: Error) -> Error {
        let end = self.buffer.iter().position(|byte| *byte == 0).unwrap_or(self.buffer.len());
        let log = String::from_utf8_lossy(&self.buffer[..end]);
        error.with_log(&log).advised(|error| version_advice(driver, ptx, error))
    }
}

/// What the version of `ptx` needs, if that is what failed.
fn version_advice(driver: &Driver, ptx: &str, error: &CallError) -> Option<Cow<'static, str>> {
    if error.code != CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION {
        return None;
    }
    let version = ptx.lines().find_map(|line| line.trim().strip_prefix(".version"))?;
    let number = version.split_whitespace().next()?;
    let (major, minor) = number.split_once('.')?;
    let needed = cuda_of_ptx(major.parse().ok()?, minor.parse().ok()?)?;
    let found = driver.version();
    Some(Cow::Owned(format!(
        "PTX {major}.{minor} needs a driver for CUDA {needed} or newer, and this one is for CUDA {found}: update the driver, or \
         compile for an older PTX version"
    )))
}

/// The CUDA version that brought a version of PTX.
fn cuda_of_ptx(major: u32, minor: u32) -> Option<CudaVersion> {
    Some(match (major, minor) {
        (7, minor) => CudaVersion::new(11, minor),
        (8, 0..=5) => CudaVersion::new(12, minor),
        (8, minor) => CudaVersion::new(12, minor + 1),
        (9, minor) => CudaVersion::new(13, minor),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ptx_versions_map_to_the_cuda_that_brought_them() {
        assert_eq!(cuda_of_ptx(7, 8), Some(CudaVersion::new(11, 8)));
        assert_eq!(cuda_of_ptx(8, 5), Some(CudaVersion::new(12, 5)));
        assert_eq!(cuda_of_ptx(8, 8), Some(CudaVersion::new(12, 9)));
        assert_eq!(cuda_of_ptx(9, 0), Some(CudaVersion::new(13, 0)));
    }

    #[test]
    fn text_that_is_no_ptx_is_refused() {
        for text in ["", "\u{7f}ELF", "int main() {}"] {
            assert!(checked_ptx("test", text).is_err(), "{text:?}");
        }
        assert!(checked_ptx("test", ".version 7.8\0").is_err());
        assert!(checked_ptx("test", "\n// made by hand\n.version 7.8\n").is_ok());
    }
}
