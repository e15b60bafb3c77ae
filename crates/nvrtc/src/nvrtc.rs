//! NVRTC: the compiler.

mod bundled_headers;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use curium_driver::{ComputeCapability, CudaVersion, Device, DiskCache, Driver};
use curium_sys::library_call as call;
use parking_lot::RwLock;

pub use self::bundled_headers::{BundledHeaders, InstallFlags};
use crate::cache;
use crate::unit::{Cancellation, Unit};
use crate::{Architecture, CompileOptions, CompiledProgram, Error, Program, Result};

/// NVIDIA's run-time compiler, loaded. Clones are cheap and share the library, which stays loaded
/// until the process ends. Any thread may compile.
#[derive(Clone)]
pub struct Nvrtc {
    library: curium_sys::nvrtc::Nvrtc,
    version: CudaVersion,
    build: Arc<OnceLock<u32>>,
    cache: Option<DiskCache>,
}

/// Locked for reading during compilations, and for writing while the heap for precompiled headers,
/// one per process, is replaced.
static PRECOMPILED_HEADERS: RwLock<()> = RwLock::new(());

impl Nvrtc {
    /// Loads the NVRTC of this machine. Later calls return the same library.
    ///
    /// If the environment variable `CURIUM_NVRTC_PATH` names a file, or a folder that contains one,
    /// no other path is tried. Otherwise the system's loader searches for each name, newest version
    /// first, followed by these folders:
    ///
    /// - the `lib64` and `lib` folders of `CUDA_HOME`, `CUDA_PATH` and `CONDA_PREFIX`,
    /// - the packages `nvidia-cuda-nvrtc`, `-cu12` and `-cu11` in the active Python environments:
    ///   those of `VIRTUAL_ENV`, `CONDA_PREFIX`, the first `python3` in `PATH`, the user and the
    ///   system,
    /// - `/usr/local/cuda/lib64`, `/opt/cuda/lib64`, `/usr/lib64`, `/usr/lib`.
    ///
    /// Set-uid programs ignore the environment. The names are `libnvrtc.so.13`, `libnvrtc.so.12`
    /// and `libnvrtc.so.11.2`; on Windows `nvrtc64_130_0.dll`, `nvrtc64_120_0.dll` and
    /// `nvrtc64_112_0.dll` in the `bin\x64` and `bin` folders of a toolkit.
    ///
    /// # Errors
    ///
    /// [`Error::Load`] lists the paths tried. The next call tries again.
    pub fn load() -> Result<Self> {
        static LOADED: OnceLock<Nvrtc> = OnceLock::new();
        if let Some(nvrtc) = LOADED.get() {
            return Ok(nvrtc.clone());
        }
        let nvrtc = Self::new(curium_sys::nvrtc::Nvrtc::load()?);
        Ok(LOADED.get_or_init(|| nvrtc).clone())
    }

    /// Loads the NVRTC at `path`.
    ///
    /// # Safety
    ///
    /// A library at `path` that exports the names of NVRTC's functions implements these functions,
    /// and its initializers may run in this process.
    ///
    /// # Errors
    ///
    /// [`Error::Load`] contains the reason for the rejection.
    pub unsafe fn load_from(path: impl AsRef<Path>) -> Result<Self> {
        // SAFETY: the conditions of the called function are those of this one, which the caller
        // guarantees.
        Ok(Self::new(unsafe {
            curium_sys::nvrtc::Nvrtc::load_from(path)
        }?))
    }

