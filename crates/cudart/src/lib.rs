//! The CUDA runtime over the public driver API.
//!
//! NVIDIA's `libcudart` starts on drivers only that serve its private tables and pass its check that the driver is NVIDIA's own, which the
//! simulator does not claim to be. This library has the runtime's functions under their C names and calls nothing but documented functions
//! of the driver, so that a program of the runtime runs on any driver. `cargo xtask sim` builds it beside `libcuda.so.1`, as a shared
//! library under the names of CUDA 11, 12 and 13 and as a static one.
//!
//! It has the functions that programs call most: devices, memory, copies, streams, events, launches, graphs, textures, occupancy, symbols.
//! A program that needs another one does not start, or does not link, and names it.
//!
//! # Structure
//!
//! `state` finds the driver, the device of a thread and its context, and keeps the last error. `registry` knows the kernels and variables
//! that compilers register when a program starts. The other modules are the functions, by object.

mod device;
mod error;
mod event;
mod graph;
mod launch;
mod memory;
mod pool;
mod properties;
mod registry;
mod state;
mod stream;
mod symbol;
#[cfg(test)]
mod tests;
mod texture;

/// Defines functions of the runtime: each returns a code, which is the thread's last error if it is one.
macro_rules! runtime {
    ($($(#[$attribute:meta])* fn $name:ident($($parameter:ident: $ty:ty),* $(,)?) $body:block)*) => {
        $(
            $(#[$attribute])*
            // SAFETY: no other symbol of a program that uses this runtime has this name.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($parameter: $ty),*) -> $crate::state::Code {
                let body = || -> $crate::state::Result<()> { $body };
                $crate::state::record(body())
            }
        )*
    };
}

/// Calls a function of the driver.
macro_rules! cu {
    ($name:ident($($argument:expr),* $(,)?)) => {{
        let function = $crate::state::api()?.$name.ok_or($crate::state::NOT_SUPPORTED)?;
        // SAFETY: the caller of the runtime's function upholds its contract, which is that of the driver's function for these arguments.
        $crate::state::check(unsafe { function($($argument),*) })
    }};
}

pub(crate) use {cu, runtime};
