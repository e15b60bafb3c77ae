//! The result of a link.

use curium_driver::{Driver, Image, JitOptions, Library};
use curium_sys::library_call as call;

use super::Linker;
use crate::text::{bytes, read_text};
use crate::{Error, Result};
use curium_sys::nvjitlink::{Api, nvJitLinkHandle, nvJitLinkResult};

/// The outputs of a [`Linker`] and its log: plain data, independent of nvJitLink.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct LinkedProgram {
    cubin: Option<Vec<u8>>,
    ptx: Option<String>,
    lto_ir: Option<Vec<u8>>,
    log: String,
}

/// Reads all outputs of `linker`, which is complete.
pub(super) fn read(linker: &Linker) -> Result<LinkedProgram> {
    let api = linker.api();
    let link = linker.raw;
    let mut linked = LinkedProgram {
        log: linker.info_log()?,
        ..LinkedProgram::default()
    };
    if let Some(size) = size(link, api.nvJitLinkGetLinkedCubinSize) {
        linked.cubin = Some(bytes(size, |buffer| {
            // SAFETY: the link is live and complete, and `buffer` has the size that nvJitLink
            // reported.
            unsafe { call!(api, nvJitLinkGetLinkedCubin(link, buffer.cast())) }
        })?);
    }
    if let Some(size) = size(link, api.nvJitLinkGetLinkedPtxSize) {
        linked.ptx = Some(read_text(size, |buffer| {
            // SAFETY: the link is live and complete, and `buffer` has the size that nvJitLink
            // reported.
            unsafe { call!(api, nvJitLinkGetLinkedPtx(link, buffer)) }
        })?);
    }
    if let Some(size) = size(link, api.nvJitLinkGetLinkedLTOIRSize) {
        linked.lto_ir = Some(lto_ir(api, link, size)?);
    }
    Ok(linked)
}

fn lto_ir(api: &Api, link: nvJitLinkHandle, size: usize) -> Result<Vec<u8>> {
    bytes(size, |buffer| {
        // SAFETY: the link is live and complete, and `buffer` has the size that nvJitLink reported.
        unsafe { call!(api, nvJitLinkGetLinkedLTOIR(link, buffer.cast())) }
    })
}

/// Returns the size of an output; `None` if there is no such output, for which nvJitLink returns an
/// error.
fn size(
    link: nvJitLinkHandle,
    function: Option<unsafe extern "C" fn(nvJitLinkHandle, *mut usize) -> nvJitLinkResult>,
) -> Option<usize> {
    let mut size = 0;
    // SAFETY: the link is live and complete, and `size` is valid for writes.
    let result = unsafe { function?(link, &raw mut size) };
    (result == nvJitLinkResult::NVJITLINK_SUCCESS && size > 0).then_some(size)
}

impl LinkedProgram {
    /// Returns the cubin: machine code for one architecture.
    ///
    /// # Errors
    ///
    /// [`Error::NoOutput`] if the options request another format.
    #[doc(alias = "nvJitLinkGetLinkedCubin")]
    pub fn cubin(&self) -> Result<&[u8]> {
        some(
            self.cubin.as_deref(),
            "a cubin",
            "link for a real architecture, and do not request PTX",
        )
    }

    /// Returns the PTX.
    ///
    /// # Errors
    ///
    /// [`Error::NoOutput`] if the options do not request PTX.
    #[doc(alias = "nvJitLinkGetLinkedPtx")]
    pub fn ptx(&self) -> Result<&str> {
        some(self.ptx.as_deref(), "PTX", "use `LinkOptions::with_ptx`")
    }

    /// Returns the LTO IR of all inputs together. Requires nvJitLink of CUDA 13.3.
    ///
    /// # Errors
    ///
    /// [`Error::NoOutput`] without link-time optimization.
    #[doc(alias = "nvJitLinkGetLinkedLTOIR")]
    pub fn lto_ir(&self) -> Result<&[u8]> {
        some(
            self.lto_ir.as_deref(),
            "LTO IR",
            "use `LinkOptions::with_link_time_optimization` and nvJitLink of CUDA 13.3",
        )
    }

    /// Returns the image to load: the cubin if present, otherwise the PTX.
    ///
    /// # Errors
    ///
    /// [`Error::NoOutput`] if there is neither.
    pub fn image(&self) -> Result<Image<'_>> {
        match &self.ptx {
            Some(ptx) if self.cubin.is_none() => Ok(Image::from_ptx(ptx)?),
            // SAFETY: nvJitLink generated the cubin.
            _ => Ok(unsafe { Image::from_bytes(self.cubin()?) }?),
        }
    }

    /// Loads the program as a library. `driver` can be a driver, a device, a context or a stream.
    ///
    /// CUDA: `cuLibraryLoadData`, since 12.0.
    ///
    /// # Errors
    ///
    /// The errors of [`LinkedProgram::image`] and [`Library::from_image`].
    pub fn library(&self, driver: &impl AsRef<Driver>) -> Result<Library> {
        Ok(Library::from_image(
            driver,
            &self.image()?,
            &JitOptions::new(),
        )?)
    }

    /// Returns the linker's log, with warnings and, if requested, timings. Usually empty.
    #[must_use]
    pub fn log(&self) -> &str {
        &self.log
    }
}

fn some<'a, T: ?Sized>(
    output: Option<&'a T>,
    wanted: &'static str,
    advice: &'static str,
) -> Result<&'a T> {
    output.ok_or_else(|| Error::NoOutput {
        name: Box::from("the link"),
        wanted,
        advice,
    })
}
