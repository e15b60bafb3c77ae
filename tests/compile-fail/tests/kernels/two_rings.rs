//! All dynamic shared memory is the same memory.

use curium_kernel::prelude::*;

type Square = BoxTile<f32, 32, 32>;

#[kernel]
pub fn kernel(_block: Block<64>, _first: TmaRing<Square>, _second: TmaRing<Square>) {}

fn main() {}
