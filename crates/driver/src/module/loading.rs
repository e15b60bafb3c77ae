//! The module loading mode: lazy or eager.

use curium_sys::CUmoduleLoadingMode;

use crate::call;
use crate::{Driver, Result};

/// The time at which the driver loads the code of kernels. The environment variable
/// `CUDA_MODULE_LOADING` (`EAGER` or `LAZY`) selects it before CUDA is initialized.
/// [`Kernel::load`](crate::Kernel::load) loads the code of one kernel in either mode.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum LoadingMode {
    /// When the module is loaded.
    Eager,
    /// On first use of a kernel.
    Lazy,
    /// A mode defined by a newer driver.
    Unknown(u32),
}

impl Driver {
    /// Returns the module loading mode. The default is lazy since CUDA 12.2, and on Windows since
    /// 12.3. The simulator loads eagerly.
    ///
    /// CUDA: `cuModuleGetLoadingMode`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuModuleGetLoadingMode")]
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
