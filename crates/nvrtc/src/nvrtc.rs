//! NVRTC: the compiler.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use curium_driver::{ComputeCapability, CudaVersion};

use crate::api::{Api, call};
use crate::load;
use crate::program::Program;
use crate::{Architecture, CompileOptions, Error, Ptx, Result};

/// NVIDIA's compiler, loaded. Clones are cheap and stand for the same library, which stays loaded until the process ends. Any
/// thread may compile.
#[derive(Clone)]
pub struct Nvrtc {
    api: Arc<Api>,
    version: CudaVersion,
}

impl Nvrtc {
    /// Loads the NVRTC of this machine; later calls give the same.
    ///
    /// If the environment variable `CURIUM_NVRTC_PATH` names a file, or a folder that holds one, nothing else is tried; set-uid
    /// programs ignore it. Otherwise the system's loader is asked for each name, the newest version first, and then these folders
    /// are searched:
    ///
    /// - the `lib64` and `lib` folders of `CUDA_HOME` and `CUDA_PATH`, which set-uid programs ignore too,
    /// - `/usr/local/cuda/lib64`, `/opt/cuda/lib64`, `/usr/lib64`, `/usr/lib`.
    ///
    /// The names are `libnvrtc.so.13`, `libnvrtc.so.12` and `libnvrtc.so.11.2`; on Windows `nvrtc64_130_0.dll`,
    /// `nvrtc64_120_0.dll` and `nvrtc64_112_0.dll` in the `bin\x64` and `bin` folders of `CUDA_PATH`.
    ///
    /// # Errors
    ///
    /// [`Error::Load`] lists the paths tried. A failure is not remembered: the next call tries again.
    pub fn load() -> Result<Self> {
        static LOADED: OnceLock<Nvrtc> = OnceLock::new();
        if let Some(nvrtc) = LOADED.get() {
            return Ok(nvrtc.clone());
        }
        let nvrtc = Self::new(load::installed()?)?;
        Ok(LOADED.get_or_init(|| nvrtc).clone())
    }

    /// Loads the NVRTC at `path`, and no other.
    ///
    /// # Safety
    ///
    /// The library at `path`, if it exports the names of NVRTC's functions, is NVRTC: its initialisers may run in this process, and
    /// its functions have the signatures and the meaning that NVRTC gives to their names.
    ///
    /// # Errors
    ///
    /// [`Error::Load`] says why the library did not serve.
    pub unsafe fn load_from(path: impl AsRef<Path>) -> Result<Self> {
        // SAFETY: the caller vouches for the library.
        let api = unsafe { load::from(path.as_ref()) }?;
        Self::new(api)
    }

    /// The CUDA version that this NVRTC is of.
    #[doc(alias = "nvrtcVersion")]
    #[must_use]
    pub fn version(&self) -> CudaVersion {
        self.version
    }

    /// The compute capabilities that this NVRTC compiles for, the oldest first.
    ///
    /// # Errors
    ///
    /// Whatever NVRTC returns.
    #[doc(alias = "nvrtcGetSupportedArchs")]
    pub fn supported_architectures(&self) -> Result<Vec<ComputeCapability>> {
        let mut count = 0;
        // SAFETY: `count` is a valid place for the answer.
        unsafe { call!(&self.api, nvrtcGetNumSupportedArchs(&raw mut count)) }?;
        let mut numbers = vec![0; usize::try_from(count).unwrap_or_default()];
        let numbers_at = numbers.as_mut_ptr();
        // SAFETY: `numbers` has room for as many as NVRTC has.
        unsafe { call!(&self.api, nvrtcGetSupportedArchs(numbers_at)) }?;
        let numbers = numbers.into_iter().filter_map(|number| u32::try_from(number).ok());
        let mut capabilities: Vec<_> =
            numbers.map(|number| ComputeCapability { major: number / 10, minor: number % 10 }).collect();
        capabilities.sort_unstable();
        Ok(capabilities)
    }

    /// The newest architecture that this NVRTC compiles for and that `device` runs: the device's own, or an older one if the device
    /// is newer than this NVRTC.
    ///
    /// # Errors
    ///
    /// [`Error::TooOldDevice`] if this NVRTC no longer compiles for such a device.
    pub fn architecture_for(&self, device: ComputeCapability) -> Result<Architecture> {
        newest_for(&self.supported_architectures()?, device)
    }

    /// Compiles CUDA C++ to PTX. `name` is what diagnostics call the source.
    ///
    /// # Errors
    ///
    /// [`Error::Compile`] with the compiler's log and the diagnostics in it if the source or an option is wrong; [`Error::Nul`] if
    /// a text has a NUL in it.
    #[doc(alias = "nvrtcCompileProgram")]
    pub fn compile(&self, source: &str, name: &str, options: &CompileOptions) -> Result<Ptx> {
        Program::new(&self.api, source, name, &options.headers)?.compile(options)
    }

    fn new(api: Api) -> Result<Self> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: `major` and `minor` are valid places for the answers.
        unsafe { call!(&api, nvrtcVersion(&raw mut major, &raw mut minor)) }?;
        let version = CudaVersion::new(major.try_into().unwrap_or_default(), minor.try_into().unwrap_or_default());
        Ok(Self { api: Arc::new(api), version })
    }
}

impl fmt::Debug for Nvrtc {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Nvrtc(CUDA {})", self.version)
    }
}

/// The newest of `supported`, which go from old to new, that `device` runs.
fn newest_for(supported: &[ComputeCapability], device: ComputeCapability) -> Result<Architecture> {
    match supported.iter().rfind(|capability| **capability <= device) {
        Some(capability) => Ok(Architecture::from(*capability)),
        None => Err(Error::TooOldDevice { oldest: supported.first().copied().unwrap_or(device), device }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn capability(major: u32, minor: u32) -> ComputeCapability {
        ComputeCapability { major, minor }
    }

    #[test]
    fn architecture_is_the_newest_that_both_know() {
        let supported = [capability(7, 5), capability(8, 6), capability(9, 0)];
        let chosen = |device| newest_for(&supported, device).map(Architecture::capability);
        assert_eq!(chosen(capability(8, 6)).ok(), Some(capability(8, 6)));
        assert_eq!(chosen(capability(8, 9)).ok(), Some(capability(8, 6)));
        assert_eq!(chosen(capability(12, 0)).ok(), Some(capability(9, 0)));
        let error = chosen(capability(6, 1)).expect_err("the device is too old").to_string();
        assert!(error.contains("7.5") && error.contains("6.1"), "{error}");
    }
}
