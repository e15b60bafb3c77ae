//! A stage of a pipeline is filled before the barrier that ends its step.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, mut stages: Shared<[[u32; 64]; 2]>, x: &[u32]) {
    let mut kept = None;
    block.pipeline(
        &mut stages,
        4,
        |_, slot| kept = Some(slot),
        |_, _| (),
    );
    if let Some(slot) = kept {
        slot.copy(&block, x, 0);
    }
}

fn main() {}
