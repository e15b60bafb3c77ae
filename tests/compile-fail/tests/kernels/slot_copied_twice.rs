//! A stage of a pipeline is filled by one copy.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, mut stages: Shared<[[u32; 64]; 2]>, x: &[u32]) {
    block.pipeline(
        &mut stages,
        4,
        |step, slot| {
            slot.copy(&block, x, step * 64);
            slot.fill(&block, |_, i| i as u32);
        },
        |_, _| (),
    );
}

fn main() {}
