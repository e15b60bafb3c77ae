//! Code of the block does not run `clone` of a user with the value of a thread.

use curium_kernel::prelude::*;

pub struct Value(usize);

impl Clone for Value {
    fn clone(&self) -> Self {
        Self(self.0)
    }
}

#[kernel]
pub fn kernel(block: Block<64>) {
    let values = block.threads(|t| Value(t.index()));
    let _ = values.clone();
    let lanes = block.warps(|warp| warp.lanes(|lane| Value(lane.index())).clone());
    let _ = lanes.clone();
}

fn main() {}
