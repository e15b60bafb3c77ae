//! A stage of a pipeline is read until the next step.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, mut stages: Shared<[[u32; 64]; 2]>, x: &[u32]) {
    let mut kept = None;
    block.pipeline(
        &mut stages,
        4,
        |step, slot| slot.copy(&block, x, step * 64),
        |_, part| kept = Some(part),
    );
    if let Some(part) = kept {
        block.threads(|t| part[t.index_in_block()]);
    }
}

fn main() {}
