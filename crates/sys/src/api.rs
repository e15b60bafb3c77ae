//! The table of functions that one driver offers.
#![expect(unsafe_code, reason = "the table is copied as plain data")]

use core::ffi::{CStr, c_void};
use core::{fmt, ptr};

use thiserror::Error;

use crate::table::{self, FunctionTable};
use crate::{CudaVersion, Function};

crate::for_each_function!(crate::declare_api);

/// A driver in this process, such as a simulator, whose functions safe code may call.
///
/// # Safety
///
/// The functions of [`api`](Self::api) implement the CUDA functions that they are named after. They
/// stay callable for as long as the value exists, even if it is moved.
pub unsafe trait ApiProvider: Send + Sync + 'static {
    /// Returns the functions.
    fn api(&self) -> Api;
}

/// A handle that initializes the driver of a provider and keeps the provider alive.
///
/// `Driver` and `Device` of `curium-driver` implement it for every [`ApiProvider`]. A provider such
/// as a simulator creates them through this trait without depending on the crate that defines them.
pub trait FromProvider<P: ApiProvider>: Sized {
    /// The error if the driver does not initialize.
    type Error: core::error::Error + Send + Sync + 'static;

    /// Initializes the driver of `provider`. The provider lives until the last handle of this
    /// driver is dropped.
    ///
    /// # Errors
    ///
    /// Returns [`Self::Error`] if the driver does not initialize.
    fn from_provider(provider: P) -> Result<Self, Self::Error>;
}

impl Clone for Api {
    fn clone(&self) -> Self {
        // SAFETY: `self` is valid for reads, and every field is an `Option` of a function pointer,
        // which is `Copy`.
        unsafe { ptr::read(self) }
    }
}

impl Api {
    /// Returns a table without any function.
    #[must_use]
    pub const fn empty() -> Self {
        Self::EMPTY
    }

    /// Returns a table of the functions that `resolve` finds by symbol name. A null address means
    /// that the function is missing.
    ///
    /// # Safety
    ///
    /// - Each address that `resolve` returns is a function with the signature and the contract that
    ///   CUDA defines for the symbol.
    /// - The functions stay callable for as long as the table, a copy of it or any object created
    ///   from it is used.
    pub unsafe fn from_resolver(resolve: impl FnMut(&CStr) -> *const c_void) -> Self {
        // SAFETY: the conditions of the called function are those of this one, which the caller
        // guarantees.
        unsafe { FunctionTable::from_resolver(resolve) }
    }

    /// Returns `true` if the driver exports `function`.
    #[must_use]
    pub fn has(&self, function: Function) -> bool {
        !self.address(function).is_null()
    }

    /// Returns the address of `function`; null if the driver lacks it.
    #[must_use]
    pub fn address(&self, function: Function) -> *const c_void {
        table::address(self, function.index())
    }

    /// Removes `function` from the table, as if the driver lacked it.
    pub fn remove(&mut self, function: Function) {
        table::remove(self, function.index());
    }

    /// Returns the functions that the driver lacks.
    pub fn absent(&self) -> impl Iterator<Item = Function> {
        Function::all().filter(|function| !self.has(*function))
    }

    /// Returns the error of a call of `function`, which a driver of version `driver` lacks.
    #[must_use]
    pub fn missing(&self, function: Function, driver: Option<CudaVersion>) -> MissingFunction {
        MissingFunction { function, driver }
    }
}

impl fmt::Debug for Api {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let present = Function::COUNT - self.absent().count();
        write!(formatter, "Api({present} of {} functions)", Function::COUNT)
    }
}

/// A function that the driver lacks, usually because the driver is too old.
#[derive(Clone, Copy, Eq, Error, PartialEq)]
#[non_exhaustive]
pub struct MissingFunction {
    /// The function.
    pub function: Function,
    /// The CUDA version of the driver, if known.
    pub driver: Option<CudaVersion>,
}

impl fmt::Display for MissingFunction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { function, driver } = self;
        let since = function.since();
        match driver {
            Some(driver) if *driver < since => {
                write!(
                    formatter,
                    "{function} needs a driver for CUDA {since} or newer, and this one is for CUDA {driver}"
                )
            }
            Some(driver) => {
                write!(
                    formatter,
                    "the driver for CUDA {driver} lacks {function}, which CUDA {since} introduced"
                )
            }
            None => write!(
                formatter,
                "the driver lacks {function}, which CUDA {since} introduced"
            ),
        }
    }
}

impl fmt::Debug for MissingFunction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString as _;

    use super::*;
    use crate::CUresult;

    unsafe extern "C" fn init(_flags: core::ffi::c_uint) -> CUresult {
        CUresult::CUDA_ERROR_NO_DEVICE
    }

    fn only_init() -> Api {
        let init: unsafe extern "C" fn(core::ffi::c_uint) -> CUresult = init;
        // SAFETY: `init` has the signature of `cuInit` and lives as long as the program.
        unsafe {
            Api::from_resolver(|name| {
                if name == c"cuInit" {
                    init as *const c_void
                } else {
                    ptr::null()
                }
            })
        }
    }

    #[test]
    fn resolved_function_is_callable_under_its_name() {
        let init = only_init().cuInit.expect("`cuInit` was resolved");
        // SAFETY: our `init` has no precondition.
        assert_eq!(unsafe { init(0) }, CUresult::CUDA_ERROR_NO_DEVICE);
    }

    #[test]
    fn functions_not_resolved_are_absent() {
        let api = only_init();
        assert_eq!(api.absent().count(), Function::COUNT - 1);
        assert!(api.absent().all(|function| function != Function::cuInit));
        assert!(api.cuCtxCreate_v2.is_none());
    }

    #[test]
    fn removed_function_is_absent() {
        let mut api = only_init();
        assert!(!api.address(Function::cuInit).is_null());
        api.remove(Function::cuInit);
        assert!(!api.has(Function::cuInit));
        assert!(api.address(Function::cuInit).is_null());
    }

    #[test]
    fn missing_function_names_both_versions() {
        let missing = Api::empty().missing(Function::cuCtxCreate_v4, Some(CudaVersion::new(11, 8)));
        assert_eq!(
            missing.to_string(),
            "cuCtxCreate_v4 needs a driver for CUDA 12.5 or newer, and this one is for CUDA 11.8"
        );
    }
}
