//! A kernel is not `async`.

use curium_kernel::prelude::*;

#[kernel]
pub async fn kernel(t: Thread) {}

fn main() {}
