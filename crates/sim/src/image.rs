//! Images of device code: PTX text becomes a program; an image without PTX is refused.

pub(crate) mod cache;
pub(crate) mod fat_binary;
pub(crate) mod jit;
pub(crate) mod linked;

use std::ffi::{CStr, CString};

use curium_format::ptx::Scanner;
use curium_format::{PtxVersion, elf, tile_ir};
use curium_ptx::exec::{self, Checking, Kernel, Program};
use curium_ptx::syntax::{self, ErrorKind, Module};
use curium_sys::CUresult;

use crate::image::cache::Settings;
use crate::result::Result;

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
    pub(crate) code: CUresult,
    pub(crate) log: String,
}

impl Code {
    /// Compiles PTX. The result depends on nothing but the text and the settings.
    pub(crate) fn compile(text: &str, settings: Settings) -> std::result::Result<Self, Refusal> {
        check_version(text)?;
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

impl Refusal {
    pub(crate) fn new(code: CUresult, log: &str) -> Self {
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
pub(crate) fn parse_ptx(
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
/// `image` points to NUL-terminated text, or to a binary that is longer than `magic`. Only the last
/// byte of `magic` may be NUL.
pub(crate) unsafe fn begins_with(image: *const u8, magic: &[u8]) -> bool {
    magic.iter().enumerate().all(|(index, byte)| {
        // SAFETY: the bytes are compared one by one up to the first that differs, so text is not
        // read beyond its NUL.
        unsafe { image.wrapping_add(index).read() == *byte }
    })
}

/// Returns the text of an image, unless it is a binary.
///
/// # Safety
///
/// `image` points to NUL-terminated text, or to a complete ELF file or Tile IR.
pub(crate) unsafe fn text_at<'a>(image: *const u8) -> std::result::Result<&'a str, Refusal> {
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
        // SAFETY: the caller guarantees the image, and at most the last byte of a magic number is
        // NUL.
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

/// Checks that a text is PTX, which begins with its version after comments.
pub(crate) fn check_version(text: &str) -> std::result::Result<(), Refusal> {
    let first = Scanner::new(text).next();
    if first.is_some_and(|token| token.is_directive("version")) {
        Ok(())
    } else {
        Err(Refusal::new(
            CUresult::CUDA_ERROR_INVALID_IMAGE,
            "the image is neither PTX nor a binary",
        ))
    }
}
