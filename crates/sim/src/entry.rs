//! The functions of the C interface, made from the one generated list.
//!
//! A function that the driver implements is an inherent method of [`Call`] under its C name.
//! [`Unsupported`] has a method of every name, which method resolution takes only where there is no
//! inherent one: a counted `CUDA_ERROR_NOT_SUPPORTED`.
//!
//! C functions have no `self`, so each has one instance per slot, which determines the driver. An
//! instance only adds its slot as the last argument, and calls a function that is neither generic
//! nor inlined: there are ten thousand instances, which are compiled quickly.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use curium_sys::{Api, CUresult, CudaVersion, Function};

use crate::argument::Argument;
use crate::call::Call;
use crate::config::MAX_DRIVERS;
use crate::result::Result;
use crate::{origin, per_thread, slot};

/// Runs one call of a function by a C caller.
fn enter(slot: usize, function: Function, body: &mut dyn FnMut(&Call<'_>) -> Result) -> CUresult {
    let Some(driver) = slot::driver(slot) else {
        return CUresult::CUDA_ERROR_DEINITIALIZED;
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        driver.admit(function)?;
        let result = origin::within(function, driver.config().backtraces, || {
            body(&Call::new(&driver))
        });
        driver.result(function, result)
    }));
    match outcome {
        Ok(Ok(())) => CUresult::CUDA_SUCCESS,
        Ok(Err(code)) => {
            driver.log().add_failure(function, code);
            code
        }
        Err(_) => report_panic(function),
    }
}

/// Reports which call panicked; the panic hook has printed the message.
#[expect(
    clippy::print_stderr,
    reason = "a panic is a bug of the simulator, and C has no other channel for the message"
)]
fn report_panic(function: Function) -> CUresult {
    eprintln!(
        "curium-sim: the panic above happened in {function}, which returns CUDA_ERROR_UNKNOWN"
    );
    CUresult::CUDA_ERROR_UNKNOWN
}

/// Returns the code of a function that the driver does not implement.
fn refusal(function: Function) -> CUresult {
    // As on hardware, no context is valid for the first versions of functions with addresses, which
    // have 32 bits.
    let is_narrow = function.since() < CudaVersion::new(3, 2)
        && Function::all()
            .any(|other| other != function && other.base_name() == function.base_name());
    if is_narrow {
        CUresult::CUDA_ERROR_INVALID_CONTEXT
    } else {
        CUresult::CUDA_ERROR_NOT_SUPPORTED
    }
}

macro_rules! define {
    ($(fn $name:ident($($parameter:ident: $ty:ty),* $(,)?) -> $result:ty = $since:literal;)*) => {
        /// The result of a function that the driver does not implement.
        #[expect(dead_code, reason = "the driver's inherent methods hide those of the functions that it implements")]
        #[expect(clippy::too_many_arguments, reason = "the parameters are those of the C functions")]
        trait Unsupported {
            fn refuse(&self, function: Function) -> Result;

            $(
                fn $name(&self, $($parameter: <$ty as Argument>::Received),*) -> Result {
                    let _ = ($($parameter,)*);
                    self.refuse(Function::$name)
                }
            )*
        }

        impl Unsupported for Call<'_> {
            fn refuse(&self, function: Function) -> Result {
                self.counts().add_unsupported(function);
                Err(refusal(function))
            }
        }

        /// Each function for any slot.
        pub(crate) mod any_slot {
            use super::*;

            $(
                /// Calls the driver in a slot.
                ///
                /// # Safety
                ///
                /// The contract of the C function.
                #[inline(never)]
                pub(crate) unsafe extern "C" fn $name($($parameter: $ty,)* slot: usize) -> CUresult {
                    // SAFETY: the caller upholds the contract of the C function for its arguments,
                    // of which these are.
                    $(let $parameter = || unsafe { Argument::receive($parameter) };)*
                    enter(slot, Function::$name, &mut |call| call.$name($($parameter()),*))
                }
            )*
        }

        /// Each function with the slot built in.
        mod one_slot {
            use super::*;

            $(
                pub(super) unsafe extern "C" fn $name<const SLOT: usize>($($parameter: $ty),*) -> $result {
                    // SAFETY: the caller upholds the contract of the C function.
                    unsafe { any_slot::$name($($parameter,)* SLOT) }
                }
            )*
        }

        /// The variants for the default stream of the calling thread.
        mod per_thread_stream {
            use super::*;

            $(
                per_thread::variant_of! { define_variant $name ($($parameter: $ty),*) -> $result }
            )*
        }

        fn table<const SLOT: usize>() -> Api {
            // Evaluated at compile time, so that the table is copied as a whole.
            const {
                let mut api = Api::empty();
                $(api.$name = Some(one_slot::$name::<SLOT>);)*
                api
            }
        }
    };
}

