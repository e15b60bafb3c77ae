//! GPU core dumps.

mod listener;

use std::ffi::{CString, OsString, c_void};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use bitflags::bitflags;
use curium_driver::sys::{CUCoredumpGenerationFlags, CUcoredumpSettings};
use curium_driver::{Context, Driver, Error, Result, call};

pub use self::listener::{CoreDumpListener, CoreDumpNotice};

/// The settings of GPU core dumps: those of one context, or the global ones, which apply to new
/// contexts.
///
/// Most settings cannot be changed once a context exists or the first dump was written; the driver
/// then returns an error. Requires a driver for CUDA 12.1. The simulator writes no core dumps.
///
/// ```no_run
/// use curium_diagnostics::{CoreDump, CoreDumpFlags};
/// use curium_driver::Driver;
///
/// let driver = Driver::load()?;
/// let settings = CoreDump::global(&driver);
/// settings.set_file("failure.%p.nvcudmp")?;
/// settings.set_flags(CoreDumpFlags::SKIP_ABORT)?;
/// settings.set_enabled(true)?;
/// # Ok::<(), curium_driver::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct CoreDump {
    scope: Scope,
}

bitflags! {
    /// Flags for the contents of a core dump and the behavior after it.
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    pub struct CoreDumpFlags: u32 {
        /// Leaves out code that was not relocated.
        const SKIP_NONRELOCATED_ELF_IMAGES =
            CUCoredumpGenerationFlags::CU_COREDUMP_SKIP_NONRELOCATED_ELF_IMAGES.0.cast_unsigned();
        /// Leaves out global memory.
        const SKIP_GLOBAL_MEMORY = CUCoredumpGenerationFlags::CU_COREDUMP_SKIP_GLOBAL_MEMORY.0.cast_unsigned();
        /// Leaves out shared memory.
        const SKIP_SHARED_MEMORY = CUCoredumpGenerationFlags::CU_COREDUMP_SKIP_SHARED_MEMORY.0.cast_unsigned();
        /// Leaves out local memory.
        const SKIP_LOCAL_MEMORY = CUCoredumpGenerationFlags::CU_COREDUMP_SKIP_LOCAL_MEMORY.0.cast_unsigned();
        /// Does not abort the process afterwards.
        const SKIP_ABORT = CUCoredumpGenerationFlags::CU_COREDUMP_SKIP_ABORT.0.cast_unsigned();
        /// Leaves out constant memory.
        const SKIP_CONSTBANK_MEMORY = CUCoredumpGenerationFlags::CU_COREDUMP_SKIP_CONSTBANK_MEMORY.0.cast_unsigned();
        /// Compresses the dump.
        const GZIP_COMPRESS = CUCoredumpGenerationFlags::CU_COREDUMP_GZIP_COMPRESS.0.cast_unsigned();
        /// Includes only the contexts that failed.
        const FAULTED_CONTEXTS_ONLY = CUCoredumpGenerationFlags::CU_COREDUMP_FAULTED_CONTEXTS_ONLY.0.cast_unsigned();
        /// Leaves out tensor memory.
        const SKIP_TENSOR_MEMORY = CUCoredumpGenerationFlags::CU_COREDUMP_SKIP_TENSOR_MEMORY.0.cast_unsigned();
        /// Flags defined by newer drivers.
        const _ = !0;
    }
}

#[derive(Clone, Debug)]
enum Scope {
    Global(Driver),
    Context(Context),
}

/// The maximum length of a path in bytes, including its NUL.
const MAX_PATH: usize = 1024;

impl CoreDump {
    /// Returns the global settings, which apply to new contexts.
    #[must_use]
    pub fn global(driver: &Driver) -> Self {
        Self {
            scope: Scope::Global(driver.clone()),
        }
    }

    /// Returns the settings of one context.
    #[must_use]
    pub fn of_context(context: &Context) -> Self {
        Self {
            scope: Scope::Context(context.clone()),
        }
    }

