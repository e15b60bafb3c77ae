//! The images that C functions load, and their compilation.

use std::borrow::Cow;
use std::ffi::c_void;
use std::sync::Arc;

use curium_format::{CudaVersion, PtxVersion};
use curium_ptx::exec::Report;
use curium_ptx::syntax::Module;
use curium_sys::CUresult;

use crate::argument::ConstPointer;
use crate::call::Call;
use crate::image::cache::{IMAGES, Settings};
use crate::image::jit::JitOptions;
use crate::image::{Code, Refusal, fat_binary, parse_ptx, text_at};
use crate::result::Result;

impl Call<'_> {
    /// Compiles an image that a caller passed, and writes the logs that the options request.
    pub(crate) fn compile_image(
        &self,
        image: ConstPointer<c_void>,
        options: &JitOptions,
    ) -> Result<Arc<Code>> {
        let text = self.read_text(image, options)?;
        self.compile_text(&text, options)
    }

    /// Returns the text of an image that a caller passed.
    pub(crate) fn read_text<'a>(
        &self,
        image: ConstPointer<c_void>,
        options: &JitOptions,
    ) -> Result<Cow<'a, str>> {
        if image.is_null() {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: the caller of the C function passes PTX, which is NUL-terminated text, or a
        // binary.
        let text = unsafe { self.image_text(image.as_ptr().cast()) };
        text.map_err(|refusal| self.report_refusal(&refusal, options))
    }

    /// Compiles a text, and writes the logs that the options request.
    pub(crate) fn compile_text(&self, text: &str, options: &JitOptions) -> Result<Arc<Code>> {
        let code = self
            .compile(text, options.max_registers())
            .map_err(|refusal| self.report_refusal(&refusal, options))?;
        options.report("");
        Ok(code)
    }

    /// Writes the log of a refusal, and reports it. Returns its code.
    pub(crate) fn report_refusal(&self, refusal: &Refusal, options: &JitOptions) -> CUresult {
        options.report(&refusal.log);
        if !refusal.log.is_empty() {
            self.report_survivable(&Report::for_image(&refusal.log));
        }
        refusal.code
    }

    /// Returns the code of a text, compiled unless this process loaded the same text recently.
    pub(crate) fn compile(
        &self,
        text: &str,
        max_registers: Option<u32>,
    ) -> std::result::Result<Arc<Code>, Refusal> {
        let settings = Settings {
            newest_ptx: newest_ptx(self.config().driver_version),
            compute_capability: self.devices().compute_capability(),
            race_checks: self.config().race_checks,
            uninitialized_checks: self.config().uninitialized_checks,
            max_registers,
        };
        IMAGES.get_or_compile(text, settings, || Code::compile(text, settings))
    }

    /// Returns the text of an image: PTX itself, or the best PTX in a fat binary.
    ///
    /// # Safety
    ///
    /// `image` points to NUL-terminated text, to a complete binary, or to the record of a fat
    /// binary.
    pub(crate) unsafe fn image_text<'a>(
        &self,
        image: *const u8,
    ) -> std::result::Result<Cow<'a, str>, Refusal> {
        // SAFETY: the caller guarantees the image.
        match unsafe { fat_binary::bytes_at(image) } {
            Some(binary) => {
                fat_binary::ptx_for(binary, self.devices().compute_capability()).map(Cow::Owned)
            }
            // SAFETY: the caller guarantees that an image that is no binary is NUL-terminated text.
            None => unsafe { text_at(image) }.map(Cow::Borrowed),
        }
    }

    /// Parses PTX, and checks that the device can run it.
    pub(crate) fn parse_ptx(&self, text: &str) -> std::result::Result<Module, Refusal> {
        let newest = newest_ptx(self.config().driver_version);
        parse_ptx(text, newest, self.devices().compute_capability())
    }
}

/// Returns the newest PTX version that a driver of this CUDA version reads.
fn newest_ptx(driver: CudaVersion) -> PtxVersion {
    driver.newest_ptx().unwrap_or(PtxVersion::NEWEST_KNOWN)
}