macro_rules! define_variant {
    ($name:ident $variant:ident ($($parameter:ident: $ty:ty),*) -> $result:ty) => {
        #[expect(non_snake_case, reason = "the methods have the names of the C functions")]
        pub(super) unsafe extern "C" fn $variant<const SLOT: usize>($($parameter: $ty),*) -> $result {
            // SAFETY: the caller upholds the contract of the C function.
            unsafe { $name($($parameter,)* SLOT) }
        }

        /// Calls the driver in a slot.
        ///
        /// # Safety
        ///
        /// The contract of the C function.
        #[expect(non_snake_case, reason = "the methods have the names of the C functions")]
        #[inline(never)]
        unsafe extern "C" fn $name($($parameter: $ty,)* slot: usize) -> CUresult {
            // SAFETY: the caller upholds the contract of the C function.
            per_thread::within(|| unsafe { any_slot::$name($($parameter,)* slot) })
        }
    };
}

curium_sys::for_each_function!(define);

macro_rules! define_variants {
    ($($name:ident $variant:ident;)*) => {
        fn variant<const SLOT: usize>(function: Function) -> Option<*const c_void> {
            Some(match function {
                $(Function::$name => per_thread_stream::$variant::<SLOT> as *const c_void,)*
                _ => return None,
            })
        }
    };
}

per_thread::for_each_variant!(define_variants);

/// The tables of the slots.
static TABLES: [fn() -> Api; MAX_DRIVERS] = [
    table::<0>,
    table::<1>,
    table::<2>,
    table::<3>,
    table::<4>,
    table::<5>,
    table::<6>,
    table::<7>,
    table::<8>,
    table::<9>,
    table::<10>,
    table::<11>,
    table::<12>,
    table::<13>,
    table::<14>,
    table::<15>,
    table::<16>,
    table::<17>,
    table::<18>,
    table::<19>,
    table::<20>,
    table::<21>,
    table::<22>,
    table::<23>,
    table::<24>,
    table::<25>,
    table::<26>,
    table::<27>,
    table::<28>,
    table::<29>,
    table::<30>,
    table::<31>,
];

/// The same for the variants.
static VARIANTS: [fn(Function) -> Option<*const c_void>; MAX_DRIVERS] = [
    variant::<0>,
    variant::<1>,
    variant::<2>,
    variant::<3>,
    variant::<4>,
    variant::<5>,
    variant::<6>,
    variant::<7>,
    variant::<8>,
    variant::<9>,
    variant::<10>,
    variant::<11>,
    variant::<12>,
    variant::<13>,
    variant::<14>,
    variant::<15>,
    variant::<16>,
    variant::<17>,
    variant::<18>,
    variant::<19>,
    variant::<20>,
    variant::<21>,
    variant::<22>,
    variant::<23>,
    variant::<24>,
    variant::<25>,
    variant::<26>,
    variant::<27>,
    variant::<28>,
    variant::<29>,
    variant::<30>,
    variant::<31>,
];

/// Returns the address of a function of the driver in `slot`, or of its variant for the default
/// stream of the calling thread, if requested and if there is one.
pub(crate) fn address(slot: usize, function: Function, is_per_thread: bool) -> *const c_void {
    let variant = VARIANTS[slot](function).filter(|_| is_per_thread);
    variant.unwrap_or_else(|| api(slot).address(function))
}

/// Returns every function of the driver in `slot`.
pub(crate) fn api(slot: usize) -> Api {
    TABLES[slot]()
}
