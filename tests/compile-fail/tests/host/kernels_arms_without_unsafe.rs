//! No arm of the macro declares a kernel safe without the caller's `unsafe`.

use curium_driver::{Library, Result, SafeKernel};

fn looked_up(library: &Library) -> Result<SafeKernel<(u32, u32)>> {
    Ok(curium_driver::kernels!(@look_up SafeKernel library, "add"))
}

curium_driver::kernels! {
    struct Collected {
        safe fn add(a: u32, b: u32) = "sub";
    }
}

fn main() {}
