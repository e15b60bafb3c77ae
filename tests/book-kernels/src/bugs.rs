//! Kernels with real bugs, whose reports `tests/bugs.rs` compares.

use curium_kernel::prelude::*;

/// The differences between elements and the next ones. The last element has no next one.
#[kernel]
pub fn differences(t: Thread, x: &[f32], mut y: PerThread<f32>) {
    if let Some(y) = y.get(&t) {
        *y = x[t.index() + 1] - x[t.index()];
    }
}

/// The same without a check of the bounds.
#[kernel]
pub fn unchecked_differences(t: Thread, x: &[f32], mut y: PerThread<f32>) {
    if let Some(y) = y.get(&t) {
        // SAFETY: wrong for the last element, which is the bug.
        let next = unsafe { *x.get_unchecked(t.index() + 1) };
        *y = next - x[t.index()];
    }
}

/// The elements in reverse order. The tile is not filled.
#[kernel]
pub fn unfilled_tile(block: Block<64>, mut tile: Shared<[u32; 64]>, mut y: PerThread<u32>) {
    tile.synced(&block, |tile| {
        block.threads_with(&mut y, |t, y| {
            if let Some(y) = y.first() {
                *y = tile[63 - t.index_in_block()];
            }
        });
    });
}

/// Waits for a flag, which nobody sets.
#[kernel]
pub fn wait_for_flag(block: Block<64>, flag: &[Atomic<u32>]) {
    block.threads(|t| while flag[0].load(t, Acquire) == 0 {});
}

/// Half of each warp waits at a barrier.
#[kernel]
pub fn guarded_barrier(block: Block<64>, mut y: PerThread<u32>) {
    block.threads_with(&mut y, |t, y| {
        if t.index_in_block() % 32 < 16 {
            // SAFETY: wrong, since the barrier is in a branch, which is the bug.
            unsafe { ptx!("bar.sync 0;") };
        }
        if let Some(y) = y.first() {
            *y = 1;
        }
    });
}
