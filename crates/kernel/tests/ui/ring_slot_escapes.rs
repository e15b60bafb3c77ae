//! A slot of a ring buffer is filled in its step.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, mut slots: Shared<[[u32; 32]; 2]>) {
    block.ring::<1, _, 2, _>(
        &mut slots,
        4,
        |warp, _, slot| {
            let kept = block.warps(|_| slot);
            let _ = (warp, kept);
        },
        |_| None,
        |_, _, part, kept: &mut Option<&[u32; 32]>| *kept = Some(part),
    );
}

fn main() {}
