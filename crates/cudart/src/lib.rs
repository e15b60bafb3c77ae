//! The CUDA runtime over the public driver API.
//!
//! NVIDIA's `libcudart` requires private tables of NVIDIA's driver and checks that the driver is NVIDIA's, which the
//! simulator does not claim to be. This library exports the runtime's functions under their C names and calls
//! documented driver functions only, so a program of the runtime runs on any driver. `cargo xtask sim` builds it beside
//! `libcuda.so.1`, as a shared library under the names of CUDA 11, 12 and 13 and as a static library.
//!
//! It implements the most common functions: devices, memory, copies, streams, events, launches, graphs, textures,
//! occupancy, symbols. A program that requires another function does not start or does not link, and the loader or
//! linker names the function.
//!
//! # Structure
//!
//! `state` contains the driver, the device and context of each thread, and the last error. `registry` records the
//! kernels and variables that compiled programs register at startup. The other modules contain the functions, by
//! object.

mod array;
mod copy_3d;
mod device;
mod error;
mod event;
mod graph;
mod ipc;
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

/// Defines functions of the runtime. Each returns a code, and records an error as the thread's last error.
macro_rules! runtime {
    ($($(#[$attribute:meta])* fn $name:ident($($parameter:ident: $ty:ty),* $(,)?) $body:block)*) => {
        $(
            $(#[$attribute])*
            // SAFETY: no other symbol of a program that uses this runtime has this name.
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name($($parameter: $ty),*) -> $crate::state::Code {
                $crate::state::entry(|| -> $crate::state::Result<()> { $body })
            }
        )*
    };
}

/// Defines functions of the runtime that make the context of the thread's device current and call a driver function.
///
/// Each line says `unsafe`: the contract of the runtime's function is that of the driver's function with these arguments.
macro_rules! forward {
    ($(
        $(#[$attribute:meta])*
        unsafe fn $name:ident($($parameter:ident: $ty:ty),* $(,)?)
            = $driver:ident($($argument:expr),* $(,)?);
    )*) => {
        $crate::runtime! {
            $($(#[$attribute])* fn $name($($parameter: $ty),*) {
                $crate::state::enter()?;
                // SAFETY: the line of the table states that the contracts are the same.
                unsafe { $crate::cu!($driver($($argument),*)) }
            })*
        }
    };
}

/// Defines functions like [`forward!`] that require no current context.
macro_rules! forward_without_context {
    ($(
        unsafe fn $name:ident($($parameter:ident: $ty:ty),* $(,)?)
            = $driver:ident($($argument:expr),* $(,)?);
    )*) => {
        $crate::runtime! {
            $(fn $name($($parameter: $ty),*) {
                // SAFETY: the line of the table states that the contracts are the same.
                unsafe { $crate::cu!($driver($($argument),*)) }
            })*
        }
    };
}

/// Calls a driver function. The caller supplies `unsafe`, and upholds the function's contract.
macro_rules! cu {
    ($name:ident($($argument:expr),* $(,)?)) => {{
        let function = $crate::state::api()?.$name.ok_or($crate::state::NOT_SUPPORTED)?;
        $crate::state::check(function($($argument),*))
    }};
}

pub(crate) use {cu, forward, forward_without_context, runtime};
