//! Matrix products on tensor cores.

use core::array;

use curium_kernel::prelude::*;

/// c = a * b, for matrices of bfloat16 in groups of eight adjacent columns, with sums in `f32`:
/// c[r][n] = Σₖ a[r][k] · b[k][n].
///
/// A block computes 128 × 128 elements, and each of its eight warps 64 × 32 of them with
/// `mma.m16n8k16`. Two tiles of 32 values of k alternate: `cp.async` fills one while the warps
/// multiply the other, whose rows are padded so that `ldmatrix` has no bank conflicts.
#[kernel]
pub fn gemm_bf16(
    block: Block<256>,
    mut a_even: Shared<Tile<U32x4, 128, 4, 1>>,
    mut a_odd: Shared<Tile<U32x4, 128, 4, 1>>,
    mut b_even: Shared<Tile<U32x4, 32, 16, 1>>,
    mut b_odd: Shared<Tile<U32x4, 32, 16, 1>>,
    a: Matrix<U32x4>,
    b: Matrix<U32x4>,
    mut c: PerWarpPlaneTile<F32x2, 64, 16, 4>,
) {
    let first_row = (block.index_y() as u32 * 128) as usize;
    let first_column = (block.index_x() as u32 * 16) as usize;
    let mut sums: PerWarp<Sums> = block.warps(|_| [[Lanes::new([0.0; 4]); 4]; 4]);
    a_even.copy_during(&block, &a, (first_row, 0), || {
        b_even.copy_during(&block, &b, (0, first_column), || ());
    });
    for k in (0..a.columns()).step_by(8) {
        a_odd.copy_during(&block, &a, (first_row, k + 4), || {
            b_odd.copy_during(&block, &b, (8 * (k + 4), first_column), || {
                multiply(&block, &mut a_even, &mut b_even, &mut sums);
            });
        });
        a_even.copy_during(&block, &a, (first_row, k + 8), || {
            b_even.copy_during(&block, &b, (8 * (k + 8), first_column), || {
                multiply(&block, &mut a_odd, &mut b_odd, &mut sums);
            });
        });
    }
    block.warps_with((&mut c, &sums), |warp, (c, sums)| {
        unroll!(m in 0..4 {
            for (n, sums) in sums[m].iter().enumerate() {
                c.store_accumulators(warp, m, n, sums);
            }
        });
    });
}

/// The accumulators of a warp: of four by four products of 16 × 8 elements.
type Sums = [[Lanes<[f32; 4]>; 4]; 4];

/// Adds the product of two tiles.
fn multiply(
    block: &Block<256>,
    a: &mut Shared<Tile<U32x4, 128, 4, 1>>,
    b: &mut Shared<Tile<U32x4, 32, 16, 1>>,
    sums: &mut PerWarp<Sums>,
) {
    (a.fragments(), b.fragments()).synced(block, |(a, b)| {
        block.warps_with(sums, |warp, sums| {
            let row = warp.index() / 4 * 64;
            let column = warp.index() % 4 * 4;
            unroll!(step in 0..2 {
                let a: [_; 4] = array::from_fn(|m| a.load(warp, row + 16 * m, 2 * step));
                let b: [_; 2] =
                    array::from_fn(|n| b.load_transposed(warp, 16 * step, column + 2 * n));
                for m in 0..4 {
                    for n in 0..4 {
                        warp.mma_bf16(&a[m], &b[n / 2][n % 2], &mut sums[m][n]);
                    }
                }
            });
        });
    });
}
