//! Kernels that the book quotes and that are in no example.

#![no_std]
#![allow(
    missing_docs,
    reason = "the kernels have comments, and their launchers are private to the tests"
)]
#![allow(clippy::redundant_closure, reason = "the book shows the closures")]

use core::ops::Add;

use bytemuck::AnyBitPattern;
use curium_kernel::Shuffle;
use curium_kernel::prelude::*;

/// y is x, with each block of 256 elements in reverse order.
#[kernel]
pub fn reverse(block: Block<256>, mut tile: Shared<[u32; 256]>, x: &[u32], mut y: PerThread<u32>) {
    let first = block.index() * 256;
    tile.fill(&block, |_, i| x.get(first + i).copied().unwrap_or(0));
    tile.synced(&block, |tile| {
        block.threads_with(&mut y, |t, y| {
            if let Some(y) = y.first() {
                *y = tile[255 - t.index_in_block()];
            }
        });
    });
}

/// The number of elements that are larger than a limit, of each block of 256.
#[kernel]
pub fn count_large(block: Block<256>, limit: f32, x: &[f32], mut counts: PerBlock<u32>) {
    let is_large = block.threads(|t| x.get(t.index_in_grid()).is_some_and(|x| *x > limit));
    let count = block.count(&is_large);
    counts.set(&block, count as u32);
}

/// The mean of each element and its neighbors in the warp. The first and the last lane have
/// themselves as a neighbor.
#[kernel]
pub fn smooth(block: Block<256>, x: &[f32], mut y: PerThread<f32>) {
    let own = block.threads(|t| x.get(t.index_in_grid()).copied().unwrap_or(0.0));
    let means = block.warps_with(&own, |warp, own| {
        let below = warp.shuffle_up(own, 1);
        let above = warp.shuffle_down(own, 1);
        warp.lanes_with((&below, own, &above), |_, (below, own, above)| {
            (below + own + above) / 3.0
        })
    });
    block.threads_with((&mut y, &means.into_registers()), |_, (y, mean)| {
        if let Some(y) = y.first() {
            *y = *mean;
        }
    });
}

/// A filter of five weights, which are in the parameters of the launch.
#[kernel]
pub fn filter(t: Thread, weights: [f32; 5], x: &[f32], mut y: PerThread<f32>) {
    if let Some(y) = y.get(&t) {
        let mut sum = 0.0;
        for (i, weight) in weights.iter().enumerate() {
            if let Some(x) = x.get(t.index() + i) {
                sum = weight.mul_add(*x, sum);
            }
        }
        *y = sum;
    }
}

/// y = x transposed, by tiles of 32 × 32 elements in shared memory with padded rows.
#[kernel]
pub fn transpose(
    block: Block<32, 8>,
    mut tile: Shared<Tile<f32, 32, 32, 1>>,
    x: Matrix<f32>,
    mut y: PerBlockTile<f32, 32, 32>,
) {
    let first_row = block.index_x() * 32;
    let first_column = block.index_y() * 32;
    tile.fill(&block, |_, (row, column)| {
        x.get(first_row + row, first_column + column)
            .copied()
            .unwrap_or(0.0)
    });
    tile.synced(&block, |tile| {
        y.for_each(&block, |position, y| {
            *y = tile[position.column_in_tile][position.row_in_tile];
        });
    });
}

/// exp(x - max) / sum, of each row.
#[kernel]
pub fn softmax(
    block: Block<256>,
    mut scratch: Scratch<f32>,
    x: Matrix<f32>,
    mut y: PerBlockRow<f32>,
) {
    let Some(x) = x.row(block.index()) else {
        return;
    };
    let Some(mut y) = y.row(&block) else { return };
    let max = block.threads(|t| {
        t.block_stride(x.len())
            .fold(f32::NEG_INFINITY, |max, i| max.max(x[i]))
    });
    let max = block.reduce(&max, &mut scratch, f32::max);
    let sum = block.threads_with(&mut y, |_, y| {
        let mut sum = 0.0;
        for (i, y) in y {
            *y = (x[i] - max).exp();
            sum += *y;
        }
        sum
    });
    let scale = 1.0 / block.sum(&sum, &mut scratch);
    block.threads_with(&mut y, |_, y| {
        for (_, y) in y {
            *y *= scale;
        }
    });
}

