//! Loading and initializing drivers: the entry point.

use std::any::Any;
use std::path::Path;
use std::sync::OnceLock;

use curium_sys::{Api, ApiProvider, CudaVersion, FromProvider};

use crate::base::{call_trace, fork, release};
use crate::call;
use crate::{Driver, Error, Result};

impl Driver {
    /// Loads and initializes the driver of this machine. Later calls return the same driver. See
    /// [`Api::load`] for the search order.
    ///
    /// CUDA: `cuInit`.
    ///
    /// # Errors
    ///
    /// [`Error::Load`] lists the paths that were tried. The error of `cuInit` reports why the
    /// driver does not work, such as `CUDA_ERROR_NO_DEVICE`. The next call after a failure tries
    /// again.
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

    /// Initializes a driver provided by this process, such as the simulator, which is kept until
    /// the last handle of this driver is dropped.
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
    /// The functions in `api` implement the CUDA functions that they are named after, and stay
    /// callable for as long as this driver, a clone of it or any object created from it exists.
    ///
    /// # Errors
    ///
    /// An error of `cuInit` or `cuDriverGetVersion`.
    #[inline]
    pub unsafe fn from_api(api: Api) -> Result<Self> {
        Self::initialized(api, None)
    }

    /// Initializes a driver like [`Driver::from_api`], and keeps `owner` until the last handle of
    /// this driver is dropped.
    ///
    /// # Safety
    ///
    /// The functions in `api` implement the CUDA functions that they are named after, and stay
    /// callable for as long as `owner` exists.
    ///
    /// # Errors
    ///
    /// An error of `cuInit` or `cuDriverGetVersion`.
    #[inline]
    pub unsafe fn from_api_with_owner(api: Api, owner: impl Any + Send + Sync) -> Result<Self> {
        Self::initialized(api, Some(Box::new(owner)))
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

    /// Returns an error of `operation` unless `other` is this driver. A handle of one driver is
    /// meaningless to another.
    ///
    /// # Errors
    ///
    /// An argument error if the two drivers differ.
    #[inline]
    pub fn check_same(&self, other: &Self, operation: &'static str) -> Result<()> {
        if self.is_same(other) {
            return Ok(());
        }
        Err(Error::argument(
            operation,
            "the handles belong to different drivers",
        ))
    }

    fn initialized(api: Api, owner: Option<Box<dyn Any + Send + Sync>>) -> Result<Self> {
        call_trace::begin_from_environment();
        let mut driver = Self::uninitialized(api, owner);
        driver.set_version(driver.read_version()?);
        // SAFETY: `cuInit` takes no pointer and may be called any number of times.
        unsafe { call!(&driver, cuInit(0)) }?;
        driver.begin_log();
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
