//! Somebody vouches that a struct has the layout that the kernel expects.

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
