//! Images of device code: PTX text becomes a program; an image without PTX is refused.

mod cache;
mod fat_binary;
mod jit;
pub(super) mod linked;

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_void};
use std::sync::Arc;

use curium_format::ptx::Scanner;
use curium_format::{CudaVersion, PtxVersion, elf, tile_ir};
use curium_sys::{CUdevice_attribute, CUresult};

use self::cache::{IMAGES, Settings};
pub(crate) use self::jit::JitOptions;
use crate::argument::ConstPointer;
use crate::driver::{Driver, Result};
use curium_ptx::exec::{self, Checking, Kernel, Program, Report};
use curium_ptx::syntax::{self, ErrorKind, Module};

/// The code of a module or library.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) program: Program,
    /// The names of the kernels as C reads them, in the order of the program.
    pub(crate) names: Vec<CString>,
    /// The compute capability that the PTX was written for, times ten.
    pub(crate) target: u32,
}

/// The reason why an image was refused, with the text of the log.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(super) code: CUresult,
    pub(super) log: String,
}

impl Code {
    /// Compiles PTX. The result depends on nothing but the text and the settings.
    fn compile(text: &str, settings: Settings) -> std::result::Result<Self, Refusal> {
        if !begins_with_version(text) {
            return Err(Refusal::new(
                CUresult::CUDA_ERROR_INVALID_IMAGE,
                "the image is neither PTX nor a binary",
            ));
        }
        let module = parse_ptx(text, settings.newest_ptx, settings.compute_capability)?;
        let checking = Checking::nothing()
            .with_races(settings.race_checks)
            .with_uninitialized(settings.uninitialized_checks);
        let mut program = exec::lower_with_checks(&module, checking).map_err(|error| {
            Refusal::at_line(CUresult::CUDA_ERROR_INVALID_PTX, error.line, &error.message)
        })?;
        if let Some(limit) = settings.max_registers {
            program.limit_registers(limit);
        }
        let names = program
            .kernels()
            .iter()
            .map(|kernel| CString::new(kernel.name.as_str()).unwrap_or_default());
        Ok(Self {
            names: names.collect(),
            target: module.target.architecture,
            program,
        })
    }

    pub(crate) fn kernel(&self, index: usize) -> Result<&Kernel> {
        self.program
            .kernels()
            .get(index)
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)
    }

    /// Returns the position of the kernel with this name.
    pub(crate) fn find(&self, name: &CStr) -> Result<usize> {
        if name.is_empty() {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        self.names
            .iter()
            .position(|kernel| kernel.as_c_str() == name)
            .ok_or(CUresult::CUDA_ERROR_NOT_FOUND)
    }

    /// Returns the position of the variable with this name.
    pub(crate) fn find_global(&self, name: &CStr) -> Result<usize> {
        self.program
            .globals()
            .iter()
            .position(|global| global.name.as_bytes() == name.to_bytes())
            .ok_or(CUresult::CUDA_ERROR_NOT_FOUND)
    }
}

