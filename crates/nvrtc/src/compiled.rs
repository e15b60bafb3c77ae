//! A compiled program.

use curium_driver::{Context, Driver, Image, JitOptions, Kernel, Library, Module, Signature};

use crate::{Diagnostic, Error, Result};

/// What a program was compiled to, and what the compiler had to say about it. It is plain data, and needs NVRTC no more.
///
/// Which forms there are is decided by the [options](crate::CompileOptions): PTX without any, a cubin for a
/// [real](crate::Architecture::real) architecture, LTO IR, OptiX IR or Tile IR on request.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CompiledProgram {
    pub(crate) name: String,
    pub(crate) ptx: Option<String>,
    pub(crate) cubin: Option<Vec<u8>>,
    pub(crate) lto_ir: Option<Vec<u8>>,
    pub(crate) optix_ir: Option<Vec<u8>>,
    pub(crate) tile_ir: Option<Vec<u8>>,
    pub(crate) lowered_names: Vec<(String, String)>,
    pub(crate) log: String,
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) precompiled_header: PrecompiledHeader,
}

/// What became of the precompiled header that a compilation may make.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum PrecompiledHeader {
    /// None was asked for, or there was nothing to precompile.
    #[default]
    NotTried,
    /// It was made.
    Created,
    /// The memory for precompiled headers was short: see
    /// [`Nvrtc::set_precompiled_header_heap`](crate::Nvrtc::set_precompiled_header_heap).
    HeapExhausted {
        /// How much it needs, in bytes.
        needed: usize,
    },
    /// It could not be made.
    Failed,
}

impl CompiledProgram {
    pub(crate) fn new(name: &str, log: String, diagnostics: Vec<Diagnostic>) -> Self {
        Self { name: name.to_owned(), log, diagnostics, ..Self::default() }
    }

    /// The name of the program.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The PTX text, which a driver compiles for its devices when it loads it.
    ///
    /// # Errors
    ///
    /// [`Error::NoOutput`] if the options asked for another form.
    #[doc(alias = "nvrtcGetPTX")]
    pub fn ptx(&self) -> Result<&str> {
        self.some(self.ptx.as_deref(), "PTX", "options for LTO IR, OptiX IR or a check alone make none")
    }

    /// The cubin: machine code for one architecture.
    ///
    /// # Errors
    ///
    /// [`Error::NoOutput`] if the architecture is a virtual one.
    #[doc(alias = "nvrtcGetCUBIN")]
    pub fn cubin(&self) -> Result<&[u8]> {
        self.some(
            self.cubin.as_deref(),
            "a cubin",
            "compile for a real architecture, such as `Architecture::new(9, 0).real()`",
        )
    }

    /// The LTO IR, for [`Linker`](crate::Linker).
    ///
    /// # Errors
    ///
    /// [`Error::NoOutput`] without that option.
    #[doc(alias = "nvrtcGetLTOIR")]
    #[doc(alias = "nvrtcGetNVVM")]
    pub fn lto_ir(&self) -> Result<&[u8]> {
        self.some(self.lto_ir.as_deref(), "LTO IR", "use `CompileOptions::with_link_time_optimization`")
    }

    /// The OptiX IR.
    ///
    /// # Errors
    ///
    /// [`Error::NoOutput`] without that option.
    #[doc(alias = "nvrtcGetOptiXIR")]
    pub fn optix_ir(&self) -> Result<&[u8]> {
        self.some(self.optix_ir.as_deref(), "OptiX IR", "use `CompileOptions::with_optix_ir`")
    }

    /// The Tile IR.
    ///
    /// # Errors
    ///
    /// [`Error::NoOutput`] without that option.
    #[doc(alias = "nvrtcGetTileIR")]
    pub fn tile_ir(&self) -> Result<&[u8]> {
        self.some(self.tile_ir.as_deref(), "Tile IR", "use `CompileOptions::with_tile` and Tile code")
    }

    /// What a name expression of the program is called in the image.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownName`] if the program was compiled without it.
    #[doc(alias = "nvrtcGetLoweredName")]
    pub fn lowered_name(&self, expression: &str) -> Result<&str> {
        let found = self.lowered_names.iter().find(|(known, _)| known == expression);
        let unknown = || Error::UnknownName { program: self.name.as_str().into(), expression: expression.into() };
        found.map(|(_, lowered)| lowered.as_str()).ok_or_else(unknown)
    }

    /// The image to load: the cubin if there is one, else the PTX.
    ///
    /// # Errors
    ///
    /// [`Error::NoOutput`] if there is neither.
    pub fn image(&self) -> Result<Image<'_>> {
        match &self.cubin {
            // SAFETY: NVRTC made the cubin in this process, or in another, whose cache kept it.
            Some(cubin) => Ok(unsafe { Image::from_bytes(cubin) }?),
            None => Ok(Image::from_ptx(self.ptx()?)?),
        }
    }

    /// Loads the program. A driver, a device, a context and a stream all name the driver.
    ///
    /// CUDA: `cuLibraryLoadData`, since 12.0.
    ///
    /// # Errors
    ///
    /// As for [`CompiledProgram::image`] and [`Library::from_image`].
    pub fn library(&self, driver: &impl AsRef<Driver>, options: &JitOptions<'_>) -> Result<Library> {
        Ok(Library::from_image(driver, &self.image()?, options)?)
    }

    /// Loads the program into one context. Needs no driver for CUDA 12.0.
    ///
    /// CUDA: `cuModuleLoadDataEx`.
    ///
    /// # Errors
    ///
    /// As for [`CompiledProgram::image`] and [`Module::from_image`].
    pub fn module(&self, context: &Context, options: &JitOptions<'_>) -> Result<Module> {
        Ok(Module::from_image(context, &self.image()?, options)?)
    }

    /// The kernel that `expression` stands for, in a library that this program was loaded as: a name expression of the program,
    /// or a name as it is in the image.
    ///
    /// # Errors
    ///
    /// As for [`Library::kernel`].
    pub fn kernel<S: Signature>(&self, library: &Library, expression: &str) -> Result<Kernel<S>> {
        Ok(library.kernel(self.lowered_name(expression).unwrap_or(expression))?)
    }

    /// What the compiler wrote, such as warnings; mostly empty.
    #[must_use]
    pub fn log(&self) -> &str {
        &self.log
    }

    /// The warnings and remarks in the log.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// What became of the precompiled header.
    #[doc(alias = "nvrtcGetPCHCreateStatus")]
    #[must_use]
    pub fn precompiled_header(&self) -> PrecompiledHeader {
        self.precompiled_header
    }

    fn some<'a, T: ?Sized>(&self, output: Option<&'a T>, wanted: &'static str, advice: &'static str) -> Result<&'a T> {
        output.ok_or_else(|| Error::NoOutput { name: self.name.as_str().into(), wanted, advice })
    }
}
