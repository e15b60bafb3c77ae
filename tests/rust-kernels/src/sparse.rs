//! Sparse matrices.

use curium_kernel::prelude::*;

/// y = a * x, for a sparse matrix by rows (CSR): y[r] = Σᵢ values[i] · x[columns[i]], for i from
/// row_starts[r] to row_starts[r + 1].
///
/// Each warp computes an element of y (Bell and Garland, 2009).
#[kernel]
pub fn spmv(
    block: Block<256>,
    row_starts: &[u32],
    columns: &[u32],
    values: &[f32],
    x: &[f32],
    mut y: PerWarpChunk<f32, 1>,
) {
    let first_row = block.index() * 8;
    block.warps_with(&mut y, |warp, mut y| {
        let row = first_row + warp.index();
        let (Some(&start), Some(&end)) = (row_starts.get(row), row_starts.get(row + 1)) else {
            return;
        };
        let columns = &columns[start as usize..end as usize];
        let values = &values[start as usize..end as usize];
        let sums = warp.lanes(|lane| {
            let mut sum = 0.0_f32;
            let mut i = lane.index();
            while i < columns.len() {
                sum = values[i].mul_add(x[columns[i] as usize], sum);
                i += 32;
            }
            sum
        });
        let sum = warp.sum(&sums);
        warp.lanes_with(&mut y, |_, y| {
            if let Some(y) = y.first() {
                *y = sum;
            }
        });
    });
}