    /// Adds a disk cache. Each compilation first looks the program up in it, and otherwise stores
    /// its result.
    ///
    /// An entry is used if source, headers, options, name expressions, this build of NVRTC and the
    /// files that the source may include are the same. Files are compared by content. A program is
    /// not cached if the source computes the operand of an `#include`, or if options use other
    /// files (precompiled headers, times). If a header in a folder of the options computes one, as
    /// those of CUDA's C++ libraries do, the names, sizes and times of all files in these folders
    /// are compared, too. Failures of the cache are not errors.
    ///
    /// ```no_run
    /// use curium_driver::DiskCache;
    /// use curium_nvrtc::{CompileOptions, Nvrtc, Program};
    ///
    /// let nvrtc = Nvrtc::load()?.with_cache(DiskCache::for_user()?);
    /// let program = Program::new("empty.cu", r#"extern "C" __global__ void empty() {}"#);
    /// let compiled = nvrtc.compile(&program, &CompileOptions::new())?;
    /// # Ok::<(), curium_nvrtc::Error>(())
    /// ```
    #[must_use]
    pub fn with_cache(mut self, cache: DiskCache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Returns the CUDA version of this NVRTC.
    #[doc(alias = "nvrtcVersion")]
    #[must_use]
    pub fn version(&self) -> CudaVersion {
        self.version
    }

    /// Returns the compute capabilities supported by this NVRTC, in ascending order.
    ///
    /// # Errors
    ///
    /// Returns the error of NVRTC.
    #[doc(alias = "nvrtcGetSupportedArchs")]
    pub fn supported_architectures(&self) -> Result<Vec<ComputeCapability>> {
        let mut count = 0;
        // SAFETY: `count` is valid for writes.
        unsafe {
            call!(
                self.library.api(),
                nvrtcGetNumSupportedArchs(&raw mut count)
            )
        }?;
        let mut numbers = vec![0; usize::try_from(count).unwrap_or_default()];
        let numbers_at = numbers.as_mut_ptr();
        // SAFETY: `numbers` has the length that NVRTC reported.
        unsafe { call!(self.library.api(), nvrtcGetSupportedArchs(numbers_at)) }?;
        let numbers = numbers
            .into_iter()
            .filter_map(|number| u32::try_from(number).ok());
        let mut capabilities: Vec<_> = numbers
            .map(|number| ComputeCapability {
                major: number / 10,
                minor: number % 10,
            })
            .collect();
        capabilities.sort_unstable();
        Ok(capabilities)
    }

    /// Returns the architecture to compile for so that `device` can run the output: that of the
    /// device, or an older one if the device is newer than this NVRTC.
    ///
    /// It is virtual, for PTX, unless this NVRTC is newer than the driver, which rejects the PTX of
    /// a newer CUDA. Then it is [real](Architecture::real), for a cubin, which a driver of the same
    /// major CUDA version loads. The simulator runs PTX only.
    ///
    /// # Errors
    ///
    /// [`Error::TooOldDevice`] if this NVRTC no longer supports such a device.
    pub fn architecture_for(&self, device: &Device) -> Result<Architecture> {
        let capability = device.compute_capability()?;
        let architecture = newest_for(&self.supported_architectures()?, capability)?;
        Ok(if self.is_newer_than(device.driver()) {
            architecture.real()
        } else {
            architecture
        })
    }

    /// Returns `true` if the driver rejects the PTX of this NVRTC because of its version.
    pub(crate) fn is_newer_than(&self, driver: &Driver) -> bool {
        self.version > driver.version()
    }

    /// Compiles a program.
    ///
    /// # Errors
    ///
    /// [`Error::Compile`] with the compiler's log and diagnostics for a compilation error or an
    /// invalid option; [`Error::Nul`] if a text contains a NUL.
    #[doc(alias = "nvrtcCompileProgram")]
    pub fn compile(&self, program: &Program, options: &CompileOptions) -> Result<CompiledProgram> {
        match &self.cache {
            Some(cache) => cache::compile(cache, self, program, options),
            None => self.compile_anew(program, options),
        }
    }

    /// Compiles a program without a look-up in the cache.
    pub(crate) fn compile_anew(
        &self,
        program: &Program,
        options: &CompileOptions,
    ) -> Result<CompiledProgram> {
        let _reading = PRECOMPILED_HEADERS.read();
        Unit::new(self.library.api(), program)?.compile(options)
    }

    /// Compiles a program, unless `is_cancelled` returns `true` before the compilation ends. NVRTC
    /// calls it repeatedly, on any thread. It must not call NVRTC. The cache is not used.
    ///
    /// Requires NVRTC of CUDA 12.8.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] if the compilation was cancelled, and the errors of [`Nvrtc::compile`].
    ///
    /// # Panics
    ///
    /// Resumes a panic of `is_cancelled` after the compilation has ended.
    #[doc(alias = "nvrtcSetFlowCallback")]
    pub fn compile_unless(
        &self,
        is_cancelled: &(dyn Fn() -> bool + Sync),
        program: &Program,
        options: &CompileOptions,
    ) -> Result<CompiledProgram> {
        let _reading = PRECOMPILED_HEADERS.read();
        Unit::new(self.library.api(), program)?
            .compile_unless(options, &Cancellation::new(is_cancelled))
    }

    /// Returns the size of the process-wide heap for precompiled headers in bytes.
    ///
    /// Requires NVRTC of CUDA 12.8.
    ///
    /// # Errors
    ///
    /// Returns the error of NVRTC.
    #[doc(alias = "nvrtcGetPCHHeapSize")]
    pub fn precompiled_header_heap(&self) -> Result<usize> {
        let mut size = 0;
        // SAFETY: `size` is valid for writes.
        unsafe { call!(self.library.api(), nvrtcGetPCHHeapSize(&raw mut size)) }?;
        Ok(size)
    }

    /// Sets the size of the process-wide heap for precompiled headers in bytes, which NVRTC may
    /// round up. Existing precompiled headers are discarded. Waits for compilations on other
    /// threads.
    ///
    /// Requires NVRTC of CUDA 12.8.
    ///
    /// # Errors
    ///
    /// Returns the error of NVRTC.
    #[doc(alias = "nvrtcSetPCHHeapSize")]
    pub fn set_precompiled_header_heap(&self, bytes: usize) -> Result<()> {
        let _replacing = PRECOMPILED_HEADERS.write();
        // SAFETY: the function accepts every size, and the lock excludes compilations.
        unsafe { call!(self.library.api(), nvrtcSetPCHHeapSize(bytes)) }
    }

    /// Returns the build number, which distinguishes releases of the same version; 0 if unknown.
    pub(crate) fn build(&self) -> u32 {
        *self.build.get_or_init(|| {
            let program = Program::new("build", "__device__ int build_is = __CUDACC_VER_BUILD__;");
            let compiled =
                self.compile_anew(&program, &CompileOptions::new().with_relocatable_code(true));
            compiled
                .ok()
                .and_then(|compiled| initial_value(compiled.ptx().ok()?))
                .unwrap_or_default()
        })
    }

    fn new(library: curium_sys::nvrtc::Nvrtc) -> Self {
        let version = library.version();
        Self {
            library,
            version: CudaVersion::new(version.major, version.minor),
            build: Arc::default(),
            cache: None,
        }
    }
}

impl fmt::Debug for Nvrtc {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Nvrtc(CUDA {})", self.version)
    }
}

