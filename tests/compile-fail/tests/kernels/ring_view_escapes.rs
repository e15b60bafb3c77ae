//! A slot of a ring buffer is read in its step.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, mut slots: Shared<[[u32; 32]; 2]>) {
    block.ring::<1, _, 2, _>(
        &mut slots,
        4,
        |warp, _, slot| slot.fill(warp, |_, i| i as u32),
        |_| None,
        |_, _, part, kept: &mut Option<&[u32; 32]>| *kept = Some(part),
    );
}

fn main() {}
