//! The functions under their C names, for a shared library that takes the place of `libcuda.so.1`.
//!
//! The driver starts with the first call, with the settings of the environment. When the process
//! exits, its functions return `CUDA_ERROR_DEINITIALIZED`, and nothing waits for its threads. If
//! `CURIUM_SIM_TRACE` names a file, every call is appended to it as an event for trace viewers; if
//! `CURIUM_SIM_SUMMARY` names one, the summary of the program is written to it at the exit. Set-uid
//! programs ignore both.

use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(target_os = "linux")]
use curium_sys::has_raised_privileges;
use curium_sys::{Api, CUresult, Function};

use crate::call::Call;
use crate::config::Config;
use crate::driver::Driver;
use crate::{call_trace, entry, per_thread, slot};

macro_rules! export {
    ($(fn $name:ident($($parameter:ident: $ty:ty),* $(,)?) -> $result:ty = $since:literal;)*) => {
        $(
            /// Returns the function of the driver API.
            ///
            /// # Safety
            ///
            /// The contract of the C function.
            // SAFETY: no other symbol of a process that loads this library as its driver has this
            // name.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($parameter: $ty),*) -> $result {
                if let Err(code) = start() {
                    return code;
                }
                if Function::$name == Function::cuInit {
                    inject();
                }
                call_trace::traced(Function::$name, || {
                    // SAFETY: the caller upholds the contract of the C function.
                    unsafe { entry::any_slot::$name($($parameter,)* slot::EXPORTED) }
                })
            }
        )*

        $(
            per_thread::variant_of! { export_variant $name ($($parameter: $ty),*) -> $result }
        )*

        /// Returns the exported functions.
        fn api() -> Api {
            let mut api = Api::empty();
            $(api.$name = Some($name);)*
            api
        }
    };
}

macro_rules! export_variant {
    ($name:ident $variant:ident ($($parameter:ident: $ty:ty),*) -> $result:ty) => {
        /// Returns the function of the driver API for the default stream of the calling thread.
        ///
        /// # Safety
        ///
        /// The contract of the C function.
        // SAFETY: no other symbol of a process that loads this library as its driver has this name.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $variant($($parameter: $ty),*) -> $result {
            // SAFETY: the caller upholds the contract of the C function.
            per_thread::within(|| unsafe { $name($($parameter),*) })
        }
    };
}

curium_sys::for_each_function!(export);

macro_rules! list_variants {
    ($($name:ident $variant:ident;)*) => {
        /// Returns the variant of a function for the default stream of the calling thread, if there
        /// is one.
        fn per_thread_variant(function: Function) -> Option<*const c_void> {
            Some(match function {
                $(Function::$name => $variant as *const c_void,)*
                _ => return None,
            })
        }
    };
}

per_thread::for_each_variant!(list_variants);

/// Returns the address of an exported function, or of its variant for the default stream of the
/// calling thread. `cuGetProcAddress` must return these, because they check the state of the
/// process and are traced.
fn address(_slot: usize, function: Function, is_per_thread: bool) -> *const c_void {
    let variant = per_thread_variant(function).filter(|_| is_per_thread);
    variant.unwrap_or_else(|| api().address(function))
}

/// `true` in a child of a process that had loaded the library. As on hardware, state that was
/// initialized before a fork cannot be used by the child.
static FORKED: AtomicBool = AtomicBool::new(false);

/// The path of the summary, which is written when the process exits: `%p` stands for the process
/// ID, and `-` for stderr.
#[cfg(target_os = "linux")]
const SUMMARY: &str = "CURIUM_SIM_SUMMARY";

/// Starts the driver if this is the first call.
fn start() -> Result<(), CUresult> {
    static STARTED: OnceLock<Result<(), CUresult>> = OnceLock::new();
    if FORKED.load(Ordering::Acquire)
        && slot::driver(slot::EXPORTED).is_some_and(|driver| driver.is_initialized())
    {
        return Err(CUresult::CUDA_ERROR_NOT_INITIALIZED);
    }
    *STARTED.get_or_init(|| {
        let config = Config::from_environment().map_err(|error| refuse(&error))?;
        let driver =
            Driver::new(config, slot::EXPORTED, address).map_err(|error| refuse(&error))?;
        slot::fill(slot::EXPORTED, driver);
        follow_process();
        Ok(())
    })
}

