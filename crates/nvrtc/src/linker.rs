//! nvJitLink: the linker.

mod input;
mod library;
mod linked;
mod options;

use std::ffi::{CString, c_void};
use std::fmt;
use std::fs::File;
use std::path::Path;
use std::ptr;

use curium_driver::{Image, ImageKind};
use curium_sys::library_call as call;

pub use self::input::LinkInput;
pub use self::library::NvJitLink;
pub use self::linked::LinkedProgram;
pub use self::options::LinkOptions;
use crate::text::{Texts, c_text, read_text};
use crate::{CompiledProgram, Error, LinkError, Result};
use curium_sys::nvjitlink::{Api, nvJitLinkHandle};

/// A link in progress: it collects inputs and links them to one program. LTO IR is optimized across
/// all inputs.
///
/// ```no_run
/// use curium_nvrtc::{Architecture, CompileOptions, LinkOptions, NvJitLink, Nvrtc, Program};
///
/// let nvrtc = Nvrtc::load()?;
/// let linker = NvJitLink::load()?;
/// let options = CompileOptions::new().with_architecture(Architecture::new(8, 0)).with_link_time_optimization();
/// let square = Program::new("square.cu", "__device__ float square(float x) { return x * x; }");
/// let kernel = Program::new("kernel.cu", r#"
///     __device__ float square(float x);
///     extern "C" __global__ void squares(float* x) { x[threadIdx.x] = square(x[threadIdx.x]); }
/// "#);
///
/// let mut linker = linker.linker(&LinkOptions::new(Architecture::new(8, 0).real()).with_link_time_optimization())?;
/// linker.add_program(&nvrtc.compile(&square, &options)?)?;
/// linker.add_program(&nvrtc.compile(&kernel, &options)?)?;
/// let linked = linker.complete()?;
/// println!("{} bytes of machine code", linked.cubin()?.len());
/// # Ok::<(), curium_nvrtc::Error>(())
/// ```
pub struct Linker {
    raw: nvJitLinkHandle,
    library: NvJitLink,
    /// `true` if LTO IR inputs are allowed.
    has_link_time_optimization: bool,
    /// The names and bytes of the inputs. nvJitLink keeps their addresses until the link is
    /// complete.
    inputs: Vec<(CString, Box<[u8]>)>,
}

// SAFETY: nvJitLink does not bind a link to a thread, and `&mut self` allows one thread at a time.
unsafe impl Send for Linker {}

const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Linker>();
};

