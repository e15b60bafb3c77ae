//! The macro chooses the ABI.

use curium_kernel::prelude::*;

#[kernel]
pub extern "C" fn kernel(t: Thread) {}

fn main() {}
