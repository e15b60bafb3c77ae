//! The memory of a pipeline is borrowed while it runs.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, mut stages: Shared<[[u32; 64]; 2]>, x: &[u32]) {
    block.pipeline(
        &mut stages,
        4,
        |step, slot| slot.copy(&block, x, step * 64),
        |_, _| stages.fill(&block, |_, _| [0; 64]),
    );
}

fn main() {}
