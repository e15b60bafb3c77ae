//! The functions under their C names, for a shared library that takes the place of `libcuda.so.1`.
//!
//! The driver starts with the first call, with the settings of the environment. When the process exits, its functions return
//! `CUDA_ERROR_DEINITIALIZED`, and nothing waits for its threads. If `CURIUM_SIM_TRACE` names a file, every call is appended to it as an
//! event for trace viewers.

use std::sync::OnceLock;

use curium_sys::{CUresult, Function};

use crate::config::Config;
use crate::driver::Driver;
use crate::{call_trace, entry, slot};

macro_rules! export {
    ($(fn $name:ident($($parameter:ident: $ty:ty),* $(,)?) -> $result:ty = $since:literal;)*) => {
        $(
            /// The function of the driver API.
            ///
            /// # Safety
            ///
            /// The contract of the C function.
            // SAFETY: no other symbol of a process that loads this library as its driver has this name.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($parameter: $ty),*) -> $result {
                if let Err(code) = start() {
                    return code;
                }
                call_trace::traced(Function::$name, || {
                    // SAFETY: the caller upholds the contract of the C function.
                    unsafe { entry::any_slot::$name(slot::EXPORTED, $($parameter),*) }
                })
            }
        )*
    };
}

curium_sys::for_each_function!(export);

/// Starts the driver if this is the first call.
fn start() -> Result<(), CUresult> {
    static STARTED: OnceLock<Result<(), CUresult>> = OnceLock::new();
    *STARTED.get_or_init(|| {
        let config = Config::from_environment().map_err(|error| refuse(&error))?;
        let driver = Driver::new(config, slot::EXPORTED).map_err(|error| refuse(&error))?;
        slot::fill(slot::EXPORTED, driver);
        end_with_process();
        Ok(())
    })
}

/// Says why the driver cannot start.
#[expect(clippy::print_stderr, reason = "a code cannot say which variable is wrong, and C has no other channel for it")]
fn refuse(error: &dyn std::error::Error) -> CUresult {
    eprintln!("curium-sim: {error}");
    CUresult::CUDA_ERROR_SYSTEM_NOT_READY
}

/// Has the driver end when the process exits.
#[cfg(target_os = "linux")]
fn end_with_process() {
    extern "C" fn end() {
        // Threads may still be in the driver: it is left where it is, and the process takes it along.
        std::mem::forget(slot::empty(slot::EXPORTED));
    }
    // SAFETY: the function takes and returns nothing, does not unwind, and stays loaded for as long as the process. If it
    // cannot be registered, calls during the exit do what they do at other times.
    unsafe { libc::atexit(end) };
}

#[cfg(not(target_os = "linux"))]
fn end_with_process() {}
