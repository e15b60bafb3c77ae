//! A compiled program.

use curium_driver::{Context, Driver, Image, JitOptions, Kernel, Library, Module, Signature};

use crate::{Diagnostic, Error, Result};

/// The outputs of a compilation and the compiler's log: plain data, independent of NVRTC.
///
/// The [options](crate::CompileOptions) determine the output formats: PTX by default, a cubin and
/// PTX for a [real](crate::Architecture::real) architecture, and LTO IR, OptiX IR or Tile IR on
/// request.
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

/// The result of creating a precompiled header.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum PrecompiledHeader {
    /// None was requested, or there was nothing to precompile.
    #[default]
    NotTried,
    /// The header was created.
    Created,
    /// The heap for precompiled headers is too small: see
    /// [`Nvrtc::set_precompiled_header_heap`](crate::Nvrtc::set_precompiled_header_heap).
    HeapExhausted {
        /// The required size in bytes.
        needed: usize,
    },
    /// The header could not be created.
    Failed,
}

impl CompiledProgram {
    pub(crate) fn new(name: &str, log: String, diagnostics: Vec<Diagnostic>) -> Self {
        Self {
            name: name.to_owned(),
            log,
            diagnostics,
            ..Self::default()
        }
    }

    /// Returns the name of the program.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the PTX, which the driver compiles for the device when it is loaded.
    ///
    /// # Errors
    ///
    /// [`Error::NoOutput`] if the options request another format.
    #[doc(alias = "nvrtcGetPTX")]
    pub fn ptx(&self) -> Result<&str> {
        self.some(
            self.ptx.as_deref(),
            "PTX",
            "with options for LTO IR, OptiX IR or a check, the output contains no PTX",
        )
    }

    /// Returns the cubin: machine code for one architecture.
    ///
    /// # Errors
    ///
    /// [`Error::NoOutput`] if the architecture is virtual.
    #[doc(alias = "nvrtcGetCUBIN")]
    pub fn cubin(&self) -> Result<&[u8]> {
        self.some(
            self.cubin.as_deref(),
            "a cubin",
            "compile for a real architecture, such as `Architecture::new(9, 0).real()`",
        )
    }

    /// Returns the LTO IR for [`Linker`](crate::Linker).
    ///
    /// # Errors
    ///
    /// [`Error::NoOutput`] if the options do not request LTO IR.
    #[doc(alias = "nvrtcGetLTOIR")]
    #[doc(alias = "nvrtcGetNVVM")]
    pub fn lto_ir(&self) -> Result<&[u8]> {
        self.some(
            self.lto_ir.as_deref(),
            "LTO IR",
            "use `CompileOptions::with_link_time_optimization`",
        )
    }

    /// Returns the OptiX IR.
    ///
    /// # Errors
    ///
    /// [`Error::NoOutput`] if the options do not request OptiX IR.
    #[doc(alias = "nvrtcGetOptiXIR")]
    pub fn optix_ir(&self) -> Result<&[u8]> {
        self.some(
            self.optix_ir.as_deref(),
            "OptiX IR",
            "use `CompileOptions::with_optix_ir`",
        )
    }

    /// Returns the Tile IR.
    ///
    /// # Errors
    ///
    /// [`Error::NoOutput`] if the options do not request Tile IR.
    #[doc(alias = "nvrtcGetTileIR")]
    pub fn tile_ir(&self) -> Result<&[u8]> {
        self.some(
            self.tile_ir.as_deref(),
            "Tile IR",
            "use `CompileOptions::with_tile` and Tile code",
        )
    }

    /// Returns the name in the image for a name expression of the program.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownName`] if the program was compiled without it.
    #[doc(alias = "nvrtcGetLoweredName")]
    pub fn lowered_name(&self, expression: &str) -> Result<&str> {
        self.lowered_names
            .iter()
            .find(|(name, _)| name == expression)
            .map(|(_, lowered)| lowered.as_str())
            .ok_or_else(|| Error::UnknownName {
                program: self.name.as_str().into(),
                expression: expression.into(),
            })
    }

