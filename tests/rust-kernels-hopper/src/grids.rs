//! Cooperative grids: kernels whose blocks wait for each other.

use curium_kernel::prelude::*;

/// Steps of a diffusion along a line, in one launch. The result is in `even` after an even number
/// of steps.
#[kernel]
pub fn diffuse(
    grid: Grid<Block<64>>,
    steps: u32,
    mut even: GridShared<f32>,
    mut odd: GridShared<f32>,
) {
    let (mut current, mut next) = (&mut even, &mut odd);
    for _ in 0..steps {
        current.synced(&grid, |current| {
            grid.threads_with(&mut *next, |_, elements| {
                for (i, element) in elements {
                    let left = current[i.saturating_sub(1)];
                    let right = current[(i + 1).min(current.len() - 1)];
                    *element = 0.25 * left + 0.5 * current[i] + 0.25 * right;
                }
            });
        });
        core::mem::swap(&mut current, &mut next);
    }
}

/// y = x / sum(x), in one launch.
#[kernel]
pub fn normalize(
    grid: Grid<Block<128>>,
    mut scratch: Scratch<f32>,
    x: &[f32],
    mut partial: GridPerBlock<f32>,
    mut y: PerThread<f32>,
) {
    grid.blocks_with((&mut scratch, &mut partial), |block, (scratch, partial)| {
        let own = block.threads(|t| {
            let mut sum = 0.0;
            for i in t.grid_stride(x.len()) {
                sum += x[i];
            }
            sum
        });
        let sum = block.sum(&own, scratch);
        partial.set(block, sum);
    });
    partial.synced(&grid, |partial| {
        let mut sum = 0.0;
        for partial in partial {
            sum += partial;
        }
        grid.threads_with(&mut y, |_, y| {
            for (i, y) in y {
                *y = x[i] / sum;
            }
        });
    });
}

/// Doubles all elements until one is above the limit: the blocks decide together.
#[kernel]
pub fn double_until(grid: Grid<Block<32, 2>>, limit: u32, mut x: GridShared<u32>) {
    while x.synced(&grid, |x| x.iter().all(|x| *x <= limit)) {
        grid.threads_with(&mut x, |_, x| {
            for (_, x) in x {
                *x *= 2;
            }
        });
    }
}

/// The number of the round in which each block adds its index. Values of blocks are kept between
/// grid barriers.
#[kernel]
pub fn rounds(grid: Grid<Block<32>>, rounds: u32, mut tickets: GridPerBlock<u32>) {
    let mut own = grid.blocks(|block| block.index() as u32);
    for round in 0..rounds {
        grid.blocks_with((&mut own, &mut tickets), |block, (own, tickets)| {
            *own += round;
            tickets.set(block, *own);
        });
        let sum = tickets.synced(&grid, |tickets| tickets.iter().sum::<u32>());
        grid.blocks_with(&mut own, |_, own| *own += sum);
    }
    grid.blocks_with((&mut own, &mut tickets), |block, (own, tickets)| {
        tickets.set(block, *own);
    });
}

/// y is x in reverse. The first block exchanges its handles, which ends with its code.
#[kernel]
pub fn exchanged(grid: Grid<Block<32>>, mut x: GridShared<u32>, mut y: GridShared<u32>) {
    grid.blocks_with((&mut x, &mut y), |block, (x, y)| {
        if block.index() == 0 {
            core::mem::swap(x, y);
        }
    });
    x.fill(&grid, |_, i| i as u32);
    x.synced(&grid, |x| {
        y.fill(&grid, |_, i| x[x.len() - 1 - i]);
    });
}

/// Sums of blocks by one scratch memory, in code that runs several times without a barrier in
/// between.
#[kernel]
pub fn repeated_sums(grid: Grid<Block<128>>, mut scratch: Scratch<u32>, mut total: PerBlock<u32>) {
    let mut sums = BlockValues::new(0_u32);
    for round in 0..4 {
        grid.blocks_with((&mut scratch, &mut sums), |block, (scratch, sums)| {
            let own = block.threads(|t| t.index_in_grid() as u32 + round);
            *sums = 2 * *sums + block.sum(&own, scratch);
        });
    }
    grid.blocks_with((&mut sums, &mut total), |block, (sums, total)| {
        total.set(block, *sums);
    });
}
