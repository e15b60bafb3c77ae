//! Driver functions, by name.

use core::ffi::CStr;
use core::fmt;
use core::str::FromStr;

use thiserror::Error;

use crate::{Api, CudaVersion, ExportedFunction, FunctionTable as _};

macro_rules! declare {
    ($(fn $name:ident($($parameter:tt)*) -> $result:ty = $since:literal;)*) => {
        /// A function that `libcuda` exports, identified by its ABI name.
        ///
        /// ```
        /// use curium_sys::{CudaVersion, Function};
        ///
        /// assert_eq!(Function::cuCtxCreate_v3.name(), "cuCtxCreate_v3");
        /// assert_eq!(Function::cuCtxCreate_v3.base_name(), "cuCtxCreate");
        /// assert_eq!(Function::cuCtxCreate_v3.since(), CudaVersion::new(11, 4));
        /// ```
        #[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
        #[expect(non_camel_case_types, reason = "these are C's names")]
        #[non_exhaustive]
        #[repr(u16)]
        pub enum Function {
            $(
                #[doc = concat!("`", stringify!($name), "`.")]
                $name,
            )*
        }

        /// All functions, each at its index.
        static FUNCTIONS: &[Function] = &[$(Function::$name,)*];
    };
}

crate::for_each_function!(declare);

impl Function {
    /// The number of functions.
    pub const COUNT: usize = FUNCTIONS.len();

    /// Returns every function, sorted by name.
    pub fn all() -> impl ExactSizeIterator<Item = Self> + DoubleEndedIterator + Clone {
        FUNCTIONS.iter().copied()
    }

    /// Returns the name of the exported symbol, such as `cuCtxCreate_v3`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.exported().name()
    }

    /// Returns the name of the exported symbol as a C string.
    #[must_use]
    pub fn c_name(self) -> &'static CStr {
        self.exported().c_name()
    }

    /// Returns the name in C source, without the ABI suffix: `cuCtxCreate` for `cuCtxCreate_v3`.
    #[must_use]
    pub fn base_name(self) -> &'static str {
        self.split_name().0
    }

    /// Returns the number in the ABI suffix: 3 for `cuCtxCreate_v3`, 1 without a suffix.
    #[must_use]
    pub fn abi_number(self) -> u32 {
        self.split_name().1
    }

    /// Returns the CUDA version that introduced the symbol.
    #[must_use]
    pub fn since(self) -> CudaVersion {
        self.exported().since()
    }

    /// Returns the position of the function in the list, less than [`Function::COUNT`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    fn exported(self) -> &'static ExportedFunction {
        &Api::FUNCTIONS[self.index()]
    }

    fn split_name(self) -> (&'static str, u32) {
        let name = self.name();
        let split = name
            .rsplit_once("_v")
            .and_then(|(base, number)| Some((base, number.parse().ok()?)));
        split.unwrap_or((name, 1))
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl fmt::Display for Function {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// The error for a name that is not a driver function.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error(
    "the CUDA driver API has no function of this name up to CUDA {}",
    CudaVersion::NEWEST_KNOWN
)]
pub struct UnknownFunction;

impl FromStr for Function {
    type Err = UnknownFunction;

    /// Finds a function by the name of its symbol, such as `cuCtxCreate_v3`.
    fn from_str(name: &str) -> Result<Self, UnknownFunction> {
        Self::all()
            .find(|function| function.name() == name)
            .ok_or(UnknownFunction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_is_found_by_its_own_name_and_index() {
        for (index, function) in Function::all().enumerate() {
            assert_eq!(function.index(), index);
            assert_eq!(function.name().parse(), Ok(function));
        }
    }

    #[test]
    fn name_that_is_no_function_is_an_error() {
        assert_eq!("cuNothing".parse::<Function>(), Err(UnknownFunction));
    }

    #[test]
    fn abi_suffix_is_split_off() {
        assert_eq!(
            (Function::cuInit.base_name(), Function::cuInit.abi_number()),
            ("cuInit", 1)
        );
        assert_eq!(
            (
                Function::cuCtxCreate_v4.base_name(),
                Function::cuCtxCreate_v4.abi_number()
            ),
            ("cuCtxCreate", 4)
        );
        assert_eq!(
            Function::cuDevicePrimaryCtxRelease_v2.base_name(),
            "cuDevicePrimaryCtxRelease"
        );
    }

    #[test]
    fn later_abi_versions_are_newer() {
        for newer in Function::all() {
            for older in Function::all().filter(|older| older.base_name() == newer.base_name()) {
                assert_eq!(
                    older.abi_number().cmp(&newer.abi_number()),
                    older.since().cmp(&newer.since()),
                    "{older} {newer}"
                );
            }
        }
    }
}