/// Returns the sum of the values of all threads, and of their squares.
fn sums<T, const THREADS: u32>(
    block: &Block<THREADS>,
    values: &Registers<T>,
    square: impl Fn(T) -> T + Sync,
    scratch: &mut Scratch<T>,
) -> (T, T)
where
    T: Shuffle + Add<Output = T>,
{
    let squares = block.threads_with(values, |_, value| square(*value));
    (block.sum(values, scratch), block.sum(&squares, scratch))
}

/// The sum of each block of 128 elements, and that of the squares.
#[kernel]
pub fn sums_of_integers(
    block: Block<128>,
    mut scratch: Scratch<i32>,
    x: &[i32],
    mut sum: PerBlock<i32>,
    mut squares: PerBlock<i32>,
) {
    let own = block.threads(|t| x.get(t.index_in_grid()).copied().unwrap_or(0));
    let (own_sum, own_squares) = sums(&block, &own, |x| x * x, &mut scratch);
    sum.set(&block, own_sum);
    squares.set(&block, own_squares);
}

/// Returns the bits that at least two of three numbers have.
fn majority(a: u32, b: u32, c: u32) -> u32 {
    let mut result = 0;
    // SAFETY: `lop3` computes a number from three numbers. It accesses no memory, and no other
    // thread.
    unsafe {
        ptx!("lop3.b32 {0}, {1}, {2}, {3}, 0xE8;", out(r) result, in(r) a, in(r) b, in(r) c, pure);
    }
    result
}

/// The bits that at least two of each three numbers have.
#[kernel]
pub fn vote(t: Thread, x: &[u32], mut y: PerThread<u32>) {
    if let Some(y) = y.get(&t) {
        let [a, b, c] = core::array::from_fn(|i| x[3 * t.index() + i]);
        *y = majority(a, b, c);
    }
}

/// Returns in each lane the lanes that have the same value, as bits (`__match_any_sync`).
fn match_any(warp: &Warp, values: &Lanes<u32>) -> Lanes<u32> {
    warp.lanes_with(values, |_, value| {
        let mut lanes = 0;
        // SAFETY: all lanes of the warp get here, because code of the warp does, and no branch
        // stands before. The instruction accesses no memory.
        unsafe {
            ptx!("match.any.sync.b32 {0}, {1}, 0xffffffff;", out(r) lanes, in(r) *value);
        }
        lanes
    })
}

/// The number of lanes of the same warp that have the same value.
#[kernel]
pub fn count_equal(block: Block<64>, x: &[u32], mut y: PerThread<u32>) {
    let own = block.threads(|t| x.get(t.index_in_grid()).copied().unwrap_or(0));
    let lanes = block.warps_with(&own, |warp, own| match_any(warp, own));
    block.threads_with((&mut y, &lanes.into_registers()), |_, (y, lanes)| {
        if let Some(y) = y.first() {
            *y = lanes.count_ones();
        }
    });
}

/// An element with two numbers.
#[derive(Clone, Copy, AnyBitPattern)]
#[repr(C)]
pub struct Extent {
    pub low: f32,
    pub high: f32,
}

/// The extent of the elements of each block of 64, in shared memory.
#[kernel]
pub fn extents(
    block: Block<64>,
    mut tile: Shared<[Extent; 64]>,
    x: &[f32],
    mut result: PerBlock<Extent>,
) {
    let first = block.index() * 64;
    tile.fill(&block, |_, i| {
        let x = x.get(first + i).copied().unwrap_or(0.0);
        Extent { low: x, high: x }
    });
    let extent = tile.synced(&block, |tile| {
        let mut extent = tile[0];
        for other in tile {
            extent.low = extent.low.min(other.low);
            extent.high = extent.high.max(other.high);
        }
        extent
    });
    result.set(&block, extent);
}

/// The square roots of numbers that are not negative.
#[kernel]
pub fn roots(t: Thread, x: &[f32], mut y: PerThread<f32>) {
    if let Some(y) = y.get(&t) {
        let x = x[t.index()];
        assert!(x >= 0.0, "a negative number");
        *y = x.sqrt();
    }
}

#[cfg(not(target_arch = "nvptx64"))]
curium_kernel::include_kernels!("kernels");

pub mod bugs;
