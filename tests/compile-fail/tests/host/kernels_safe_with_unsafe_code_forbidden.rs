//! `forbid(unsafe_code)` rejects a declaration of safe kernels, and every arm of the macro that could create one.

#![forbid(unsafe_code)]

use curium_driver::{Library, Result, SafeKernel};

curium_driver::kernels! {
    struct Kernels unsafe {
        safe fn add(a: u32, b: u32);
    }
}

fn proven(library: &Library) -> Result<SafeKernel<(u32, u32)>> {
    Ok(curium_driver::kernels!(@proven [unsafe ;] library.kernel("add")?.declare_safe()))
}

fn declared(library: &Library) -> Result<SafeKernel<(u32, u32)>> {
    Ok(curium_driver::kernels!(@declare [unsafe ;] library.kernel("add")?))
}

fn main() {}