impl Driver {
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
        // SAFETY: the caller of the C function passes PTX, which is NUL-terminated text, or a binary.
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
            compute_capability: self.compute_capability(),
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
    /// `image` points to NUL-terminated text, to a complete binary, or to the record of a fat binary.
    pub(super) unsafe fn image_text<'a>(
        &self,
        image: *const u8,
    ) -> std::result::Result<Cow<'a, str>, Refusal> {
        // SAFETY: the caller guarantees the image.
        match unsafe { fat_binary::bytes_at(image) } {
            Some(binary) => fat_binary::ptx_for(binary, self.compute_capability()).map(Cow::Owned),
            // SAFETY: the caller guarantees that an image that is no binary is NUL-terminated text.
            None => unsafe { text_at(image) }.map(Cow::Borrowed),
        }
    }

    /// Parses PTX, and checks that the device can run it.
    pub(super) fn parse_ptx(&self, text: &str) -> std::result::Result<Module, Refusal> {
        let newest = newest_ptx(self.config().driver_version);
        parse_ptx(text, newest, self.compute_capability())
    }

    /// Returns the compute capability of the devices, times ten.
    pub(crate) fn compute_capability(&self) -> u32 {
        self.attribute_value(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10
            + self.attribute_value(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
    }
}

impl Refusal {
    pub(super) fn new(code: CUresult, log: &str) -> Self {
        Self {
            code,
            log: log.to_owned(),
        }
    }

    fn at_line(code: CUresult, line: u32, message: &str) -> Self {
        Self::new(
            code,
            &format!("ptx input, line {line}; error   : {message}"),
        )
    }

    fn from_ptx(error: &syntax::Error) -> Self {
        let code = match error.kind() {
            ErrorKind::UnsupportedVersion => CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
            _ => CUresult::CUDA_ERROR_INVALID_PTX,
        };
        Self::at_line(code, error.line(), &error.to_string())
    }
}

/// Parses PTX up to a version, and checks that a device of this compute capability can run it.
fn parse_ptx(
    text: &str,
    newest: PtxVersion,
    compute_capability: u32,
) -> std::result::Result<Module, Refusal> {
    let module = syntax::parse_for(text, newest).map_err(|error| Refusal::from_ptx(&error))?;
    let target = module.target;
    if target.runs_on(compute_capability) {
        return Ok(module);
    }
    let log = format!(
        "target sm_{} is not supported by the device (sm_{compute_capability})",
        target.architecture
    );
    Err(Refusal::new(CUresult::CUDA_ERROR_INVALID_PTX, &log))
}

/// Returns `true` if an image begins with these bytes.
///
/// # Safety
///
/// `image` points to NUL-terminated text, or to a binary that is longer than `magic`. Only the last byte of `magic` may be NUL.
unsafe fn begins_with(image: *const u8, magic: &[u8]) -> bool {
    magic.iter().enumerate().all(|(index, byte)| {
        // SAFETY: the bytes are compared one by one up to the first that differs, so text is not read beyond its NUL.
        unsafe { image.wrapping_add(index).read() == *byte }
    })
}

/// Returns the text of an image, unless it is a binary.
///
/// # Safety
///
/// `image` points to NUL-terminated text, or to a complete ELF file or Tile IR.
unsafe fn text_at<'a>(image: *const u8) -> std::result::Result<&'a str, Refusal> {
    // SAFETY: the caller guarantees the image.
    if let Some(text) = unsafe { linked::text_in(image) } {
        return text
            .to_str()
            .map_err(|_| Refusal::new(CUresult::CUDA_ERROR_INVALID_IMAGE, "the image is damaged"));
    }
    for (magic, contents) in [
        (&elf::MAGIC[..], "machine code for NVIDIA hardware"),
        (&tile_ir::MAGIC, "Tile IR"),
    ] {
        // SAFETY: the caller guarantees the image, and at most the last byte of a magic number is NUL.
        if unsafe { begins_with(image, magic) } {
            let log = format!("the image contains {contents}; the simulator runs PTX only");
            return Err(Refusal::new(CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU, &log));
        }
    }
    // SAFETY: an image that is not a binary is NUL-terminated text, which the caller guarantees.
    let text = unsafe { CStr::from_ptr(image.cast()) };
    text.to_str().map_err(|_| {
        Refusal::new(
            CUresult::CUDA_ERROR_INVALID_IMAGE,
            "the image is neither PTX nor a binary",
        )
    })
}

/// Returns `true` if a text is PTX, which begins with its version after comments.
fn begins_with_version(text: &str) -> bool {
    let first = Scanner::new(text).next();
    first.is_some_and(|token| token.is_directive("version"))
}

/// Returns the newest PTX version that a driver of this CUDA version reads.
fn newest_ptx(driver: CudaVersion) -> PtxVersion {
    driver.newest_ptx().unwrap_or(PtxVersion::NEWEST_KNOWN)
}
