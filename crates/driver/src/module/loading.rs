//! The module loading mode: lazy or eager.

use curium_sys::CUmoduleLoadingMode;

use crate::call;
use crate::{Driver, Result};

/// When a driver loads the code of kernels. The environment variable `CUDA_MODULE_LOADING` chooses.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum LoadingMode {
    /// With their module.
    Eager,
    /// When they are first used.
    Lazy,
    /// A mode that Curium does not know.
    Unknown(u32),
}

impl Driver {
    /// When this driver loads the code of kernels.
    ///
    /// CUDA: `cuModuleGetLoadingMode`.
    ///
    /// # Errors
    ///
    /// An error of the driver.
    #[doc(alias = "cuModuleGetLoadingMode")]
    #[inline]
    pub fn loading_mode(&self) -> Result<LoadingMode> {
        let mut mode = CUmoduleLoadingMode::CU_MODULE_EAGER_LOADING;
        // SAFETY: `mode` is valid for writes.
        unsafe { call!(self, cuModuleGetLoadingMode(&raw mut mode)) }?;
        Ok(match mode {
            CUmoduleLoadingMode::CU_MODULE_EAGER_LOADING => LoadingMode::Eager,
            CUmoduleLoadingMode::CU_MODULE_LAZY_LOADING => LoadingMode::Lazy,
            CUmoduleLoadingMode(other) => LoadingMode::Unknown(other),
        })
    }
}