/// Returns the value of the variable in PTX: 93 for `.u32 build_is = 93;`.
fn initial_value(ptx: &str) -> Option<u32> {
    let (_, behind) = ptx.split_once("build_is = ")?;
    behind.split_once(';')?.0.trim().parse().ok()
}

/// Returns the newest architecture in `supported`, which is in ascending order, that `device`
/// supports.
fn newest_for(supported: &[ComputeCapability], device: ComputeCapability) -> Result<Architecture> {
    match supported.iter().rfind(|capability| **capability <= device) {
        Some(capability) => Ok(Architecture::from(*capability)),
        None => Err(Error::TooOldDevice {
            oldest: supported.first().copied().unwrap_or(device),
            device,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn capability(major: u32, minor: u32) -> ComputeCapability {
        ComputeCapability { major, minor }
    }

    #[test]
    fn build_is_parsed_from_a_variable() {
        assert_eq!(
            initial_value(".visible .global .align 4 .u32 build_is = 93;\n"),
            Some(93)
        );
        assert_eq!(
            initial_value(".visible .global .align 4 .u32 build_is;\n"),
            None
        );
    }

    #[test]
    fn architecture_is_the_newest_that_both_support() {
        let supported = [capability(7, 5), capability(8, 6), capability(9, 0)];
        for (device, expected) in [
            (capability(8, 6), capability(8, 6)),
            (capability(8, 9), capability(8, 6)),
            (capability(12, 0), capability(9, 0)),
        ] {
            let architecture = newest_for(&supported, device).map(Architecture::capability);
            assert_eq!(architecture.ok(), Some(expected));
        }
        let error = newest_for(&supported, capability(6, 1))
            .expect_err("the device is too old")
            .to_string();
        assert!(error.contains("7.5") && error.contains("6.1"), "{error}");
    }
}