/// Loads the library that `CUDA_INJECTION64_PATH` names, and calls its initialization, as the
/// driver does for profilers.
#[cfg(target_os = "linux")]
fn inject() {
    static INJECTED: OnceLock<()> = OnceLock::new();
    INJECTED.get_or_init(|| {
        let path = std::env::var_os("CUDA_INJECTION64_PATH")
            .filter(|path| !path.is_empty() && !has_raised_privileges());
        let path = path.and_then(|path| {
            use std::os::unix::ffi::OsStrExt as _;
            std::ffi::CString::new(path.as_bytes()).ok()
        });
        let Some(path) = path else { return };
        // SAFETY: the user of the variable trusts the library, whose initializers run here.
        let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        if library.is_null() {
            return;
        }
        // SAFETY: the library is loaded, and stays loaded.
        let initialize = unsafe { libc::dlsym(library, c"InitializeInjection".as_ptr()) };
        if !initialize.is_null() {
            // SAFETY: CUPTI's interface gives the function this type.
            let initialize: extern "C" fn() -> i32 = unsafe { std::mem::transmute(initialize) };
            initialize();
        }
    });
}

#[cfg(not(target_os = "linux"))]
fn inject() {}

/// Starts and initializes the driver, as the CUDA runtime does. A failure is returned by later
/// calls of the driver.
pub(crate) fn initialize() {
    if start().is_err() {
        return;
    }
    inject();
    if let Some(driver) = slot::driver(slot::EXPORTED) {
        let _ = Call::new(&driver).cuInit(0);
    }
}

/// Reports why the driver cannot start.
#[expect(
    clippy::print_stderr,
    reason = "a code does not identify the variable, and C has no other channel for the message"
)]
fn refuse(error: &dyn std::error::Error) -> CUresult {
    eprintln!("curium-sim: {error}");
    CUresult::CUDA_ERROR_SYSTEM_NOT_READY
}

/// Writes the summary of the program. The child of a fork writes nothing: the driver belongs to its
/// parent.
#[cfg(target_os = "linux")]
#[expect(
    clippy::print_stderr,
    reason = "stderr was requested for the summary, or is the only channel at exit"
)]
fn summarize(driver: &Driver, path: &std::ffi::OsStr) {
    if std::process::id() != driver.process() {
        return;
    }
    let text = driver.summary().to_string();
    if path == "-" {
        eprint!("{text}");
        return;
    }
    let path = path
        .to_string_lossy()
        .replace("%p", &driver.process().to_string());
    if let Err(error) = std::fs::write(&path, text) {
        eprintln!("curium-sim: the summary cannot be written to {path}: {error}");
    }
}

/// Ends the driver when the process exits, and detects a child of a fork, which has none of its
/// threads.
#[cfg(target_os = "linux")]
fn follow_process() {
    extern "C" fn fork() {
        FORKED.store(true, Ordering::Release);
    }
    extern "C" fn end() {
        let driver = slot::empty(slot::EXPORTED);
        let path = std::env::var_os(SUMMARY).filter(|_| !has_raised_privileges());
        if let (Some(driver), Some(path)) = (&driver, path) {
            summarize(driver, &path);
        }
        // Threads may still be in the driver, so it is leaked; the process exits anyway.
        std::mem::forget(driver);
    }
    // SAFETY: the function takes and returns nothing, does not unwind, and stays loaded as long as
    // the process exists. If the registration fails, calls during the exit behave as at other
    // times.
    unsafe { libc::atexit(end) };
    // SAFETY: the function takes and returns nothing, writes an atomic only, and stays loaded for
    // as long as the process.
    unsafe { libc::pthread_atfork(None, None, Some(fork)) };
}

#[cfg(not(target_os = "linux"))]
fn follow_process() {}
