//! The headers of CUDA and its C++ libraries that NVRTC brings.

use std::ffi::{CStr, c_char};
use std::path::Path;
use std::ptr;

use curium_driver::CudaVersion;

use super::Nvrtc;
use super::api::{NVRTC_INSTALL_HEADERS_FORCE_OVERWRITE, NVRTC_INSTALL_HEADERS_NO_WAIT, nvrtcBundledHeadersInfo};
use crate::api::call;
use crate::text::c_text;
use crate::{Error, Result};

/// What [`Nvrtc::bundled_headers`] tells of the headers within NVRTC.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct BundledHeaders {
    /// The CUDA version that they are of.
    pub version: CudaVersion,
    /// How many files there are.
    pub files: u32,
    /// The bytes that they take within NVRTC.
    pub compressed: usize,
    /// The bytes that they take once installed, about.
    pub uncompressed: usize,
}

/// How [`Nvrtc::install_bundled_headers`] goes about it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct InstallFlags {
    /// Empty the folder first, even if it holds the headers of this version.
    pub overwrite: bool,
    /// Fail if another process installs there, in place of waiting for it.
    pub no_wait: bool,
}

impl InstallFlags {
    /// Install what is not there, and wait for others.
    #[must_use]
    pub const fn new() -> Self {
        Self { overwrite: false, no_wait: false }
    }

    /// The same with the folder emptied first.
    #[must_use]
    pub const fn with_overwrite(mut self) -> Self {
        self.overwrite = true;
        self
    }

    /// The same without waiting for other processes.
    #[must_use]
    pub const fn with_no_wait(mut self) -> Self {
        self.no_wait = true;
        self
    }

    const fn as_raw(self) -> u32 {
        let overwrite = if self.overwrite { NVRTC_INSTALL_HEADERS_FORCE_OVERWRITE } else { 0 };
        overwrite | if self.no_wait { NVRTC_INSTALL_HEADERS_NO_WAIT } else { 0 }
    }
}

impl Nvrtc {
    /// What headers this NVRTC brings; `None` if it brings none.
    ///
    /// Needs NVRTC of CUDA 13.3.
    ///
    /// # Errors
    ///
    /// Whatever NVRTC returns.
    #[doc(alias = "nvrtcGetBundledHeadersInfo")]
    pub fn bundled_headers(&self) -> Result<Option<BundledHeaders>> {
        let mut info = nvrtcBundledHeadersInfo::default();
        // SAFETY: `info` is a valid place for the answer, and the explanation may be left out.
        unsafe { call!(&self.api, nvrtcGetBundledHeadersInfo(&raw mut info, ptr::null_mut())) }?;
        let number = |number: i32| u32::try_from(number).unwrap_or_default();
        Ok((info.available != 0).then(|| BundledHeaders {
            version: CudaVersion::new(number(info.cudaVersionMajor), number(info.cudaVersionMinor)),
            files: info.numFiles,
            compressed: info.compressedSize,
            uncompressed: info.uncompressedSize,
        }))
    }

    /// Installs the headers that this NVRTC brings into `folder`, which is made if it is not there. Processes that install into one
    /// folder take turns. [`CompileOptions::with_include_path`](crate::CompileOptions::with_include_path) of the folder, and of
    /// `cccl` in it, uses them.
    ///
    /// Needs NVRTC of CUDA 13.3.
    ///
    /// # Errors
    ///
    /// [`Error::File`] with NVRTC's explanation.
    #[doc(alias = "nvrtcInstallBundledHeaders")]
    pub fn install_bundled_headers(&self, folder: impl AsRef<Path>, flags: InstallFlags) -> Result<()> {
        let folder = folder.as_ref().display().to_string();
        let path = c_text(&folder, || "the folder of the headers".to_owned())?;
        let (mut log, path) = (ptr::null(), path.as_ptr());
        // SAFETY: `path` ends in NUL, and `log` is a valid place for the explanation.
        let result = unsafe { call!(&self.api, nvrtcInstallBundledHeaders(path, flags.as_raw(), &raw mut log)) };
        // SAFETY: NVRTC was not called again on this thread.
        result.map_err(|error| unsafe { explain(error, &folder, log) })
    }

    /// Removes `folder` and **everything in it**, not only the headers that were installed there.
    ///
    /// Needs NVRTC of CUDA 13.3.
    ///
    /// # Errors
    ///
    /// [`Error::File`] with NVRTC's explanation.
    #[doc(alias = "nvrtcRemoveBundledHeaders")]
    pub fn remove_bundled_headers(&self, folder: impl AsRef<Path>) -> Result<()> {
        let folder = folder.as_ref().display().to_string();
        let path = c_text(&folder, || "the folder of the headers".to_owned())?;
        let (mut log, path) = (ptr::null(), path.as_ptr());
        // SAFETY: `path` ends in NUL, and `log` is a valid place for the explanation.
        let result = unsafe { call!(&self.api, nvrtcRemoveBundledHeaders(path, &raw mut log)) };
        // SAFETY: NVRTC was not called again on this thread.
        result.map_err(|error| unsafe { explain(error, &folder, log) })
    }
}

/// The error with NVRTC's explanation, if there is one.
///
/// # Safety
///
/// `log` is null, or NVRTC set it and was not called again on this thread.
unsafe fn explain(error: Error, folder: &str, log: *const c_char) -> Error {
    if log.is_null() {
        return error;
    }
    // SAFETY: the caller vouches for the text, which is copied at once.
    let text = unsafe { CStr::from_ptr(log) }.to_string_lossy();
    let reason = std::io::Error::other(format!("{error}: {text}"));
    Error::File { path: folder.into(), error: reason }
}
