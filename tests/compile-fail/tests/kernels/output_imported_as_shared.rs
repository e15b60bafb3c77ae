//! An output under the name `Shared` is not shared memory.

use curium_kernel::prelude::*;

mod other {
    pub use curium_kernel::PerThread as Shared;
}
use other::Shared;

#[kernel]
pub fn kernel(t: Thread, y: Shared<u32>) {}

fn main() {}
