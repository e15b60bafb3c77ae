//! Accumulators that one lane stores alone.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, mut y: PerWarpPlaneTile<F32x2, 16, 4, 1>) {
    block.warps_with(&mut y, |warp, y| {
        let sums = Lanes::new([0.0; 4]);
        warp.lanes(|lane| {
            if lane.index() == 0 {
                y.store_accumulators(warp, 0, 0, &sums);
            }
        });
    });
}

fn main() {}
