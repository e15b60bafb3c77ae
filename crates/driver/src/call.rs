//! The one form in which a function of the driver is called.

use curium_sys::{CUresult, Function};

use crate::Driver;
use crate::error::{CallError, Error};

/// Calls one function of the driver: `call!(driver, cuEventSynchronize(raw))` is a `Result<(), Error>`.
///
/// The call is unsafe, and the block around it says why it is sound. A function that the driver lacks is an error and not
/// called.
#[doc(hidden)]
#[macro_export]
macro_rules! call {
    ($driver:expr, $function:ident($($argument:expr),* $(,)?)) => {{
        let driver: &$crate::Driver = $driver;
        match driver.api().$function {
            Some(function) => driver.check($crate::Function::$function, function($($argument),*)),
            None => Err(driver.missing($crate::Function::$function)),
        }
    }};
}

impl Driver {
    /// Turns what a function returned into a result.
    #[doc(hidden)]
    #[inline]
    pub fn check(&self, function: Function, code: CUresult) -> Result<(), Error> {
        if code == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(self.failed(function, code)) }
    }

    /// The error for a function that this driver lacks.
    #[doc(hidden)]
    #[cold]
    pub fn missing(&self, function: Function) -> Error {
        let version = self.version();
        // The version is 0 until the driver has said it.
        Error::Missing(self.api().missing(function, (version.as_raw() != 0).then_some(version)))
    }

    #[cold]
    fn failed(&self, function: Function, code: CUresult) -> Error {
        Error::Call(Box::new(CallError::new(self, function, code)))
    }
}
