//! NVRTC's bundled headers: CUDA and its C++ libraries.

use std::ffi::{CStr, c_char};
use std::path::Path;
use std::ptr;

use curium_driver::CudaVersion;
use curium_sys::library_call as call;

use super::Nvrtc;
use crate::text::c_text;
use crate::{Error, Result};
use curium_sys::nvrtc::{
    NVRTC_INSTALL_HEADERS_FORCE_OVERWRITE, NVRTC_INSTALL_HEADERS_NO_WAIT, nvrtcBundledHeadersInfo,
};

/// Information about the bundled headers: see [`Nvrtc::bundled_headers`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct BundledHeaders {
    /// The CUDA version of the headers.
    pub version: CudaVersion,
    /// The number of files.
    pub files: u32,
    /// The compressed size in bytes.
    pub compressed: usize,
    /// The approximate installed size in bytes.
    pub uncompressed: usize,
}

/// Flags of [`Nvrtc::install_bundled_headers`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct InstallFlags {
    /// Empties the folder first, even if it contains the headers of this version.
    pub overwrite: bool,
    /// Fails instead of waiting if another process installs into the folder.
    pub no_wait: bool,
}

impl InstallFlags {
    /// Returns the default: installs missing headers, and waits for other processes.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            overwrite: false,
            no_wait: false,
        }
    }

    /// Empties the folder first.
    #[must_use]
    pub const fn with_overwrite(mut self) -> Self {
        self.overwrite = true;
        self
    }

    /// Does not wait for other processes.
    #[must_use]
    pub const fn with_no_wait(mut self) -> Self {
        self.no_wait = true;
        self
    }

    const fn as_raw(self) -> u32 {
        let overwrite = if self.overwrite {
            NVRTC_INSTALL_HEADERS_FORCE_OVERWRITE
        } else {
            0
        };
        overwrite
            | if self.no_wait {
                NVRTC_INSTALL_HEADERS_NO_WAIT
            } else {
                0
            }
    }
}

impl Nvrtc {
    /// Returns information about the bundled headers; `None` if there are none.
    ///
    /// Requires NVRTC of CUDA 13.3.
    ///
    /// # Errors
    ///
    /// Returns the error of NVRTC.
    #[doc(alias = "nvrtcGetBundledHeadersInfo")]
    pub fn bundled_headers(&self) -> Result<Option<BundledHeaders>> {
        let mut info = nvrtcBundledHeadersInfo::default();
        // SAFETY: `info` is valid for writes, and the log may be null.
        unsafe {
            call!(
                self.library.api(),
                nvrtcGetBundledHeadersInfo(&raw mut info, ptr::null_mut())
            )
        }?;
        let major = u32::try_from(info.cudaVersionMajor).unwrap_or_default();
        let minor = u32::try_from(info.cudaVersionMinor).unwrap_or_default();
        Ok((info.available != 0).then(|| BundledHeaders {
            version: CudaVersion::new(major, minor),
            files: info.numFiles,
            compressed: info.compressedSize,
            uncompressed: info.uncompressedSize,
        }))
    }

    /// Installs the bundled headers into `folder`, which is created if it does not exist.
    /// Concurrent installations into the same folder are serialized. To use the headers, pass the
    /// folder, and `cccl` in it, to
    /// [`CompileOptions::with_include_path`](crate::CompileOptions::with_include_path).
    ///
    /// Requires NVRTC of CUDA 13.3.
    ///
    /// # Errors
    ///
    /// [`Error::File`] with NVRTC's message.
    #[doc(alias = "nvrtcInstallBundledHeaders")]
    pub fn install_bundled_headers(
        &self,
        folder: impl AsRef<Path>,
        flags: InstallFlags,
    ) -> Result<()> {
        let folder = folder.as_ref().display().to_string();
        let path = c_text(&folder, || "the folder of the headers".to_owned())?;
        let mut log = ptr::null();
        let path = path.as_ptr();
        // SAFETY: `path` is NUL-terminated, and `log` is valid for writes.
        let result = unsafe {
            call!(
                self.library.api(),
                nvrtcInstallBundledHeaders(path, flags.as_raw(), &raw mut log)
            )
        };
        // SAFETY: NVRTC was not called again on this thread.
        result.map_err(|error| unsafe { explain(error, &folder, log) })
    }

    /// Removes `folder` and **everything in it**, not only the installed headers.
    ///
    /// Requires NVRTC of CUDA 13.3.
    ///
    /// # Errors
    ///
    /// [`Error::File`] with NVRTC's message.
    #[doc(alias = "nvrtcRemoveBundledHeaders")]
    pub fn remove_bundled_headers(&self, folder: impl AsRef<Path>) -> Result<()> {
        let folder = folder.as_ref().display().to_string();
        let path = c_text(&folder, || "the folder of the headers".to_owned())?;
        let mut log = ptr::null();
        let path = path.as_ptr();
        // SAFETY: `path` is NUL-terminated, and `log` is valid for writes.
        let result = unsafe {
            call!(
                self.library.api(),
                nvrtcRemoveBundledHeaders(path, &raw mut log)
            )
        };
        // SAFETY: NVRTC was not called again on this thread.
        result.map_err(|error| unsafe { explain(error, &folder, log) })
    }
}

/// Returns the error with NVRTC's message, if there is one.
///
/// # Safety
///
/// `log` is null, or NVRTC set it and was not called again on this thread.
unsafe fn explain(error: Error, folder: &str, log: *const c_char) -> Error {
    if log.is_null() {
        return error;
    }
    // SAFETY: the caller guarantees a NUL-terminated string, which is copied at once.
    let text = unsafe { CStr::from_ptr(log) }.to_string_lossy();
    let reason = std::io::Error::other(format!("{error}: {text}"));
    Error::File {
        path: folder.into(),
        error: reason,
    }
}
