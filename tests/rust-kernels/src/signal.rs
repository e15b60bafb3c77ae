//! Filters and Fourier transforms.

use core::array;

use curium_kernel::prelude::*;

/// The rows of outputs of a thread of [`convolution`](fn@convolution).
const ROWS: usize = 16;

/// y = x convolved with a filter of 5 × 5 elements: y[r][c] = Σᵢⱼ filter[i][j] ·
/// x[r + i - 2][c + j - 2], where elements outside of x are zero.
///
/// A block computes 16 × 128 elements from a tile with its halo in shared memory. A thread computes
/// a column, and reads each row of the tile once.
#[kernel]
pub fn convolution(
    block: Block<128>,
    mut tile: Shared<Tile<f32, 20, 132>>,
    x: Matrix<f32>,
    filter: [[f32; 5]; 5],
    mut y: PerBlockTile<f32, ROWS, 128>,
) {
    // In 32 bits, as the sizes of a matrix: rows before the first one are far behind the last one.
    let first_row = (block.index_y() as u32 * ROWS as u32).wrapping_sub(2);
    let first_column = (block.index_x() as u32 * 128).wrapping_sub(2);
    tile.fill(&block, |_, (row, column)| {
        let row = first_row.wrapping_add(row as u32) as usize;
        let column = first_column.wrapping_add(column as u32) as usize;
        x.get_or(row, column, 0.0)
    });
    tile.synced(&block, |tile| {
        let sums = block.threads(|t| {
            let mut sums = [[0.0_f32]; ROWS];
            for row in 0..ROWS + 4 {
                let x: [f32; 5] = array::from_fn(|j| tile[row][t.x() + j]);
                for (i, filter) in filter.iter().enumerate() {
                    if let Some([sum]) = row.checked_sub(i).and_then(|r| sums.get_mut(r)) {
                        for j in 0..5 {
                            *sum = filter[j].mul_add(x[j], *sum);
                        }
                    }
                }
            }
            sums
        });
        y.store(&block, &sums);
    });
}

/// The number of columns of [`fft_rows`](fn@fft_rows).
pub const FFT_COLUMNS: usize = 1024;

/// The discrete Fourier transform of each row of 1024 complex numbers: y[k] = Σₙ x[n] · exp(-2πi ·
/// k · n / 1024).
///
/// A block transforms a row in five steps of radix 4 (Stockham's order), in registers; between two
/// steps each thread writes the elements that it owns to shared memory and reads those of others.
/// The tile is padded, so that no access has bank conflicts. `roots[n]` is exp(-2πi · n / 1024),
/// for n < 256.
#[kernel]
pub fn fft_rows(
    block: Block<256>,
    mut tile: Shared<Tile<F32x2, 4, 256, 4>>,
    x: Matrix<F32x2>,
    roots: &[F32x2],
    mut y: PerBlockRow<F32x2>,
) {
    let Some(mut y) = y.row(&block) else { return };
    let (Some(x), Some(roots)) = (x.row(block.index()), roots.first_chunk::<256>()) else {
        return;
    };
    let x: &[F32x2; FFT_COLUMNS] = match x.first_chunk() {
        Some(x) => x,
        None => return,
    };
    let mut values: Registers<[F32x2; 4]> =
        block.threads(|t| butterfly(array::from_fn(|r| x[256 * r + t.index_in_block()])));
    for bits in [2, 4, 6, 8] {
        // The transforms of the next step have 4 * size elements.
        let size = 1 << bits;
        block.threads_with((&mut tile, &values), |_, (mut tile, values)| {
            tile.for_each(|(row, _), element| *element = values[row]);
        });
        values = tile.synced(&block, |tile| {
            block.threads(|t| {
                let thread = t.index_in_block();
                let previous = size / 4;
                let inputs: [F32x2; 4] = array::from_fn(|r| {
                    let position = 256 * r + thread;
                    let column = position / size * previous + position % previous;
                    tile[position / previous % 4][column % 256]
                });
                let root = roots[thread % size * (256 / size)];
                butterfly(rotate(inputs, root))
            })
        });
    }
    block.threads_with((&mut y, &values), |_, (y, values)| {
        let mut y = y.into_iter();
        for value in values {
            if let Some((_, y)) = y.next() {
                *y = *value;
            }
        }
    });
}

/// Returns the product of two complex numbers.
fn product(a: F32x2, b: F32x2) -> F32x2 {
    F32x2::new(a.x.mul_add(b.x, -(a.y * b.y)), a.x.mul_add(b.y, a.y * b.x))
}

/// Multiplies element r by the root to the power of r.
fn rotate(v: [F32x2; 4], root: F32x2) -> [F32x2; 4] {
    let square = product(root, root);
    [
        v[0],
        product(v[1], root),
        product(v[2], square),
        product(v[3], product(square, root)),
    ]
}

/// Returns the Fourier transform of four elements.
fn butterfly(v: [F32x2; 4]) -> [F32x2; 4] {
    let even_sum = v[0] + v[2];
    let even_difference = v[0] - v[2];
    let odd_sum = v[1] + v[3];
    let difference = v[1] - v[3];
    // The difference times -i.
    let odd_difference = F32x2::new(difference.y, -difference.x);
    [
        even_sum + odd_sum,
        even_difference + odd_difference,
        even_sum - odd_sum,
        even_difference - odd_difference,
    ]
}

/// y = x transposed, of complex numbers, by tiles of 32 × 32 elements in shared memory with padded
/// rows: the second step of a transform in two dimensions.
#[kernel]
pub fn transpose_complex(
    block: Block<32, 8>,
    mut tile: Shared<Tile<F32x2, 32, 32, 1>>,
    x: Matrix<F32x2>,
    mut y: PerBlockTile<F32x2, 32, 32>,
) {
    let first_row = block.index_x() * 32;
    let first_column = block.index_y() * 32;
    tile.fill(&block, |_, (row, column)| {
        x.get_or(first_row + row, first_column + column, F32x2::default())
    });
    tile.synced(&block, |tile| {
        y.for_each(&block, |position, y| {
            *y = tile[position.column_in_tile][position.row_in_tile];
        });
    });
}
