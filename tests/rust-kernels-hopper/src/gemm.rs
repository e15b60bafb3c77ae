//! Products of bfloat16 matrices by TMA and `wgmma`.

use curium_kernel::prelude::*;
use curium_kernel::{Columns, Width};

/// The columns of a tile: 128 bytes.
const INNER: usize = 64;

/// 128 rows of A.
type A = SwizzledTile<u16, 128, INNER>;

/// Rows of B, which are columns of the product.
type B<const N: usize> = SwizzledTile<u16, N, INNER>;

/// The sums of a block of two warpgroups: 128 rows of `a * bᵀ` and `N` columns.
#[inline(always)]
fn product<const N: usize>(
    block: &Block<256>,
    ring: &mut TmaRing<(A, B<N>)>,
    a: &TensorMap<A>,
    b: &TensorMap<B<N>>,
) -> Registers<Accumulators<N>>
where
    Columns<N>: Width,
{
    let row = (128 * block.index_y()) as isize;
    let column = (N * block.index_x()) as isize;
    let mut sums = Registers::new(Accumulators::<N>::ZERO);
    ring.multiply(
        block,
        a.columns().div_ceil(INNER),
        &mut sums,
        |step| {
            let inner = (INNER * step) as isize;
            (a.at(row, inner), b.at(column, inner))
        },
        |warp_group, products, (a, b)| products.add_bf16(a, 64 * warp_group.index(), b),
    );
    sums
}

/// c = a * bᵀ in blocks of 128 × 128, rounded to bfloat16. Both matrices have bfloat16 numbers in
/// rows along the inner extent.
#[kernel]
pub fn gemm_128x128(
    block: Block<256>,
    mut ring: TmaRing<(A, B<128>)>,
    a: TensorMap<A>,
    b: TensorMap<B<128>>,
    mut c: PerWarpGroupTile<u16, 128>,
) {
    let sums = product(&block, &mut ring, &a, &b);
    c.store_bf16(&block, &sums);
}

/// c = a * bᵀ in blocks of 128 × 256, rounded to bfloat16.
#[kernel]
pub fn gemm_128x256(
    block: Block<256>,
    mut ring: TmaRing<(A, B<256>)>,
    a: TensorMap<A>,
    b: TensorMap<B<256>>,
    mut c: PerWarpGroupTile<u16, 256>,
) {
    let sums = product(&block, &mut ring, &a, &b);
    c.store_bf16(&block, &sums);
}

/// c = relu(a * bᵀ) in blocks of 64 × 64, in binary16 and single precision: one warpgroup that
/// waits for each product.
#[kernel]
pub fn gemm_relu(
    block: Block<128>,
    mut ring: TmaRing<(B<64>, B<64>)>,
    a: TensorMap<B<64>>,
    b: TensorMap<B<64>>,
    mut c: PerWarpGroupTile<f32, 64>,
) {
    let row = (64 * block.index_y()) as isize;
    let column = (64 * block.index_x()) as isize;
    let mut sums = Registers::new(Accumulators::<64>::ZERO);
    ring.pipeline(
        &block,
        a.columns().div_ceil(INNER),
        |step| {
            let inner = (INNER * step) as isize;
            (a.at(row, inner), b.at(column, inner))
        },
        |_, (a, b)| {
            block.warp_groups_with(&mut sums, |warp_group, sums| {
                warp_group.multiply(sums, |products| products.add_f16(a, 0, b));
            });
        },
    );
    block.threads_with(&mut sums, |t, sums| {
        sums.for_each(t, |_, sum| *sum = sum.max(0.0));
    });
    c.store(&block, &sums);
}

/// c = relu(x) * bᵀ for rows of 64 numbers. The first factor is computed by threads, and stays in
/// registers.
#[kernel]
pub fn multiply_relu(
    block: Block<256>,
    mut ring: TmaRing<B<64>>,
    x: Matrix<f32>,
    b: TensorMap<B<64>>,
    mut c: PerWarpGroupTile<f32, 64>,
) {
    let first_row = 128 * block.index_y();
    let column = (64 * block.index_x()) as isize;
    let a = block.threads(|t| {
        let first_row = first_row + 64 * (t.index_in_block() / 128);
        WarpGroupFragments::from_fn(t, |row, column| {
            x.get(first_row + row, column).map_or(0.0, |x| x.max(0.0))
        })
    });
    let mut sums = Registers::new(Accumulators::<64>::ZERO);
    ring.pipeline(
        &block,
        1,
        |_| b.at(column, 0),
        |_, b| {
            block.warp_groups_with((&mut sums, &a), |warp_group, (sums, a)| {
                warp_group.multiply_fragments(sums, a, b);
            });
        },
    );
    c.store(&block, &sums);
}
