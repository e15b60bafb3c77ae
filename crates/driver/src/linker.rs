//! The linker: combines several inputs into one image.

use std::ffi::{CString, c_void};
use std::fmt;
use std::marker::PhantomData;
use std::path::Path;

use curium_sys::{CUjitInputType, CUlinkState_st};

use crate::base::c_string::c_name;
use crate::base::c_string::c_path;
use crate::base::handle::Handle;
use crate::base::release::release;
use crate::call;
use crate::jit::Compilation;
use crate::{Context, Driver, Error, Image, ImageKind, JitOptions, JitReport, Result, Returned};

/// The driver's JIT linker, which combines several inputs into one image.
///
/// The target is the device of the context unless [`JitOptions::target`] is set.
///
/// ```no_run
/// # fn example(context: curium_driver::Context, a: &str, b: &str) -> Result<(), curium_driver::Error> {
/// use curium_driver::{Image, JitOptions, Linker, Module};
///
/// let mut linker = Linker::new(&context, &JitOptions::new())?;
/// linker.add_image("a.ptx", &Image::from_ptx(a)?, &JitOptions::new())?;
/// linker.add_image("b.ptx", &Image::from_ptx(b)?, &JitOptions::new())?;
/// let linked = linker.complete()?;
/// let module = Module::from_image(&context, &linked.image(), &JitOptions::new())?;
/// # Ok(())
/// # }
/// ```
pub struct Linker<'a> {
    state: State,
    /// The options of the linker and of its inputs. The driver writes their logs and reads their
    /// names until the link is destroyed.
    compilations: Vec<Compilation>,
    _names: PhantomData<&'a JitOptions<'a>>,
}

/// An image produced by a [`Linker`]. It owns the link, which owns the memory of the image.
pub struct LinkedImage {
    /// Dropped before the logs, which the driver may write to.
    state: State,
    bytes: *const u8,
    len: usize,
    report: Box<JitReport>,
    _compilations: Vec<Compilation>,
}

/// The kind of a [`Linker`] input that is not an [`Image`].
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum LinkInput {
    /// A cubin: machine code for one architecture.
    Cubin,
    /// PTX text, NUL-terminated.
    Ptx,
    /// A fatbin.
    FatBinary,
    /// A host object file with embedded device code.
    Object,
    /// An archive of host object files with embedded device code.
    Archive,
    /// LTO IR of CUDA 11, for link-time optimization.
    Nvvm,
}

/// A link that is not destroyed yet.
struct State {
    raw: Handle<CUlinkState_st>,
    context: Context,
}

// SAFETY: the image is memory of the link that is not written once the link is complete.
unsafe impl Send for LinkedImage {}
// SAFETY: the image is memory of the link that is not written once the link is complete.
unsafe impl Sync for LinkedImage {}

impl<'a> Linker<'a> {
    /// Creates a linker for the device of `context`.
    ///
    /// CUDA: `cuLinkCreate_v2`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_JIT_COMPILER_NOT_FOUND` if the JIT compiler library is not installed.
    #[doc(alias = "cuLinkCreate")]
    pub fn new(context: &Context, options: &JitOptions<'a>) -> Result<Self> {
        let mut compilation = Compilation::new(options);
        let count = compilation.len();
        let options = compilation.options();
        let values = compilation.values();
        let raw = context.entered(|driver| {
            let mut raw = std::ptr::null_mut();
            // SAFETY: `raw` is valid for writes, `compilation` holds `count` options with their
            // values and outlives the link, and the context is current.
            unsafe {
                call!(driver, cuLinkCreate_v2(count, options, values, &raw mut raw) creates raw)
            }?;
            Ok(raw)
        })?;
        let state = State {
            raw: Handle::new(raw),
            context: context.clone(),
        };
        Ok(Self {
            state,
            compilations: vec![compilation],
            _names: PhantomData,
        })
    }

