//! Inline PTX is `unsafe`.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(t: Thread, mut y: PerThread<u32>) {
    if let Some(y) = y.get(&t) {
        let mut lane = 0;
        ptx!("mov.u32 {0}, %laneid;", out(r) lane);
        *y = lane;
    }
}

fn main() {}
