//! The CUDA runtime over the public driver API.
//!
//! NVIDIA's `libcudart` requires private tables of NVIDIA's driver and checks that the driver is
//! NVIDIA's, which the simulator does not claim to be. This library exports the runtime's functions
//! under their C names and calls documented driver functions only, so a program of the runtime runs
//! on any driver. `cargo xtask sim` builds it beside `libcuda.so.1`, as a shared library under the
//! names of CUDA 11, 12 and 13 and as a static library.
//!
//! It implements the functions of the headers of CUDA 11.8, 12.9 and 13.5, and their variants for
//! per-thread default streams, except those that `tests::exports` lists with a reason:
//! interoperability with graphics, external memory and texture references. A program that requires
//! one of those does not start or does not link, and the loader or linker names the function.
//!
//! # Structure
//!
//! `state` contains the driver, the device and context of each thread, and the last error.
//! `registry` records the kernels and variables that compiled programs register at startup. The
//! other modules contain the functions, by object.

mod array;
mod batch_copy;
mod copy_3d;
mod device;
mod entry_point;
mod error;
mod event;
mod execution_context;
mod graph;
mod graph_node;
mod graph_structure;
mod ipc;
mod launch;
mod library;
mod logs;
mod memory;
mod mipmapped_array;
mod node_params;
mod pool;
mod properties;
mod registry;
mod state;
mod stream;
mod symbol;
#[cfg(test)]
mod tests;
mod texture;

/// Defines functions of the runtime. Each returns a code, and records an error as the thread's last
/// error.
///
/// Brackets before a function define its variant for per-thread default streams:
/// `[name_ptsz(stream)]` names the parameters that are streams, and `[name_ptds = function]` the
/// asynchronous function with a stream as its last parameter, after which the variant waits.
macro_rules! runtime {
    ($(
        $(#[$attribute:meta])*
        $([$($variant:tt)*])?
        fn $name:ident($($parameter:ident: $ty:ty),* $(,)?) $body:block
    )*) => {
        $(
            $(#[$attribute])*
            // SAFETY: no other symbol of a program that uses this runtime has this name.
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name($($parameter: $ty),*) -> $crate::state::Code {
                $crate::state::entry(|| -> $crate::state::Result<()> { $body })
            }

            $crate::per_thread! { [$($($variant)*)?] $name($($parameter: $ty),*) }
        )*
    };
}

/// Defines the variant of a function for per-thread default streams, as [`runtime!`] describes.
macro_rules! per_thread {
    ([] $($function:tt)*) => {};
    ([$variant:ident($($stream:ident),+)] $name:ident($($parameter:ident: $ty:ty),*)) => {
        // SAFETY: no other symbol of a program that uses this runtime has this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $variant($($parameter: $ty),*) -> $crate::state::Code {
            $(let $stream = $crate::state::per_thread($stream);)+
            // SAFETY: the contracts are the same, and the stream of the thread is one.
            unsafe { $name($($parameter),*) }
        }
    };
    ([$variant:ident = $asynchronous:ident] $name:ident($($parameter:ident: $ty:ty),*)) => {
        // SAFETY: no other symbol of a program that uses this runtime has this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $variant($($parameter: $ty),*) -> $crate::state::Code {
            let stream = curium_sys::CU_STREAM_PER_THREAD;
            // SAFETY: the contracts are the same, and the stream of the thread is one.
            let code = unsafe { $asynchronous($($parameter,)* stream) };
            if code == 0 { $crate::state::synchronize(stream) } else { code }
        }
    };
}

/// Defines functions of the runtime that make the context of the thread's device current and call a
/// driver function.
///
/// Each line says `unsafe`: the contract of the runtime's function is that of the driver's function
/// with these arguments.
macro_rules! forward {
    ($(
        $(#[$attribute:meta])*
        $([$($variant:tt)*])?
        unsafe fn $name:ident($($parameter:ident: $ty:ty),* $(,)?)
            = $driver:ident($($argument:expr),* $(,)?);
    )*) => {
        $crate::runtime! {
            $($(#[$attribute])* [$($($variant)*)?] fn $name($($parameter: $ty),*) {
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

pub(crate) use {cu, forward, forward_without_context, per_thread, runtime};
