//! Textures return `f32` and integers.

use curium_kernel::Texture2D;
use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(t: Thread, image: Texture2D<f64>) {
    let _ = (t, image);
}

fn main() {}
