//! The CUDA driver: the entry point.

use std::any::Any;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use curium_sys::{Api, ApiProvider, CUresult, CudaVersion, FromProvider, Function};
use parking_lot::Mutex;

use crate::base::driver_log::Mark;
use crate::base::leak::{LeakCounter, LeakedMemory};
use crate::base::{fork, release};
use crate::call;
use crate::{Error, Result};

/// The CUDA driver, loaded and initialized. Clones are cheap and refer to the same driver.
///
/// Every object keeps its driver alive. The driver library is loaded at run time: neither compiling nor starting a
/// program requires CUDA.
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
    /// The contexts with a capture in progress, by handle. Operations that would invalidate a capture are refused.
    open_captures: Mutex<Vec<usize>>,
    /// Keeps the functions in `api` callable.
    _owner: Option<Box<dyn Any + Send + Sync>>,
}

impl Driver {
    /// Loads and initializes the driver of this machine. Later calls return the same driver. See [`Api::load`] for the
    /// search order.
    ///
    /// CUDA: `cuInit`.
    ///
    /// # Errors
    ///
    /// [`Error::Load`] lists the paths that were tried. The error of `cuInit` reports why the driver does not work,
    /// such as `CUDA_ERROR_NO_DEVICE`. The next call after a failure tries again.
    #[doc(alias = "cuInit")]
    #[doc(alias = "cudaInitDevice")]
    #[inline]
    pub fn load() -> Result<Self> {
        static LOADED: OnceLock<Driver> = OnceLock::new();
        if let Some(driver) = LOADED.get() {
            return Ok(driver.clone());
        }
        let api = Api::load().map_err(Box::new)?;
        let driver = Self::initialized(api, None)?;
        Ok(LOADED.get_or_init(|| driver).clone())
    }

    /// Loads and initializes the driver library at `path`.
    ///
    /// # Safety
    ///
    /// As for [`Api::load_from`]: if the library exports the driver's symbols, it is a CUDA driver.
    ///
    /// # Errors
    ///
    /// As for [`Driver::load`].
    #[inline]
    pub unsafe fn load_from(path: impl AsRef<Path>) -> Result<Self> {
        // SAFETY: the caller is responsible for the library.
        let api = unsafe { Api::load_from(path) }.map_err(Box::new)?;
        Self::initialized(api, None)
    }

    /// Initializes a driver provided by this process, such as the simulator, which is kept until the last handle of
    /// this driver is dropped.
    ///
    /// ```
    /// use curium_driver::Driver;
    /// use curium_sim::{Config, Simulator};
    ///
    /// let driver = Driver::from_provider(Simulator::new(Config::new())?)?;
    /// assert_eq!(driver.device_count()?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// An error of `cuInit` or `cuDriverGetVersion`.
    #[inline]
    pub fn from_provider(provider: impl ApiProvider) -> Result<Self> {
        Self::initialized(provider.api(), Some(Box::new(provider)))
    }

    /// Initializes a driver from a function table, such as the simulator's.
    ///
    /// # Safety
    ///
    /// The functions in `api` implement the CUDA functions that they are named after, and stay callable for as long as
    /// this driver, a clone of it or any object created from it exists.
    ///
    /// # Errors
    ///
    /// An error of `cuInit` or `cuDriverGetVersion`.
    #[inline]
    pub unsafe fn from_api(api: Api) -> Result<Self> {
        Self::initialized(api, None)
    }

    /// Initializes a driver like [`Driver::from_api`], and keeps `owner` until the last handle of this driver is
    /// dropped.
    ///
    /// # Safety
    ///
    /// The functions in `api` implement the CUDA functions that they are named after, and stay callable for as long as
    /// `owner` exists.
    ///
    /// # Errors
    ///
    /// An error of `cuInit` or `cuDriverGetVersion`.
    #[inline]
    pub unsafe fn from_api_with_owner(api: Api, owner: impl Any + Send + Sync) -> Result<Self> {
        Self::initialized(api, Some(Box::new(owner)))
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

    /// Returns the contexts with a capture in progress, by handle.
    #[inline]
    pub(crate) fn open_captures(&self) -> &Mutex<Vec<usize>> {
        &self.shared.open_captures
    }

    /// Returns the new lines of the driver's log that add to the `description` of the `code` that `function` returned.
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

    /// Returns the number of devices visible to this process.
    ///
    /// CUDA: `cuDeviceGetCount`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuDeviceGetCount")]
    #[doc(alias = "cudaGetDeviceCount")]
    pub fn device_count(&self) -> Result<usize> {
        let mut count = 0;
        // SAFETY: `count` is valid for writes.
        unsafe { call!(self, cuDeviceGetCount(&raw mut count)) }?;
        Ok(usize::try_from(count).unwrap_or_default())
    }

    /// Returns the amount of memory that was leaked because it could not be freed safely. See [`LeakedMemory`].
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

    /// Returns an error of `operation` unless `other` is this driver. A handle of one driver is meaningless to another.
    ///
    /// # Errors
    ///
    /// An argument error if the two drivers differ.
    #[inline]
    pub fn expect_same(&self, other: &Self, operation: &'static str) -> Result<()> {
        if self.is_same(other) {
            return Ok(());
        }
        Err(Error::argument(
            operation,
            "the handles belong to different drivers",
        ))
    }

    #[inline]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    fn initialized(api: Api, owner: Option<Box<dyn Any + Send + Sync>>) -> Result<Self> {
        #[cfg(feature = "diagnostics")]
        crate::trace::begin_from_environment();
        let shared = Shared {
            api,
            version: CudaVersion::from_raw(0),
            log: Mark::nowhere(),
            leaks: LeakCounter::default(),
            open_captures: Mutex::default(),
            _owner: owner,
        };
        let mut driver = Self {
            shared: Arc::new(shared),
        };
        let version = driver.read_version()?;
        if let Some(shared) = Arc::get_mut(&mut driver.shared) {
            shared.version = version;
        }
        // SAFETY: `cuInit` takes no pointer and may be called any number of times.
        unsafe { call!(&driver, cuInit(0)) }?;
        if let Some(shared) = Arc::get_mut(&mut driver.shared) {
            shared.log = Mark::now(&shared.api);
        }
        release::watch_for_exit();
        fork::watch_for_forks();
        Ok(driver)
    }

    #[inline]
    fn read_version(&self) -> Result<CudaVersion> {
        let mut version = 0;
        // SAFETY: `version` is valid for writes, and this function may be called before `cuInit`.
        unsafe { call!(self, cuDriverGetVersion(&raw mut version)) }?;
        Ok(CudaVersion::from_raw(
            version.try_into().unwrap_or_default(),
        ))
    }
}

impl<P: ApiProvider> FromProvider<P> for Driver {
    type Error = Error;

    #[inline]
    fn from_provider(provider: P) -> Result<Self> {
        Self::from_provider(provider)
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
