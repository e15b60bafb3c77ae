//! Copies of boxes of tensors by TMA, and barriers in shared memory.

use curium_kernel::prelude::*;

type Square = BoxTile<f32, 32, 32>;

/// y = xᵀ, with copies of boxes in both directions.
#[kernel]
pub fn transpose(
    block: Block<32, 8>,
    barrier: Shared<Mbarrier>,
    mut from: Shared<Square>,
    mut to: Shared<Square>,
    x: TensorMap<Square>,
    mut y: PerBlockTensor<Square>,
) {
    let barrier = barrier.init(&block);
    let row = (32 * block.index_x()) as isize;
    let column = (32 * block.index_y()) as isize;
    let _ = barrier.load(
        &block,
        &mut from,
        x.at(row, column),
        || (),
        |from| {
            to.fill(&block, |_, (row, column)| from[column][row]);
        },
    );
    y.store(&block, &mut to);
}

/// A tile with a halo of one row and four columns: a box begins at a multiple of 16 bytes.
type Halo = BoxTile<f32, 18, 40>;

/// The mean of each element and its eight neighbors. Those beyond the edges are zero.
#[kernel]
pub fn blur(
    block: Block<32, 4>,
    barrier: Shared<Mbarrier>,
    mut halo: Shared<Halo>,
    x: TensorMap<Halo>,
    mut y: PerBlockTile<f32, 16, 32>,
) {
    let barrier = barrier.init(&block);
    let row = (16 * block.index_y()) as isize - 1;
    let column = (32 * block.index_x()) as isize - 4;
    let _ = barrier.load(
        &block,
        &mut halo,
        x.at(row, column),
        || (),
        |halo| {
            y.for_each(&block, |position, y| {
                let mut sum = 0.0;
                for row in 0..3 {
                    for column in 0..3 {
                        sum +=
                            halo[position.row_in_tile + row][position.column_in_tile + 3 + column];
                    }
                }
                *y = sum / 9.0;
            });
        },
    );
}

/// The sums of rows, by a ring of tiles.
#[kernel]
pub fn row_sums(
    block: Block<64>,
    mut ring: TmaRing<BoxTile<u32, 64, 16>>,
    x: TensorMap<BoxTile<u32, 64, 16>>,
    rounds: u32,
    mut y: PerThread<u32>,
) {
    let row = (64 * block.index()) as isize;
    let mut sums = Registers::new(0_u32);
    // The ring continues with its phases in the second round.
    for _ in 0..rounds {
        ring.pipeline(
            &block,
            x.columns().div_ceil(16),
            |step| x.at(row, 16 * step as isize),
            |_, tile| {
                block.threads_with(&mut sums, |t, sum| {
                    *sum += tile[t.index_in_block()].iter().sum::<u32>();
                });
            },
        );
    }
    block.threads_with((&mut y, &sums), |_, (y, sum)| {
        if let Some(y) = y.first() {
            *y = *sum;
        }
    });
}

/// The swizzled tiles of two matrices, added: element (row, column) of both is in the same place.
#[kernel]
pub fn add_swizzled(
    block: Block<64>,
    mut ring: TmaRing<(SwizzledTile<u16, 32, 64>, SwizzledTile<u16, 32, 64>)>,
    a: TensorMap<SwizzledTile<u16, 32, 64>>,
    b: TensorMap<SwizzledTile<u16, 32, 64>>,
    mut y: PerBlockTile<u16, 32, 64>,
) {
    let row = (32 * block.index_y()) as isize;
    let column = (64 * block.index_x()) as isize;
    ring.pipeline(
        &block,
        1,
        |_| (a.at(row, column), b.at(row, column)),
        |_, (a, b)| {
            y.for_each(&block, |position, y| {
                let (row, column) = (position.row_in_tile, position.column_in_tile);
                *y = a.get(row, column) + b.get(row, column);
            });
        },
    );
}

/// Each element of a block after the next: the threads arrive, work, and wait only then.
#[kernel]
pub fn split_barrier(
    block: Block<64>,
    barrier: Shared<Mbarrier>,
    mut tile: Shared<[u32; 64]>,
    x: &[u32],
    rounds: u32,
    mut y: PerThread<u32>,
) {
    let mut barrier = barrier.init(&block);
    let mut own = block.threads(|t| x[t.index_in_grid()]);
    for _ in 0..rounds {
        block.threads_with((&mut tile, &own), |_, (tile, own)| {
            if let Some(tile) = tile.first() {
                *tile = *own;
            }
        });
        let arrived = barrier.arrive(&block, &mut tile);
        let ones = block.threads_with(&own, |_, own| own.count_ones());
        (barrier, ()) = arrived.synced(&block, |tile| {
            block.threads_with((&mut own, &ones), |t, (own, ones)| {
                *own = tile[(t.index_in_block() + 2) % 64] + *ones;
            });
        });
    }
    block.threads_with((&mut y, &own), |_, (y, own)| {
        if let Some(y) = y.first() {
            *y = *own;
        }
    });
}
