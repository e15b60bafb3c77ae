//! Compilation and loading in one call.

use curium_driver::{Device, JitOptions, Kernel, Library, Signature};

use crate::{CompileOptions, CompiledProgram, Nvrtc, Program, Result};

/// Compiles CUDA C++ for a device and loads it. Implemented by [`Device`].
pub trait Compile {
    /// Compiles `program`, for example the text of a source, for this device with the NVRTC of this machine, and loads
    /// it.
    ///
    /// ```no_run
    /// use curium_driver::Device;
    /// use curium_nvrtc::Compile as _;
    ///
    /// let device = Device::first()?;
    /// let program = device.compile(r#"extern "C" __global__ void scale(float* x, float by) { x[threadIdx.x] *= by; }"#)?;
    /// let scale = program.kernel::<(&mut [f32], f32)>("scale")?;
    /// # Ok::<(), curium_nvrtc::Error>(())
    /// ```
    ///
    /// CUDA: `cuLibraryLoadData`, since 12.0.
    ///
    /// # Errors
    ///
    /// [`Error::Load`](crate::Error::Load) if NVRTC is not found, [`Error::Compile`](crate::Error::Compile) with the
    /// compiler's diagnostics for a compilation error, and the errors of [`CompiledProgram::library`].
    fn compile(&self, program: impl Into<Program>) -> Result<LoadedProgram>;

    /// Compiles and loads like [`Compile::compile`], with another NVRTC and with options. The default architecture is
    /// that of this device.
    ///
    /// # Errors
    ///
    /// As for [`Compile::compile`].
    fn compile_with(
        &self,
        nvrtc: &Nvrtc,
        program: impl Into<Program>,
        options: &CompileOptions,
    ) -> Result<LoadedProgram>;
}

/// A compiled program, loaded as a library.
#[derive(Clone, Debug)]
pub struct LoadedProgram {
    program: CompiledProgram,
    library: Library,
}

impl Compile for Device {
    fn compile(&self, program: impl Into<Program>) -> Result<LoadedProgram> {
        self.compile_with(&Nvrtc::load()?, program, &CompileOptions::new())
    }

    fn compile_with(
        &self,
        nvrtc: &Nvrtc,
        program: impl Into<Program>,
        options: &CompileOptions,
    ) -> Result<LoadedProgram> {
        LoadedProgram::new(nvrtc, self, &program.into(), options)
    }
}

impl LoadedProgram {
    /// Compiles `program`, for `device` unless `options` set an architecture, and loads it.
    pub(crate) fn new(
        nvrtc: &Nvrtc,
        device: &Device,
        program: &Program,
        options: &CompileOptions,
    ) -> Result<Self> {
        let mut options = options.clone();
        if !options.has_architecture() {
            options =
                options.with_architecture(nvrtc.architecture_for(device.compute_capability()?)?);
        }
        let program = nvrtc.compile(program, &options)?;
        let library = program.library(device, &JitOptions::new())?;
        Ok(Self { program, library })
    }

    /// Looks up a kernel by a name expression of the program, such as a template instance, or by its name in the image.
    ///
    /// # Errors
    ///
    /// As for [`Library::kernel`].
    pub fn kernel<S: Signature>(&self, expression: &str) -> Result<Kernel<S>> {
        self.program.kernel(&self.library, expression)
    }

    /// Returns the library.
    #[must_use]
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// Returns the compiled program, with the compiler's log.
    #[must_use]
    pub fn program(&self) -> &CompiledProgram {
        &self.program
    }
}