    /// Returns the image to load: the cubin if present, otherwise the PTX, or the Tile IR of a
    /// program that contains nothing else.
    ///
    /// # Errors
    ///
    /// [`Error::NoOutput`] if there is none of these.
    pub fn image(&self) -> Result<Image<'_>> {
        match (&self.cubin, &self.ptx) {
            // SAFETY: NVRTC generated the cubin in this process, or the authenticated cache stored
            // it.
            (Some(cubin), _) => Ok(unsafe { Image::from_bytes(cubin) }?),
            (None, None) if self.tile_ir.is_some() => self.tile_image(),
            (None, _) => Ok(Image::from_ptx(self.ptx()?)?),
        }
    }

    /// Returns the Tile IR as an image to load. It contains the tile kernels of a program that was
    /// compiled to [both](crate::TileMode::Both) formats.
    ///
    /// # Errors
    ///
    /// [`Error::NoOutput`] without `CompileOptions::with_tile`.
    pub fn tile_image(&self) -> Result<Image<'_>> {
        // SAFETY: NVRTC generated the Tile IR in this process, or the authenticated cache stored
        // it.
        Ok(unsafe { Image::from_bytes(self.tile_ir()?) }?)
    }

    /// Loads the program as a library. `driver` can be a driver, a device, a context or a stream.
    ///
    /// CUDA: `cuLibraryLoadData`, since 12.0.
    ///
    /// # Errors
    ///
    /// As for [`CompiledProgram::image`] and [`Library::from_image`].
    pub fn library(
        &self,
        driver: &impl AsRef<Driver>,
        options: &JitOptions<'_>,
    ) -> Result<Library> {
        Ok(Library::from_image(driver, &self.image()?, options)?)
    }

    /// Loads the program into one context. Does not require a driver for CUDA 12.0.
    ///
    /// CUDA: `cuModuleLoadDataEx`.
    ///
    /// # Errors
    ///
    /// As for [`CompiledProgram::image`] and [`Module::from_image`].
    pub fn module(&self, context: &Context, options: &JitOptions<'_>) -> Result<Module> {
        Ok(Module::from_image(context, &self.image()?, options)?)
    }

    /// Looks up the kernel of `expression` in a library that was loaded from this program: a name
    /// expression of the program, or a name in the image.
    ///
    /// # Errors
    ///
    /// The errors of [`Library::kernel`].
    pub fn kernel<S: Signature>(&self, library: &Library, expression: &str) -> Result<Kernel<S>> {
        Ok(library.kernel(self.lowered_name(expression).unwrap_or(expression))?)
    }

    /// Returns the compiler's log, such as warnings. Usually empty.
    #[must_use]
    pub fn log(&self) -> &str {
        &self.log
    }

    /// Returns the warnings and remarks in the log.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// Returns the result of creating a precompiled header.
    #[doc(alias = "nvrtcGetPCHCreateStatus")]
    #[must_use]
    pub fn precompiled_header(&self) -> PrecompiledHeader {
        self.precompiled_header
    }

    fn some<'a, T: ?Sized>(
        &self,
        output: Option<&'a T>,
        wanted: &'static str,
        advice: &'static str,
    ) -> Result<&'a T> {
        output.ok_or_else(|| Error::NoOutput {
            name: self.name.as_str().into(),
            wanted,
            advice,
        })
    }
}

#[cfg(test)]
mod tests {
    use curium_driver::ImageKind;

    use super::*;

    const PTX: &str = ".version 9.1\n.target sm_100\n.address_size 64\n";
    /// An empty module of version 13.1.
    const TILE_IR: &[u8] = b"\x7fTileIR\0\x0d\x01\0\0\0";

    #[test]
    fn image_is_the_tile_ir_only_without_other_code() {
        let mut compiled = CompiledProgram::new("tiles", String::new(), Vec::new());
        assert!(matches!(compiled.image(), Err(Error::NoOutput { .. })));
        compiled.tile_ir = Some(TILE_IR.to_vec());
        assert_eq!(
            compiled.image().expect("no Tile IR").kind(),
            ImageKind::TileIr
        );
        compiled.ptx = Some(PTX.to_owned());
        assert_eq!(compiled.image().expect("no PTX").kind(), ImageKind::Ptx);
        assert_eq!(
            compiled.tile_image().expect("no Tile IR").kind(),
            ImageKind::TileIr
        );
    }
}