    /// Adds an image with its own options. `name` identifies it in the log.
    ///
    /// CUDA: `cuLinkAddData_v2`.
    ///
    /// # Errors
    ///
    /// A compilation error contains the log of the JIT compiler. An argument error for Tile IR.
    #[doc(alias = "cuLinkAddData")]
    pub fn add_image(
        &mut self,
        name: &str,
        image: &Image<'_>,
        options: &JitOptions<'a>,
    ) -> Result<()> {
        let kind = match image.kind() {
            ImageKind::Ptx => LinkInput::Ptx,
            ImageKind::Cubin => LinkInput::Cubin,
            ImageKind::FatBinary => LinkInput::FatBinary,
            ImageKind::TileIr => {
                let reason = format!(
                    "`{name}` is Tile IR, which cannot be linked; load it as a module or library"
                );
                return Err(Error::argument("Linker::add_image", reason));
            }
        };
        // SAFETY: the image is PTX, the output of a compiler, or was created by `unsafe` code.
        let result = unsafe { self.add_bytes(kind, name, image.as_bytes(), options) };
        result.map_err(|error| self.explain(error, image.as_ptx()))
    }

    /// Adds an input of any kind with its own options. `name` identifies it in the log.
    ///
    /// CUDA: `cuLinkAddData_v2`.
    ///
    /// # Safety
    ///
    /// - `bytes` are a complete and unmodified input of this kind, produced by NVIDIA's tools. PTX
    ///   is NUL-terminated.
    ///
    /// # Errors
    ///
    /// A compilation error contains the log of the JIT compiler.
    pub unsafe fn add_bytes(
        &mut self,
        kind: LinkInput,
        name: &str,
        bytes: &[u8],
        options: &JitOptions<'a>,
    ) -> Result<()> {
        let text = c_name("Linker::add_bytes", name)?;
        let compilation = self.add_options(options);
        let count = compilation.len();
        let options = compilation.options();
        let values = compilation.values();
        let data = bytes.as_ptr().cast_mut().cast::<c_void>();
        let size = bytes.len();
        let link = self.state.raw.raw();
        let kind = kind.as_raw();
        let result = self.state.context.entered(|driver| {
            let name = text.as_ptr();
            // SAFETY: the link is live, `name` is NUL-terminated, `compilation` holds `count`
            // options with their values and outlives the link, and the caller is responsible for
            // the bytes, which the driver reads during the call.
            unsafe {
                call!(
                    driver,
                    cuLinkAddData_v2(link, kind, data, size, name, count, options, values)
                )
            }
        });
        result.map_err(|error| self.explain(error.about(format!("input `{name}`")), None))
    }

    /// Adds the input in the file at `path` with its own options.
    ///
    /// CUDA: `cuLinkAddFile_v2`.
    ///
    /// # Safety
    ///
    /// - The file is a complete and unmodified input of this kind, produced by NVIDIA's tools.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_FILE_NOT_FOUND` if the file does not exist; a compilation error contains the log
    /// of the JIT compiler.
    #[doc(alias = "cuLinkAddFile")]
    pub unsafe fn add_file(
        &mut self,
        kind: LinkInput,
        path: impl AsRef<Path>,
        options: &JitOptions<'a>,
    ) -> Result<()> {
        let path = path.as_ref();
        let name: CString = c_path("Linker::add_file", path)?;
        let compilation = self.add_options(options);
        let count = compilation.len();
        let options = compilation.options();
        let values = compilation.values();
        let link = self.state.raw.raw();
        let kind = kind.as_raw();
        let result = self.state.context.entered(|driver| {
            let name = name.as_ptr();
            // SAFETY: the link is live, `name` is NUL-terminated, `compilation` holds `count`
            // options with their values and outlives the link, and the caller is responsible for
            // the file.
            unsafe {
                call!(
                    driver,
                    cuLinkAddFile_v2(link, kind, name, count, options, values)
                )
            }
        });
        result.map_err(|error| self.explain(error.about(path.display().to_string()), None))
    }

