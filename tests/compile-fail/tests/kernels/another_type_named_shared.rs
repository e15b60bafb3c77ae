//! A type of the program that is named `Shared` is not shared memory.

use curium_kernel::prelude::*;

mod other {
    #[derive(Clone, Copy)]
    pub struct Shared;
}
use other::Shared;

#[kernel]
pub fn kernel(t: Thread, x: Shared) {}

fn main() {}
