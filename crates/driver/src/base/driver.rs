//! The driver: its table of functions, and the state that all of its objects share.
//!
//! The module `driver` loads and initializes drivers.

use std::any::Any;
use std::ffi::c_int;
use std::fmt;
use std::sync::Arc;

use curium_sys::{Api, CUresult, CudaVersion, Function};
use parking_lot::Mutex;

use crate::base::driver_log::Mark;
use crate::base::leak::{LeakCounter, LeakedMemory};

/// The CUDA driver, loaded and initialized. Clones are cheap and refer to the same driver.
///
/// Every object keeps its driver alive. The driver library is loaded at run time: neither compiling
/// nor starting a program requires CUDA.
///
/// ```no_run
/// use curium_driver::Driver;
///
/// let driver = Driver::load()?;
/// println!("CUDA {} with {} devices", driver.version(), driver.device_count()?);
/// # Ok::<(), curium_driver::Error>(())
/// ```
#[derive(Clone)]
pub struct Driver {
    shared: Arc<Shared>,
}

struct Shared {
    api: Api,
    version: CudaVersion,
    /// The position up to which errors have read the driver's log.
    log: Mark,
    leaks: LeakCounter,
    /// The contexts with a capture in progress, by handle. Operations that would invalidate a
    /// capture are refused.
    open_captures: Mutex<Vec<usize>>,
    /// Keeps the functions in `api` callable.
    _owner: Option<Box<dyn Any + Send + Sync>>,
}

impl Driver {
    /// Creates a driver that is not initialized.
    pub(crate) fn uninitialized(api: Api, owner: Option<Box<dyn Any + Send + Sync>>) -> Self {
        let shared = Shared {
            api,
            version: CudaVersion::from_raw(0),
            log: Mark::nowhere(),
            leaks: LeakCounter::default(),
            open_captures: Mutex::default(),
            _owner: owner,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Sets the version of a driver that has no clone.
    pub(crate) fn set_version(&mut self, version: CudaVersion) {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.version = version;
        }
    }

    /// Makes errors read the lines of the driver's log from now on. The driver has no clone.
    pub(crate) fn begin_log(&mut self) {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.log = Mark::now(&shared.api);
        }
    }

    /// Returns the function table.
    #[inline]
    #[must_use]
    pub fn api(&self) -> &Api {
        &self.shared.api
    }

    /// Returns the latest CUDA version that this driver supports.
    ///
    /// CUDA: `cuDriverGetVersion`.
    #[doc(alias = "cuDriverGetVersion")]
    #[doc(alias = "cudaDriverGetVersion")]
    #[must_use]
    #[inline]
    pub fn version(&self) -> CudaVersion {
        self.shared.version
    }

    /// Returns `true` if the driver is Curium's simulator, whose devices have its name.
    #[doc(hidden)]
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        const NAME: &[u8] = b"Curium Simulator";
        let Some(function) = self.api().cuDeviceGetName else {
            return false;
        };
        let mut name = [0_u8; 64];
        // SAFETY: `name` is valid for writes of this length, and the function takes any device
        // ordinal at any time.
        let result = unsafe { function(name.as_mut_ptr().cast(), name.len() as c_int, 0) };
        result == CUresult::CUDA_SUCCESS && name.starts_with(NAME)
    }

    /// Returns the contexts with a capture in progress, by handle.
    #[inline]
    pub(crate) fn open_captures(&self) -> &Mutex<Vec<usize>> {
        &self.shared.open_captures
    }

    /// Returns the new lines of the driver's log that add to the `description` of the `code` that
    /// `function` returned.
    #[cold]
    pub(crate) fn logged(
        &self,
        function: Function,
        code: CUresult,
        description: &str,
    ) -> Option<Box<str>> {
        self.shared
            .log
            .read(self.api(), function, code, description)
    }

    /// Returns `true` if the driver exports `function`.
    #[must_use]
    #[inline]
    pub fn has(&self, function: Function) -> bool {
        self.api().has(function)
    }

    /// Returns the amount of memory that was leaked because it could not be freed safely. See
    /// [`LeakedMemory`].
    #[must_use]
    #[inline]
    pub fn leaked_memory(&self) -> LeakedMemory {
        self.shared.leaks.total()
    }

    #[inline]
    pub(crate) fn leaks(&self) -> &LeakCounter {
        &self.shared.leaks
    }

    /// Returns the address of the driver's state, which identifies it.
    #[inline]
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.shared).addr()
    }

    #[inline]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl AsRef<Driver> for Driver {
    #[inline]
    fn as_ref(&self) -> &Driver {
        self
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Driver(CUDA {})", self.version())
    }
}
