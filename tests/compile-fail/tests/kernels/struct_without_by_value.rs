//! A struct needs a derive.

use curium_kernel::prelude::*;

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Point {
    x: f32,
    y: f32,
}

#[kernel]
pub fn kernel(t: Thread, x: Point) {}

fn main() {}
