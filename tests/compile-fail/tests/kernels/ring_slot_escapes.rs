//! A slot of a ring buffer is filled by code of the warp that received it.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, mut slots: Shared<[[u32; 32]; 2]>) {
    block.ring::<1, _, 2, _>(
        &mut slots,
        4,
        |warp, _, slot| {
            warp.lanes(|_| slot.fill(warp, |_, i| i as u32));
        },
        |_| (),
        |_, _, _, _| (),
    );
}

fn main() {}
