//! The table of functions that one driver offers.
#![expect(unsafe_code, reason = "symbols become functions of their declared type here")]

use core::ffi::{CStr, c_void};
use core::{fmt, mem, ptr};

use crate::{CudaVersion, Function};

/// A function with an unknown signature.
type AnyFunction = unsafe extern "C" fn();

macro_rules! declare {
    ($(fn $name:ident($($parameter:ident: $ty:ty),* $(,)?) -> $result:ty = $since:literal;)*) => {
        /// The functions of one driver, each under its ABI name; `None` where the driver lacks it.
        ///
        /// The table is plain data: whoever makes it answers for the functions in it staying callable for as long as the
        /// table is used. [`Api::load`] never unloads the driver.
        #[expect(non_snake_case, reason = "these are C's names")]
        #[repr(C)]
        pub struct Api {
            $(
                #[doc = concat!("`", stringify!($name), "`, since CUDA ", stringify!($since), ".")]
                pub $name: Option<unsafe extern "C" fn($($parameter: $ty),*) -> $result>,
            )*
        }

        impl Api {
            /// A table without any function.
            #[must_use]
            pub const fn empty() -> Self {
                Self { $($name: None,)* }
            }
        }
    };
}

crate::for_each_function!(declare);

/// A driver in this process, such as a simulator, whose functions safe code may rely on.
///
/// # Safety
///
/// The functions of [`api`](Self::api) have the meaning that CUDA gives to their names, and stay callable as long as the value exists,
/// wherever it is moved.
pub unsafe trait ApiProvider: Send + Sync + 'static {
    /// Returns the functions.
    fn api(&self) -> Api;
}

/// A handle that initializes the driver of a provider and keeps the provider alive.
///
/// `Driver` and `Device` of `curium-driver` implement it for every [`ApiProvider`]. A provider such as a simulator creates them through
/// this trait without depending on the crate that defines them.
pub trait FromProvider<P: ApiProvider>: Sized {
    /// The error if the driver does not initialize.
    type Error: core::error::Error + Send + Sync + 'static;

    /// Initializes the driver of `provider`. The provider lives until the last handle of this driver is dropped.
    ///
    /// # Errors
    ///
    /// Returns [`Self::Error`] if the driver does not initialize.
    fn from_provider(provider: P) -> Result<Self, Self::Error>;
}

impl Clone for Api {
    fn clone(&self) -> Self {
        // SAFETY: every field is an address of a function or null, which may be copied, and `self` is valid.
        unsafe { ptr::read(self) }
    }
}

const _: () = assert!(
    size_of::<Api>() == Function::COUNT * size_of::<Option<AnyFunction>>(),
    "`Api` is laid out as an array of function addresses"
);

impl Api {
    /// A table with the functions that `resolve` finds by the name of their symbol. Null means that there is none.
    ///
    /// # Safety
    ///
    /// - Each address returned is a function with the signature and the meaning that CUDA gives to the symbol.
    /// - The functions stay callable for as long as this table, a copy of it or anything made from it is used.
    pub unsafe fn from_resolver(mut resolve: impl FnMut(&CStr) -> *const c_void) -> Self {
        let mut api = Self::empty();
        for function in Function::all() {
            let address = resolve(function.c_name());
            // SAFETY: the caller vouches that `address` is null or a function, and `Option<fn>` has null as its `None`.
            *api.slot_mut(function) = unsafe { mem::transmute::<*const c_void, Option<AnyFunction>>(address) };
        }
        api
    }

    /// Whether the driver has `function`.
    #[must_use]
    pub fn has(&self, function: Function) -> bool {
        self.slot(function).is_some()
    }

    /// The address of `function`, null if the driver lacks it.
    #[must_use]
    pub fn address(&self, function: Function) -> *const c_void {
        self.slot(function).map_or(ptr::null(), |address| address as *const c_void)
    }

    /// Takes `function` out of the table, as if the driver lacked it.
    pub fn remove(&mut self, function: Function) {
        *self.slot_mut(function) = None;
    }

    /// The functions that the driver lacks.
    pub fn absent(&self) -> impl Iterator<Item = Function> {
        Function::all().filter(|function| !self.has(*function))
    }

    /// The error for calling `function` on a driver of version `driver` that lacks it.
    #[must_use]
    pub fn missing(&self, function: Function, driver: Option<CudaVersion>) -> MissingFunction {
        MissingFunction { function, driver }
    }

    fn slot(&self, function: Function) -> Option<AnyFunction> {
        let slots = (&raw const *self).cast::<Option<AnyFunction>>();
        // SAFETY: `Api` is `repr(C)` with one field of this layout per function, and `index` is below their number.
        let slot = unsafe { slots.add(function.index()) };
        // SAFETY: `slot` points into `self`, and any `Option` of a function pointer may be read as another.
        unsafe { slot.read() }
    }

    fn slot_mut(&mut self, function: Function) -> &mut Option<AnyFunction> {
        let slots = (&raw mut *self).cast::<Option<AnyFunction>>();
        // SAFETY: `Api` is `repr(C)` with one field of this layout per function, and `index` is below their number.
        let slot = unsafe { slots.add(function.index()) };
        // SAFETY: `slot` points into `self`, which is borrowed mutably for as long as the result.
        unsafe { &mut *slot }
    }
}

impl fmt::Debug for Api {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let present = Function::COUNT - self.absent().count();
        write!(formatter, "Api({present} of {} functions)", Function::COUNT)
    }
}

/// A function that the driver lacks, usually because it is too old.
#[derive(Clone, Copy, Eq, PartialEq)]
#[non_exhaustive]
pub struct MissingFunction {
    /// The function.
    pub function: Function,
    /// The version of the driver, if it is known.
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
                write!(formatter, "the driver for CUDA {driver} lacks {function}, which CUDA {since} introduced")
            }
            None => write!(formatter, "the driver lacks {function}, which CUDA {since} introduced"),
        }
    }
}

impl fmt::Debug for MissingFunction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl core::error::Error for MissingFunction {}

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
        unsafe { Api::from_resolver(|name| if name == c"cuInit" { init as *const c_void } else { ptr::null() }) }
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
    fn missing_function_names_the_version_needed_and_the_version_found() {
        let missing = Api::empty().missing(Function::cuCtxCreate_v4, Some(CudaVersion::new(11, 8)));
        assert_eq!(
            missing.to_string(),
            "cuCtxCreate_v4 needs a driver for CUDA 12.5 or newer, and this one is for CUDA 11.8"
        );
    }
}
