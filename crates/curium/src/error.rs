//! Errors of Curium behind `dyn Error`.

use std::error::Error as StdError;

use crate::driver::CudaError;

/// Returns the first error of one of Curium's crates in the source chain of `error`.
///
/// Use it where the type of an error has been erased, as by `anyhow::Error` or `Box<dyn Error>`:
///
/// ```
/// use std::error::Error;
///
/// use curium::prelude::*;
///
/// fn train() -> Result<(), Box<dyn Error>> {
///     // …
///     # let device = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<Driver>()?.device(0)?;
///     let stream = device.primary_context()?.stream()?;
///     DeviceBuffer::<f32>::zeroed(&stream, 1 << 40)?;
///     Ok(())
/// }
///
/// let error = train().expect_err("4 TiB exceed the device's memory");
/// let error = curium::find_error(error.as_ref()).expect("an error of Curium");
/// assert!(error.is_out_of_memory() && !error.is_sticky());
/// ```
#[must_use]
pub fn find_error<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a dyn CudaError> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = downcast(error) {
            return Some(error);
        }
        next = error.source();
    }
    None
}

/// Returns `error` if it is the error type of one of the crates.
fn downcast<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a dyn CudaError> {
    macro_rules! try_types {
        ($($(#[$feature:meta])? $ty:ty;)*) => {
            $(
                $(#[$feature])?
                if let Some(error) = error.downcast_ref::<$ty>() {
                    return Some(error);
                }
            )*
        };
    }
    try_types! {
        crate::driver::Error;
        #[cfg(feature = "blas")]
        crate::blas::Error;
        #[cfg(feature = "fft")]
        crate::fft::Error;
        #[cfg(feature = "nccl")]
        crate::nccl::Error;
        #[cfg(feature = "nvrtc")]
        crate::nvrtc::Error;
        #[cfg(feature = "rand")]
        crate::rand::Error;
    }
    None
}
