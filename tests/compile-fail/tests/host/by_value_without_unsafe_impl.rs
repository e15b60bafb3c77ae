//! The layout of a struct passed by value is guaranteed by an `unsafe impl`.

use curium_driver::{Kernel, Library};

#[derive(Clone, Copy)]
#[repr(C)]
struct Viewport {
    width: u32,
    height: u32,
}

fn look_up(library: &Library) -> Kernel<(Viewport,)> {
    library.kernel("draw").unwrap()
}

fn main() {}
