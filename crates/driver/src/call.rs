//! The one form in which a function of the driver is called.

use curium_sys::{CUresult, Function};

use crate::Driver;
use crate::error::{CallError, Error};
use crate::hook::Observation;

/// Calls one function of the driver: `call!(driver, cuEventSynchronize(raw))` is a `Result<(), Error>`.
///
/// The call is unsafe, and the block around it says why it is sound. A function that the driver lacks is an error and not
/// called. Whoever [observes calls](crate::observe_calls) is told.
#[doc(hidden)]
#[macro_export]
macro_rules! call {
    ($driver:expr, $function:ident($($argument:expr),* $(,)?)) => {{
        let driver: &$crate::Driver = $driver;
        match driver.api().$function {
            Some(function) => {
                let observation = driver.begin($crate::Function::$function);
                driver.check($crate::Function::$function, function($($argument),*), observation)
            }
            None => Err(driver.missing($crate::Function::$function)),
        }
    }};
}

impl Driver {
    /// Tells the observers of calls, if there are any, that `function` is about to be called.
    #[doc(hidden)]
    #[inline]
    pub fn begin(&self, function: Function) -> Option<Box<Observation>> {
        Observation::begin(function)
    }

    /// Turns what a function returned into a result.
    #[doc(hidden)]
    #[inline]
    pub fn check(
        &self,
        function: Function,
        code: CUresult,
        observation: Option<Box<Observation>>,
    ) -> Result<(), Error> {
        if code == CUresult::CUDA_SUCCESS && observation.is_none() {
            // There is nothing to drop, which the compiler does not see by itself.
            std::mem::forget(observation);
            return Ok(());
        }
        self.settle(function, code, observation)
    }

    #[cold]
    fn settle(&self, function: Function, code: CUresult, observation: Option<Box<Observation>>) -> Result<(), Error> {
        if let Some(observation) = observation {
            observation.end(self, function, code);
        }
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
