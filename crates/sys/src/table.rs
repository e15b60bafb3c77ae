//! Tables of C functions: the memory layout, and the macro that declares one from a generated list.
#![expect(
    unsafe_code,
    reason = "symbols become functions of their declared type here"
)]

use core::ffi::{CStr, c_void};
use core::{mem, ptr};

use crate::CudaVersion;

/// A function with an unknown signature.
type AnyFunction = unsafe extern "C" fn();

/// A table of the functions that a C library exports; `None` where the library lacks one.
/// [`declare_api!`](crate::declare_api) declares one from a generated list.
///
/// # Safety
///
/// The type is `repr(C)` and consists of one `Option` of a function pointer for each element of
/// [`FUNCTIONS`](Self::FUNCTIONS), in this order.
pub unsafe trait FunctionTable: Sized {
    /// The functions, in the order of the fields.
    const FUNCTIONS: &'static [ExportedFunction];
    /// A table without any function.
    const EMPTY: Self;

    /// Returns a table of the functions that `resolve` finds by the names of their symbols. A null
    /// address stands for a missing function.
    ///
    /// # Safety
    ///
    /// - Each address that `resolve` returns is a function with the signature and the meaning that
    ///   the library gives to the symbol.
    /// - The functions stay callable for as long as the table, or a copy of it, is used.
    unsafe fn from_resolver(mut resolve: impl FnMut(&CStr) -> *const c_void) -> Self {
        let mut table = Self::EMPTY;
        for (index, function) in Self::FUNCTIONS.iter().enumerate() {
            let address = resolve(function.c_name());
            // SAFETY: the caller guarantees that `address` is null or a function, and null is the
            // `None` of `Option<fn>`.
            let address = unsafe { mem::transmute::<*const c_void, Option<AnyFunction>>(address) };
            *slot_mut(&mut table, index) = address;
        }
        table
    }

    /// Returns the function of this name, if the table has one.
    #[must_use]
    fn function(name: &str) -> Option<&'static ExportedFunction> {
        Self::FUNCTIONS
            .iter()
            .find(|function| function.name() == name)
    }

    /// Returns the CUDA version that introduced the function of this name, if the table has such a
    /// function.
    #[must_use]
    fn since(name: &str) -> Option<CudaVersion> {
        Self::function(name).map(ExportedFunction::since)
    }
}

/// A function that a C library exports: the name of its symbol, and the CUDA version that
/// introduced it.
#[derive(Clone, Copy, Debug)]
pub struct ExportedFunction {
    /// Ends with the NUL that C requires.
    name: &'static str,
    since: CudaVersion,
    last: Option<CudaVersion>,
}

impl ExportedFunction {
    /// Describes the function whose name is `name` without the NUL at its end. `last` has the last
    /// version with it, if newer ones lack it.
    #[doc(hidden)]
    #[must_use]
    pub const fn __new(name: &'static str, since: u32, last: &[u32]) -> Self {
        let last = match last {
            [last] => Some(CudaVersion::from_raw(*last)),
            _ => None,
        };
        Self {
            name,
            since: CudaVersion::from_raw(since),
            last,
        }
    }

    /// Returns the name of the symbol.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name.trim_end_matches('\0')
    }

    /// Returns the name of the symbol as a C string.
    #[must_use]
    pub fn c_name(&self) -> &'static CStr {
        CStr::from_bytes_with_nul(self.name.as_bytes()).unwrap_or_default()
    }

    /// Returns the CUDA version that introduced the symbol.
    #[must_use]
    pub fn since(&self) -> CudaVersion {
        self.since
    }

    /// Returns the last CUDA version that has the symbol; `None` if the newest known does.
    #[must_use]
    pub fn last(&self) -> Option<CudaVersion> {
        self.last
    }
}

/// Returns the address at `index`, null if the library lacks the function.
pub(crate) fn address<T: FunctionTable>(table: &T, index: usize) -> *const c_void {
    assert!(index < T::FUNCTIONS.len(), "the table has no such function");
    let slots = ptr::from_ref(table).cast::<Option<AnyFunction>>();
    // SAFETY: `T` consists of one slot per function, and `index` is below their number.
    let slot = unsafe { slots.add(index) };
    // SAFETY: `slot` points into `table`, and any `Option` of a function pointer may be read as
    // another.
    let function = unsafe { slot.read() };
    function.map_or(ptr::null(), |function| function as *const c_void)
}

/// Removes the function at `index`.
pub(crate) fn remove<T: FunctionTable>(table: &mut T, index: usize) {
    *slot_mut(table, index) = None;
}

fn slot_mut<T: FunctionTable>(table: &mut T, index: usize) -> &mut Option<AnyFunction> {
    assert!(index < T::FUNCTIONS.len(), "the table has no such function");
    let slots = ptr::from_mut(table).cast::<Option<AnyFunction>>();
    // SAFETY: `T` consists of one slot per function, and `index` is below their number.
    let slot = unsafe { slots.add(index) };
    // SAFETY: `slot` points into `table`, which stays mutably borrowed for as long as the result.
    unsafe { &mut *slot }
}

/// Declares the table `Api` of the functions in a generated list, each under the name of its
/// symbol.
///
/// ```
/// use curium_sys::FunctionTable as _;
///
/// curium_sys::declare_api! {
///     fn exampleCreate(handle: *mut usize) -> i32 = 12000;
///     fn exampleDestroy(handle: usize) -> i32 = 12040;
///     fn exampleReset(handle: usize) -> i32 = 12000 ..= 12090;
/// }
///
/// assert!(Api::EMPTY.exampleCreate.is_none());
/// assert_eq!(Api::since("exampleDestroy"), Some(curium_sys::CudaVersion::new(12, 4)));
/// let reset = Api::function("exampleReset").expect("not declared");
/// assert_eq!(reset.last(), Some(curium_sys::CudaVersion::new(12, 9)));
/// ```
#[macro_export]
macro_rules! declare_api {
    ($(fn $name:ident($($parameter:ident: $ty:ty),* $(,)?) -> $result:ty = $since:literal $(..= $last:literal)?;)*) => {
        /// The functions of one library, each under the name of its symbol; `None` where the
        /// library lacks it.
        ///
        /// The table is plain data: its creator guarantees that the functions stay callable for as
        /// long as the table is used.
        #[allow(non_snake_case, reason = "these are C's names")]
        #[repr(C)]
        pub struct Api {
            $(
                #[doc = concat!(
                    "`", stringify!($name), "`, since version ", stringify!($since), $(" up to ", stringify!($last),)?
                    " (1000 × major + 10 × minor).",
                )]
                pub $name: ::core::option::Option<unsafe extern "C" fn($($parameter: $ty),*) -> $result>,
            )*
        }

        // SAFETY: the struct above is `repr(C)`, and both lists come from one repetition.
        unsafe impl $crate::FunctionTable for Api {
            const FUNCTIONS: &'static [$crate::ExportedFunction] =
                &[$($crate::ExportedFunction::__new(
                    ::core::concat!(::core::stringify!($name), "\0"), $since, [$($last)?].as_slice(),
                ),)*];
            const EMPTY: Self = Self { $($name: ::core::option::Option::None,)* };
        }
    };
}