    /// Completes the link and returns the image.
    ///
    /// CUDA: `cuLinkComplete`.
    ///
    /// # Errors
    ///
    /// A link error contains the log of the linker, such as the undefined symbols.
    #[doc(alias = "cuLinkComplete")]
    pub fn complete(self) -> Result<LinkedImage> {
        let mut bytes = std::ptr::null_mut();
        let mut len = 0;
        let result = self.state.context.entered(|driver| {
            let len = &raw mut len;
            // SAFETY: the link is live, and `bytes` and `len` are valid for writes.
            unsafe { call!(driver, cuLinkComplete(self.state.raw.raw(), &raw mut bytes, len) creates bytes) }
        });
        result.map_err(|error| self.explain(error, None))?;
        let report = self
            .compilations
            .first()
            .map(Compilation::report)
            .unwrap_or_default();
        let bytes = bytes.cast_const().cast();
        Ok(LinkedImage {
            state: self.state,
            bytes,
            len,
            report: Box::new(report),
            _compilations: self.compilations,
        })
    }

    /// Stores the options of one input. The driver keeps pointers to their values, which do not
    /// move.
    fn add_options(&mut self, options: &JitOptions<'a>) -> &mut Compilation {
        let index = self.compilations.len();
        self.compilations.push(Compilation::for_input(options));
        &mut self.compilations[index]
    }

    /// Adds the log of the linker to `error`.
    #[cold]
    fn explain(&self, error: Error, ptx: Option<&str>) -> Error {
        match self.compilations.first() {
            Some(compilation) => compilation.explain(self.state.context.driver(), ptx, error),
            None => error,
        }
    }
}

impl LinkedImage {
    /// Returns the image.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        if self.bytes.is_null() {
            return &[];
        }
        // SAFETY: the driver returned the address and the length of the image, which lives until
        // the link is destroyed with `self`.
        unsafe { std::slice::from_raw_parts(self.bytes, self.len) }
    }

    /// Returns the image in a form that modules and libraries accept.
    #[must_use]
    pub fn image(&self) -> Image<'_> {
        // SAFETY: the driver produced the image.
        unsafe { Image::from_bytes_unchecked(ImageKind::Cubin, self.as_bytes()) }
    }

    /// Returns the log of the linker.
    #[must_use]
    pub fn report(&self) -> &JitReport {
        &self.report
    }

    /// Destroys the link, which frees the image, and returns any error, instead of only reporting
    /// it as [`Drop`] does.
    ///
    /// CUDA: `cuLinkDestroy`.
    ///
    /// # Errors
    ///
    /// Returns the image to the caller if the driver call fails.
    #[doc(alias = "cuLinkDestroy")]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.state
            .destroy()
            .map_err(|error| Returned::new(self, error))
    }
}

impl LinkInput {
    fn as_raw(self) -> CUjitInputType {
        match self {
            Self::Cubin => CUjitInputType::CU_JIT_INPUT_CUBIN,
            Self::Ptx => CUjitInputType::CU_JIT_INPUT_PTX,
            Self::FatBinary => CUjitInputType::CU_JIT_INPUT_FATBINARY,
            Self::Object => CUjitInputType::CU_JIT_INPUT_OBJECT,
            Self::Archive => CUjitInputType::CU_JIT_INPUT_LIBRARY,
            Self::Nvvm => CUjitInputType::CU_JIT_INPUT_NVVM,
        }
    }
}

impl State {
    fn destroy(&mut self) -> Result<()> {
        // SAFETY: the link is live, no other code has its handle, and it is not used again once it
        // is destroyed.
        unsafe { call!(self.context.driver(), cuLinkDestroy(self.raw.raw())) }.map_err(
            |error| error.about_handle("link", self.raw.raw(), self.context.device().as_raw()),
        )?;
        self.raw.clear();
        Ok(())
    }
}

impl AsRef<Driver> for Linker<'_> {
    fn as_ref(&self) -> &Driver {
        self.state.context.driver()
    }
}

impl fmt::Debug for Linker<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Linker({:?})", self.state.raw)
    }
}

impl fmt::Debug for LinkedImage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "LinkedImage({} bytes)", self.len)
    }
}

impl Drop for State {
    fn drop(&mut self) {
        if !self.raw.is_cleared() {
            release(|| self.destroy());
        }
    }
}
