//! Driver calls.

use curium_sys::{CUresult, Function};

use crate::Driver;
use crate::base::error::{CallError, Error, ForkError};
use crate::base::hook::Observation;

/// Calls a driver function and converts its result code: `call!(driver, cuEventSynchronize(raw))`
/// is a `Result<(), Error>`.
///
/// The call is `unsafe`: the block around it states why it is sound. A function that the driver
/// lacks is not called; it is an error. [Observers](crate::observe_calls) receive the call.
///
/// `call!(driver, cuEventCreate(&raw mut raw, flags) creates raw)` also fails if the function
/// succeeds but `raw` is null.
#[macro_export]
macro_rules! call {
    ($driver:expr, $function:ident($($argument:expr),* $(,)?)) => {{
        let driver: &$crate::Driver = $driver;
        match driver.api().$function {
            Some(function) => match driver.begin($crate::Function::$function) {
                None => driver.check($crate::Function::$function, function($($argument),*)),
                Some(observation) if observation.is_allowed() => {
                    driver.observed($crate::Function::$function, function($($argument),*), observation)
                }
                Some(_) => Err(driver.refused($crate::Function::$function)),
            },
            None => Err(driver.missing($crate::Function::$function)),
        }
    }};
    ($driver:expr, $function:ident($($argument:expr),* $(,)?) creates $handle:expr) => {{
        let driver: &$crate::Driver = $driver;
        match $crate::call!(driver, $function($($argument),*)) {
            Ok(()) => driver.check_handle($crate::Function::$function, $handle),
            Err(error) => Err(error),
        }
    }};
}

/// Converts the result of a query: `CUDA_ERROR_NOT_READY` means that work is pending.
#[inline]
pub(crate) fn finished(result: Result<(), Error>) -> Result<bool, Error> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if error.code() == Some(CUresult::CUDA_ERROR_NOT_READY) => Ok(false),
        Err(error) => Err(error),
    }
}

mod sealed {
    /// A type of raw handles. Other crates cannot name it, so they cannot implement it.
    pub trait Sealed {}
}

impl<T> sealed::Sealed for *mut T {}
impl sealed::Sealed for u64 {}

/// A handle or an address that the driver creates.
#[doc(hidden)]
pub trait RawHandle: sealed::Sealed + Copy {
    /// Returns `true` if the handle is null.
    fn is_null(self) -> bool;
}

impl<T> RawHandle for *mut T {
    #[inline]
    fn is_null(self) -> bool {
        <*mut T>::is_null(self)
    }
}

impl RawHandle for u64 {
    #[inline]
    fn is_null(self) -> bool {
        self == 0
    }
}

impl Driver {
    /// Notifies the call observers, if any, that `function` is about to be called.
    #[doc(hidden)]
    #[inline]
    pub fn begin(&self, function: Function) -> Option<Box<Observation>> {
        Observation::begin(function)
    }

    /// Converts the result code of a function.
    #[doc(hidden)]
    #[inline]
    pub fn check(&self, function: Function, code: CUresult) -> Result<(), Error> {
        if code == CUresult::CUDA_SUCCESS {
            Ok(())
        } else {
            Err(self.failed(function, code))
        }
    }

    /// Returns an error if a successful call of `function` returned a null handle.
    #[doc(hidden)]
    #[inline]
    pub fn check_handle(&self, function: Function, handle: impl RawHandle) -> Result<(), Error> {
        if handle.is_null() {
            Err(self.created_nothing(function))
        } else {
            Ok(())
        }
    }

    /// Notifies the call observers that a call has returned, and converts its result code.
    #[doc(hidden)]
    #[cold]
    #[expect(
        clippy::boxed_local,
        reason = "the observation is boxed so that a call without one costs a null pointer"
    )]
    #[inline(never)]
    pub fn observed(
        &self,
        function: Function,
        code: CUresult,
        observation: Box<Observation>,
    ) -> Result<(), Error> {
        observation.end(self, function, code);
        self.check(function, code)
    }

    /// Returns the error of a call in a process where the driver does not work, such as a forked
    /// child.
    #[doc(hidden)]
    #[cold]
    #[inline(never)]
    pub fn refused(&self, function: Function) -> Error {
        Error::Fork(Box::new(ForkError::new(function)))
    }

    /// Returns the error for a function that this driver lacks.
    #[doc(hidden)]
    #[cold]
    #[inline(never)]
    pub fn missing(&self, function: Function) -> Error {
        let version = self.version();
        // The version is 0 until it has been queried.
        self.api()
            .missing(function, (version.as_raw() != 0).then_some(version))
            .into()
    }

    #[cold]
    fn created_nothing(&self, function: Function) -> Error {
        Error::Call(Box::new(CallError::null_handle(self, function)))
    }

    #[cold]
    fn failed(&self, function: Function, code: CUresult) -> Error {
        Error::Call(Box::new(CallError::new(self, function, code)))
    }
}
