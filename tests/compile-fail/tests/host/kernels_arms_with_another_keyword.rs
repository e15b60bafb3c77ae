//! No arm of the macro accepts another keyword instead of the caller's `unsafe`.

use curium_driver::{Library, Result, SafeKernel};

fn declared(library: &Library) -> Result<SafeKernel<(u32, u32)>> {
    let kernel = library.kernel::<(u32, u32)>("add")?;
    drop(curium_driver::kernels!(@declare [async ;] kernel));
    unreachable!()
}

fn main() {}