impl Linker {
    pub(crate) fn new(library: &NvJitLink, options: &LinkOptions) -> Result<Self> {
        let arguments = Texts::new(options.arguments().iter(), "an option")?;
        let count = arguments.count::<u32>();
        let pointers = arguments.as_ptr();
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` is valid for writes, and `pointers` is an array of `count` NUL-terminated
        // texts that are live here.
        let result = unsafe {
            call!(
                library.api(),
                nvJitLinkCreate(&raw mut raw, count, pointers)
            )
        };
        let library = library.clone();
        let has_link_time_optimization = options.has_link_time_optimization();
        let linker = Self {
            raw,
            library,
            has_link_time_optimization,
            inputs: Vec::new(),
        };
        result.map_err(|error| {
            let subject = format!("the options {}", options.arguments().join(" "));
            linker.explain(error, subject)
        })?;
        Ok(linker)
    }

    /// Adds a compiled program: its LTO IR, otherwise its cubin, otherwise its PTX.
    ///
    /// # Errors
    ///
    /// [`Error::NoOutput`] if the program has none of these. [`Error::Link`] contains the linker's
    /// log.
    pub fn add_program(&mut self, program: &CompiledProgram) -> Result<()> {
        if let (Ok(lto_ir), true) = (program.lto_ir(), self.has_link_time_optimization) {
            // SAFETY: NVRTC produced it.
            return unsafe { self.add_bytes(LinkInput::LtoIr, program.name(), lto_ir) };
        }
        if let Ok(cubin) = program.cubin() {
            // SAFETY: NVRTC produced it.
            return unsafe { self.add_bytes(LinkInput::Cubin, program.name(), cubin) };
        }
        self.add_ptx(program.name(), program.ptx()?)
    }

    /// Adds PTX text under `name`, which the log uses.
    ///
    /// # Errors
    ///
    /// [`Error::Link`] contains the linker's log.
    pub fn add_ptx(&mut self, name: &str, ptx: &str) -> Result<()> {
        self.add_image(name, &Image::from_ptx(ptx)?)
    }

    /// Adds an image under `name`, which the log uses.
    ///
    /// # Errors
    ///
    /// [`Error::Link`] contains the linker's log. [`Error::Driver`] for Tile IR.
    pub fn add_image(&mut self, name: &str, image: &Image<'_>) -> Result<()> {
        let kind = match image.kind() {
            ImageKind::Cubin => LinkInput::Cubin,
            ImageKind::FatBinary => LinkInput::FatBinary,
            ImageKind::TileIr => {
                let reason = format!(
                    "`{name}` is Tile IR, which cannot be linked; load it as a module or library"
                );
                return Err(curium_driver::Error::argument("Linker::add_image", reason).into());
            }
            _ => LinkInput::Ptx,
        };
        // SAFETY: an image is PTX, the output of a compiler, or machine code that `unsafe` code
        // guarantees.
        unsafe { self.add_bytes(kind, name, image.as_bytes()) }
    }

    /// Adds an input of any kind under `name`, which the log uses.
    ///
    /// # Safety
    ///
    /// - `bytes` are a complete and unmodified input of this kind, produced by NVIDIA's tools. PTX
    ///   is NUL-terminated.
    ///
    /// # Errors
    ///
    /// [`Error::Link`] contains the linker's log.
    #[doc(alias = "nvJitLinkAddData")]
    pub unsafe fn add_bytes(&mut self, kind: LinkInput, name: &str, bytes: &[u8]) -> Result<()> {
        let text = c_text(name, || "the name of an input".to_owned())?;
        let bytes = Box::<[u8]>::from(bytes);
        let data = bytes.as_ptr().cast::<c_void>();
        let size = bytes.len();
        let file = text.as_ptr();
        self.inputs.push((text, bytes));
        // SAFETY: the link is live, the name is NUL-terminated, the caller guarantees the bytes,
        // and both outlive the link.
        let result = unsafe {
            call!(
                self.api(),
                nvJitLinkAddData(self.raw, kind.as_raw(), data, size, file)
            )
        };
        result.map_err(|error| self.explain(error, format!("input `{name}`")))
    }

    /// Adds the input in the file at `path`.
    ///
    /// # Safety
    ///
    /// - The file is a complete and unmodified input of this kind, produced by NVIDIA's tools.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if the file cannot be read. [`Error::Link`] contains the linker's log.
    #[doc(alias = "nvJitLinkAddFile")]
    pub unsafe fn add_file(&mut self, kind: LinkInput, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref().display().to_string();
        // Some versions terminate the process if they fail to open a file.
        File::open(&path).map_err(|error| Error::File {
            path: path.as_str().into(),
            error,
        })?;
        let text = c_text(&path, || "the path of an input".to_owned())?;
        let file = text.as_ptr();
        self.inputs.push((text, Box::default()));
        // SAFETY: the link is live, the path is NUL-terminated and outlives the link, and the
        // caller guarantees the file.
        let result = unsafe { call!(self.api(), nvJitLinkAddFile(self.raw, kind.as_raw(), file)) };
        result.map_err(|error| self.explain(error, format!("file {path}")))
    }

    /// Links the inputs and reads all outputs of nvJitLink.
    ///
    /// # Errors
    ///
    /// [`Error::Link`] contains the linker's log, such as the undefined symbols.
    #[doc(alias = "nvJitLinkComplete")]
    pub fn complete(self) -> Result<LinkedProgram> {
        // SAFETY: the link is live.
        let result = unsafe { call!(self.api(), nvJitLinkComplete(self.raw)) };
        result.map_err(|error| self.explain(error, String::new()))?;
        linked::read(&self)
    }

    fn api(&self) -> &Api {
        self.library.api()
    }

    /// Adds the linker's log to the error of a call.
    fn explain(&self, error: Error, subject: String) -> Error {
        match error {
            Error::Call(call) => {
                let log = if self.raw.is_null() {
                    String::new()
                } else {
                    self.logs()
                };
                Error::Link(Box::new(LinkError {
                    call,
                    subject: subject.into(),
                    log: log.into(),
                }))
            }
            other => other,
        }
    }

    /// Returns the error log and the information log: some versions report undefined symbols in the
    /// latter.
    fn logs(&self) -> String {
        let logs = [self.error_log(), self.info_log()].map(Result::unwrap_or_default);
        logs.iter()
            .map(|log| log.trim())
            .filter(|log| !log.is_empty())
            .collect::<Vec<_>>()
            .join("\n")
    }

    fn error_log(&self) -> Result<String> {
        let mut size = 0;
        // SAFETY: the link is live, and `size` is valid for writes.
        unsafe {
            call!(
                self.api(),
                nvJitLinkGetErrorLogSize(self.raw, &raw mut size)
            )
        }?;
        read_text(size, |buffer| {
            // SAFETY: the link is live, and `buffer` has the size that nvJitLink reported.
            unsafe { call!(self.api(), nvJitLinkGetErrorLog(self.raw, buffer)) }
        })
    }

    fn info_log(&self) -> Result<String> {
        let mut size = 0;
        // SAFETY: the link is live, and `size` is valid for writes.
        unsafe { call!(self.api(), nvJitLinkGetInfoLogSize(self.raw, &raw mut size)) }?;
        read_text(size, |buffer| {
            // SAFETY: the link is live, and `buffer` has the size that nvJitLink reported.
            unsafe { call!(self.api(), nvJitLinkGetInfoLog(self.raw, buffer)) }
        })
    }
}

impl fmt::Debug for Linker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Linker({:?} of {:?})", self.raw, self.library)
    }
}

impl Drop for Linker {
    fn drop(&mut self) {
        if let (Some(function), false) = (self.api().nvJitLinkDestroy, self.raw.is_null()) {
            // SAFETY: the link is live, owned by `self`, and not used afterwards. A failure cannot
            // be reported from `drop`.
            unsafe { function(&raw mut self.raw) };
        }
    }
}
