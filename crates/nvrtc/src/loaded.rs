//! Compilation and loading in one call.

use std::borrow::Cow;

use curium_driver::sys::CUresult;
use curium_driver::{Device, Driver, JitOptions, Kernel, Library, Signature};

use crate::{CompileOptions, CompiledProgram, Error, Nvrtc, Program, Result};

mod sealed {
    /// Implemented by `Device`. Other crates cannot name it, so they cannot implement it.
    pub trait Sealed {}

    impl Sealed for curium_driver::Device {}
}

/// Compiles CUDA C++ for a device and loads it. Implemented by [`Device`] only.
pub trait Compile: sealed::Sealed {
    /// Compiles `program`, for example the text of a source, for this device with the NVRTC of this
    /// machine, and loads it. The output is PTX, or a cubin if NVRTC is newer than the driver: see
    /// [`Nvrtc::architecture_for`].
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
    /// [`Error::Load`](crate::Error::Load) if NVRTC is not found,
    /// [`Error::Compile`](crate::Error::Compile) with the compiler's diagnostics for a compilation
    /// error, and the errors of [`CompiledProgram::library`].
    fn compile(&self, program: impl Into<Program>) -> Result<LoadedProgram>;

    /// Compiles and loads like [`Compile::compile`], with another NVRTC and with options. The
    /// default architecture is that of [`Nvrtc::architecture_for`]. On the simulator, the PTX has
    /// [line information](CompileOptions::with_line_info). If the device cannot run the cubin for a
    /// real architecture, the PTX of the same architecture is loaded instead.
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
            options = options.with_architecture(nvrtc.architecture_for(device)?);
        }
        // The simulator's reports name the lines. They change no code.
        if device.driver().is_simulated() && !options.has_debug_information() {
            options = options.with_line_info();
        }
        let program = nvrtc.compile(program, &options)?;
        let library = load(&program, device)
            .map_err(|error| with_version_hint(error, nvrtc, device.driver()))?;
        Ok(Self { program, library })
    }

    /// Looks up a kernel by a name expression of the program, such as a template instance, or by
    /// its name in the image.
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

/// Loads the cubin of `program`, if it has one, or its PTX if the device cannot run the cubin.
fn load(program: &CompiledProgram, device: &Device) -> Result<Library> {
    let result = program.library(device, &JitOptions::new());
    let Err(Error::Driver(error)) = &result else {
        return result;
    };
    // NVRTC generates the PTX, too. The simulator runs nothing else.
    match program.ptx() {
        Ok(ptx) if error.code() == Some(CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU) => {
            Ok(Library::from_ptx(device, ptx)?)
        }
        _ => result,
    }
}

/// Adds a hint to the error of a driver that rejects the output of a newer NVRTC.
fn with_version_hint(error: Error, nvrtc: &Nvrtc, driver: &Driver) -> Error {
    let Error::Driver(error) = error else {
        return error;
    };
    let is_rejected = matches!(
        error.code(),
        Some(
            CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU
                | CUresult::CUDA_ERROR_INVALID_IMAGE
                | CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION
        )
    );
    if !is_rejected || !nvrtc.is_newer_than(driver) {
        return Error::Driver(error);
    }
    let compiler = nvrtc.version();
    let version = driver.version();
    let hint = format!(
        "NVRTC of CUDA {compiler} is newer than this driver, which rejects its PTX, and the simulator and drivers of an \
         older major version reject its cubins: use NVRTC of CUDA {version} or older (CURIUM_NVRTC_PATH), a driver for CUDA \
         {compiler}, or `Nvrtc::architecture_for` as the architecture"
    );
    Error::Driver(error.advised(|_| Some(Cow::Owned(hint))))
}