    /// Returns `true` if a GPU exception triggers a core dump.
    ///
    /// CUDA: `cuCoredumpGetAttribute`, `cuCoredumpGetAttributeGlobal`, since 12.1.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuCoredumpGetAttribute")]
    #[doc(alias = "cuCoredumpGetAttributeGlobal")]
    pub fn is_enabled(&self) -> Result<bool> {
        self.flag(CUcoredumpSettings::CU_COREDUMP_ENABLE_ON_EXCEPTION)
    }

    /// Enables or disables a core dump on a GPU exception.
    ///
    /// CUDA: `cuCoredumpSetAttribute`, `cuCoredumpSetAttributeGlobal`, since 12.1.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuCoredumpSetAttribute")]
    #[doc(alias = "cuCoredumpSetAttributeGlobal")]
    pub fn set_enabled(&self, is_enabled: bool) -> Result<()> {
        self.set(
            CUcoredumpSettings::CU_COREDUMP_ENABLE_ON_EXCEPTION,
            &mut [u8::from(is_enabled)],
        )
    }

    /// Returns `true` if the host writes a core dump too.
    ///
    /// CUDA: `cuCoredumpGetAttribute`, `cuCoredumpGetAttributeGlobal`, since 12.1.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn triggers_host(&self) -> Result<bool> {
        self.flag(CUcoredumpSettings::CU_COREDUMP_TRIGGER_HOST)
    }

    /// Enables or disables the core dump of the host.
    ///
    /// CUDA: `cuCoredumpSetAttribute`, `cuCoredumpSetAttributeGlobal`, since 12.1.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn set_triggers_host(&self, triggers_host: bool) -> Result<()> {
        self.set(
            CUcoredumpSettings::CU_COREDUMP_TRIGGER_HOST,
            &mut [u8::from(triggers_host)],
        )
    }

    /// Returns `true` if a write to [`CoreDump::pipe`] triggers a core dump.
    ///
    /// CUDA: `cuCoredumpGetAttributeGlobal`, since 12.1.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn is_user_triggered(&self) -> Result<bool> {
        self.flag(CUcoredumpSettings::CU_COREDUMP_ENABLE_USER_TRIGGER)
    }

    /// Enables or disables core dumps on a write to [`CoreDump::pipe`].
    ///
    /// CUDA: `cuCoredumpSetAttributeGlobal`, since 12.1.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_PERMITTED` for a single context: this is a global setting.
    pub fn set_user_triggered(&self, is_triggered: bool) -> Result<()> {
        self.set(
            CUcoredumpSettings::CU_COREDUMP_ENABLE_USER_TRIGGER,
            &mut [u8::from(is_triggered)],
        )
    }

    /// Returns the path of the core dump file.
    ///
    /// CUDA: `cuCoredumpGetAttribute`, `cuCoredumpGetAttributeGlobal`, since 12.1.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn file(&self) -> Result<PathBuf> {
        self.path(CUcoredumpSettings::CU_COREDUMP_FILE)
    }

    /// Sets the path of the core dump file. `%h`, `%p` and `%t` in the path are replaced with the
    /// host name, the process identifier and the time.
    ///
    /// The global settings return the path with these already replaced.
    ///
    /// CUDA: `cuCoredumpSetAttribute`, `cuCoredumpSetAttributeGlobal`, since 12.1.
    ///
    /// # Errors
    ///
    /// An argument error if the path contains a NUL or is longer than 1,023 bytes.
    pub fn set_file(&self, path: impl AsRef<Path>) -> Result<()> {
        self.set_path(
            "CoreDump::set_file",
            CUcoredumpSettings::CU_COREDUMP_FILE,
            path.as_ref(),
        )
    }

    /// Returns the pipe that triggers a core dump.
    ///
    /// CUDA: `cuCoredumpGetAttributeGlobal`, since 12.1.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn pipe(&self) -> Result<PathBuf> {
        self.path(CUcoredumpSettings::CU_COREDUMP_PIPE)
    }

    /// Sets the pipe that triggers a core dump.
    ///
    /// CUDA: `cuCoredumpSetAttributeGlobal`, since 12.1.
    ///
    /// # Errors
    ///
    /// As for [`CoreDump::set_file`]; `CUDA_ERROR_NOT_PERMITTED` for a single context: this is a
    /// global setting.
    pub fn set_pipe(&self, path: impl AsRef<Path>) -> Result<()> {
        self.set_path(
            "CoreDump::set_pipe",
            CUcoredumpSettings::CU_COREDUMP_PIPE,
            path.as_ref(),
        )
    }

    /// Returns the flags that select the contents of a core dump.
    ///
    /// CUDA: `cuCoredumpGetAttribute`, `cuCoredumpGetAttributeGlobal`; this attribute exists since
    /// 12.5.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the driver does not support the attribute.
    pub fn flags(&self) -> Result<CoreDumpFlags> {
        let mut bytes = [0; 4];
        self.get(CUcoredumpSettings::CU_COREDUMP_GENERATION_FLAGS, &mut bytes)?;
        Ok(CoreDumpFlags::from_bits_retain(u32::from_ne_bytes(bytes)))
    }

    /// Sets the flags that select the contents of a core dump.
    ///
    /// CUDA: `cuCoredumpSetAttribute`, `cuCoredumpSetAttributeGlobal`; this attribute exists since
    /// 12.5.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the driver does not support the attribute or a flag.
    pub fn set_flags(&self, flags: CoreDumpFlags) -> Result<()> {
        self.set(
            CUcoredumpSettings::CU_COREDUMP_GENERATION_FLAGS,
            &mut flags.bits().to_ne_bytes(),
        )
    }

    fn flag(&self, setting: CUcoredumpSettings) -> Result<bool> {
        let mut byte = [0];
        self.get(setting, &mut byte)?;
        Ok(byte != [0])
    }

    fn path(&self, setting: CUcoredumpSettings) -> Result<PathBuf> {
        let mut bytes = vec![0; MAX_PATH];
        self.get(setting, &mut bytes)?;
        let end = bytes
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(bytes.len());
        bytes.truncate(end);
        Ok(PathBuf::from(OsString::from_vec(bytes)))
    }

    fn set_path(
        &self,
        operation: &'static str,
        setting: CUcoredumpSettings,
        path: &Path,
    ) -> Result<()> {
        let refuse =
            |reason: &str| Error::argument(operation, format!("the path {path:?} {reason}"));
        let text =
            CString::new(path.as_os_str().as_bytes()).map_err(|_| refuse("contains a NUL"))?;
        let mut bytes = text.into_bytes_with_nul();
        if bytes.len() > MAX_PATH {
            return Err(refuse("has more than 1023 bytes"));
        }
        self.set(setting, &mut bytes)
    }

    fn get(&self, setting: CUcoredumpSettings, value: &mut [u8]) -> Result<()> {
        let buffer = value.as_mut_ptr().cast::<c_void>();
        let mut size = value.len();
        let size = &raw mut size;
        let result = match &self.scope {
            // SAFETY: `buffer` has room for the number of bytes stored in `size`.
            Scope::Global(driver) => unsafe {
                call!(driver, cuCoredumpGetAttributeGlobal(setting, buffer, size))
            },
            Scope::Context(context) => context.entered(|driver| {
                // SAFETY: `buffer` has room for the number of bytes stored in `size`, and the
                // context is current.
                unsafe { call!(driver, cuCoredumpGetAttribute(setting, buffer, size)) }
            }),
        };
        result.map_err(|error| error.about(format!("setting {}", setting.0)))
    }

    fn set(&self, setting: CUcoredumpSettings, value: &mut [u8]) -> Result<()> {
        let buffer = value.as_mut_ptr().cast::<c_void>();
        let mut size = value.len();
        let size = &raw mut size;
        let result = match &self.scope {
            // SAFETY: `buffer` holds the number of bytes stored in `size`, in the form that CUDA
            // documents for the attribute.
            Scope::Global(driver) => unsafe {
                call!(driver, cuCoredumpSetAttributeGlobal(setting, buffer, size))
            },
            Scope::Context(context) => context.entered(|driver| {
                // SAFETY: `buffer` holds a value of the documented form, `size` its size, and the
                // context is current.
                unsafe { call!(driver, cuCoredumpSetAttribute(setting, buffer, size)) }
            }),
        };
        result.map_err(|error| error.about(format!("setting {}", setting.0)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use curium_driver::sys::CUresult;
    use parking_lot::Mutex;

    use super::*;
    use crate::stub_api;

    /// The settings that the stub driver received.
    static SETTINGS: Mutex<BTreeMap<u32, Vec<u8>>> = Mutex::new(BTreeMap::new());

    fn driver() -> Driver {
        unsafe extern "C" fn get(
            setting: CUcoredumpSettings,
            value: *mut c_void,
            size: *mut usize,
        ) -> CUresult {
            let settings = SETTINGS.lock();
            let Some(kept) = settings.get(&setting.0) else {
                return CUresult::CUDA_ERROR_INVALID_VALUE;
            };
            // SAFETY: the wrapper under test passes the size of the value.
            let size = unsafe { size.read() };
            // SAFETY: the value has room for that many bytes.
            unsafe {
                value
                    .cast::<u8>()
                    .copy_from_nonoverlapping(kept.as_ptr(), kept.len().min(size));
            };
            CUresult::CUDA_SUCCESS
        }
        unsafe extern "C" fn set(
            setting: CUcoredumpSettings,
            value: *mut c_void,
            size: *mut usize,
        ) -> CUresult {
            // SAFETY: the wrapper under test passes the size of the value.
            let size = unsafe { size.read() };
            // SAFETY: the value has that many bytes.
            let bytes = unsafe { std::slice::from_raw_parts(value.cast::<u8>(), size) };
            SETTINGS.lock().insert(setting.0, bytes.to_vec());
            CUresult::CUDA_SUCCESS
        }
        let mut api = stub_api::api();
        api.cuCoredumpGetAttributeGlobal = Some(get);
        api.cuCoredumpSetAttributeGlobal = Some(set);
        stub_api::driver(api)
    }

    /// One test, since the settings are global.
    #[test]
    fn settings_round_trip() {
        let settings = CoreDump::global(&driver());
        assert!(
            settings
                .is_enabled()
                .expect_err("nothing was set")
                .to_string()
                .contains("setting 1")
        );
        settings
            .set_enabled(true)
            .expect("failed to set the option");
        settings
            .set_triggers_host(false)
            .expect("failed to set the option");
        settings
            .set_user_triggered(true)
            .expect("failed to set the option");
        assert!(settings.is_enabled().expect("failed to read the option"));
        assert!(!settings.triggers_host().expect("failed to read the option"));
        assert!(
            settings
                .is_user_triggered()
                .expect("failed to read the option")
        );

        settings
            .set_file("dump.%p")
            .expect("failed to set the option");
        assert_eq!(
            SETTINGS.lock()[&CUcoredumpSettings::CU_COREDUMP_FILE.0],
            b"dump.%p\0"
        );
        assert_eq!(
            settings.file().expect("failed to read the option"),
            Path::new("dump.%p")
        );
        settings.set_pipe("pipe").expect("failed to set the option");
        assert_eq!(
            settings.pipe().expect("failed to read the option"),
            Path::new("pipe")
        );

        let flags = CoreDumpFlags::SKIP_ABORT | CoreDumpFlags::GZIP_COMPRESS;
        settings.set_flags(flags).expect("failed to set the option");
        assert_eq!(settings.flags().expect("failed to read the option"), flags);
    }

    #[test]
    fn path_that_no_driver_takes_is_refused() {
        let settings = CoreDump::global(&driver());
        let error = settings.set_file("a\0b").expect_err("the path has a NUL");
        assert!(error.to_string().contains("contains a NUL"), "{error}");
        let error = settings
            .set_pipe("x".repeat(MAX_PATH))
            .expect_err("the path is too long");
        assert!(
            error.to_string().contains("more than 1023 bytes"),
            "{error}"
        );
    }
}
