//! A store with a policy needs the element as any other does.

use curium_kernel::StoreWith;
use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(t: Thread, x: &[u32]) {
    x[t.index()].store_streaming(1);
}

fn main() {}
