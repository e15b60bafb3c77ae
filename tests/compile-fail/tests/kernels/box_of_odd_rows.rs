//! A row of a box has a multiple of 16 bytes.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(_block: Block<64>, _x: TensorMap<BoxTile<f32, 8, 33>>) {}

fn main() {}
