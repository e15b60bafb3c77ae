//! Losses and gradients of neural networks.

use core::array;

use curium_kernel::prelude::*;

/// The loss of each row of logits, and its gradient: loss = ln Σ exp(x) - x[label], gradient =
/// exp(x) / Σ exp(x) - (1 at the label).
///
/// A block computes a row: the maximum and the sum in one pass (Milakov and Gimelshein, 2018), and
/// the gradient in another. A row whose label is no column has no loss and no gradient.
#[kernel]
pub fn cross_entropy(
    block: Block<256>,
    mut scratch: Scratch<f32>,
    x: Matrix<F32x4>,
    labels: &[u32],
    mut loss: PerBlock<f32>,
    mut gradient: PerBlockRow<F32x4>,
) {
    let Some(mut gradient) = gradient.row(&block) else {
        return;
    };
    let (Some(x), Some(&label)) = (x.row(block.index()), labels.get(block.index())) else {
        return;
    };
    let label = label as usize;
    // The maximum of each thread, and its sum of exp(x - maximum).
    let own: Registers<[f32; 2]> = block.threads(|t| {
        let mut max = f32::MIN;
        let mut sum = 0.0_f32;
        for i in t.block_stride(x.len()) {
            let v = x[i];
            let new_max = max.max(v.x.max(v.y).max(v.z.max(v.w)));
            let e = v.map(|x| (x - new_max).fast_exp());
            sum = sum.mul_add((max - new_max).fast_exp(), (e.x + e.y) + (e.z + e.w));
            max = new_max;
        }
        [max, sum]
    });
    let own_max = block.threads_with(&own, |_, [max, _]| *max);
    let max = block.reduce(&own_max, &mut scratch, f32::max);
    let own_sum = block.threads_with(&own, |_, [own_max, sum]| *sum * (*own_max - max).fast_exp());
    let sum = block.sum(&own_sum, &mut scratch);
    let Some(at_label) = x.get(label / 4) else {
        loss.set(&block, 0.0);
        gradient.fill(&block, |_, _| F32x4::default());
        return;
    };
    let at_label = match label % 4 {
        0 => at_label.x,
        1 => at_label.y,
        2 => at_label.z,
        _ => at_label.w,
    };
    loss.set(&block, sum.fast_ln() + max - at_label);
    let scale = 1.0 / sum;
    let x = &x[..gradient.len()];
    block.threads_with(&mut gradient, |_, gradient| {
        for (i, gradient) in gradient {
            let mut g = x[i].map(|x| (x - max).fast_exp() * scale);
            if i == label / 4 {
                let one = |n: usize| if label % 4 == n { 1.0 } else { 0.0 };
                g = g - F32x4::new(one(0), one(1), one(2), one(3));
            }
            *gradient = g;
        }
    });
}

/// The gradients of a layer normalization y = gain · n + bias with n = (x - mean) / σ, for the
/// gradient g of y. With h = gain · g, each row has dx = (h - mean(h) - n · mean(h · n)) / σ.
///
/// Blocks process rows at distances of the grid. `gain_gradients` and `bias_gradients` have a row
/// for each block, with the sums of g · n and of g over its rows; [`column_sums`](fn@column_sums)
/// adds them. `statistics` are the mean and 1 / σ of each row. A row has at most 4096 columns.
#[kernel]
pub fn layer_norm_backward(
    block: Block<256>,
    mut scratch: Scratch<F32x2>,
    x: Matrix<F32x4>,
    gain: &[F32x4],
    statistics: &[F32x2],
    gradient: Matrix<F32x4>,
    mut dx: PerBlockRow<F32x4>,
    mut gain_gradients: PerBlockRow<F32x4>,
    mut bias_gradients: PerBlockRow<F32x4>,
) {
    let columns = x.columns();
    assert!(columns <= 1024, "a row has at most 4096 columns");
    let scale = 1.0 / (4 * columns) as f32;
    let gain: Registers<[F32x4; 4]> = block.threads(|t| row_of_thread(t, gain));
    let mut sums = Registers::new([[F32x4::default(); 4]; 2]);
    for n in 0.. {
        let Some(mut dx) = dx.nth_row(&block, n) else {
            break;
        };
        let row = block.index() + n * block.grid()[0];
        let (Some(x), Some(gradient)) = (x.row(row), gradient.row(row)) else {
            break;
        };
        let Some(&F32x2 {
            x: mean,
            y: inverse,
        }) = statistics.get(row)
        else {
            break;
        };
        // n and g.
        let own: Registers<[[F32x4; 4]; 2]> = block.threads(|t| {
            let x = row_of_thread(t, x).map(|x| x.map(|x| (x - mean) * inverse));
            [x, row_of_thread(t, gradient)]
        });
        let own_sums = block.threads_with((&own, &gain), |_, ([n, g], gain)| {
            let mut sums = F32x2::default();
            for j in 0..4 {
                let h = multiply(g[j], gain[j]);
                sums.x += (h.x + h.y) + (h.z + h.w);
                sums.y = dot(h, n[j], sums.y);
            }
            sums
        });
        let means = block.sum(&own_sums, &mut scratch) * scale;
        block.threads_with(
            (&mut dx, &own, &gain, &mut sums),
            |_, (dx, [n, g], gain, [gain_sums, bias_sums])| {
                let mut dx = dx.into_iter();
                for j in 0..4 {
                    if let Some((_, dx)) = dx.next() {
                        let h = multiply(g[j], gain[j]);
                        *dx = h.zip(n[j], |h, n| (means.y.mul_add(-n, h - means.x)) * inverse);
                        gain_sums[j] = add_product(g[j], n[j], gain_sums[j]);
                        bias_sums[j] += g[j];
                    }
                }
            },
        );
    }
    let Some(mut gain_gradients) = gain_gradients.row(&block) else {
        return;
    };
    let Some(mut bias_gradients) = bias_gradients.row(&block) else {
        return;
    };
    block.threads_with(
        (&mut gain_gradients, &mut bias_gradients, &sums),
        |_, (gain_gradients, bias_gradients, [gain_sums, bias_sums])| {
            let mut gain_gradients = gain_gradients.into_iter();
            let mut bias_gradients = bias_gradients.into_iter();
            for j in 0..4 {
                if let Some((_, gradient)) = gain_gradients.next() {
                    *gradient = gain_sums[j];
                }
                if let Some((_, gradient)) = bias_gradients.next() {
                    *gradient = bias_sums[j];
                }
            }
        },
    );
}

/// Returns the vectors of a row that a thread of 256 computes.
fn row_of_thread(t: &Thread, row: &[F32x4]) -> [F32x4; 4] {
    array::from_fn(|j| {
        row.get(t.index_in_block() + 256 * j)
            .copied()
            .unwrap_or_default()
    })
}

fn multiply(a: F32x4, b: F32x4) -> F32x4 {
    a.zip(b, |a, b| a * b)
}

/// Returns `a * b + sum`.
fn add_product(a: F32x4, b: F32x4, sum: F32x4) -> F32x4 {
    F32x4::new(
        a.x.mul_add(b.x, sum.x),
        a.y.mul_add(b.y, sum.y),
        a.z.mul_add(b.z, sum.z),
        a.w.mul_add(b.w, sum.w),
    )
}

/// Adds the products of the components to a sum.
fn dot(a: F32x4, b: F32x4, sum: f32) -> f32 {
    let sum = a.x.mul_add(b.x, sum);
    let sum = a.y.mul_add(b.y, sum);
    a.z.mul_add(b.z, a.w.mul_add(b.w, sum))
}

/// y[c] = Σᵣ x[r][c], for vectors of four columns. A block sums 32 vectors of columns, of every
/// eighth row in each of its warps.
#[kernel]
pub fn column_sums(
    block: Block<32, 8>,
    mut tile: Shared<Tile<F32x4, 8, 32>>,
    x: Matrix<F32x4>,
    mut y: PerBlockChunk<F32x4, 32>,
) {
    let first = block.index() * 32;
    tile.fill(&block, |_, (first_row, column)| {
        let mut sum = F32x4::default();
        let mut row = first_row;
        while row < x.rows() {
            // Four loads at a time.
            let rows: [F32x4; 4] =
                array::from_fn(|j| x.get_or(row + 8 * j, first + column, F32x4::default()));
            for x in rows {
                sum += x;
            }
            row += 32;
        }
        sum
    });
    let mut y = y.chunk(&block);
    tile.synced(&block, |tile| {
        block.threads_with(&mut y, |_, y| {
            if let Some((column, y)) = y.into_iter().next() {
                let mut sum = F32x4::default();
                for row in 0..8 {
                    sum += tile[row][column % 32];
                }
                *y = sum;
            }
        });
    });
}

/// out[i] = table[ids[i]], by rows. A block copies a row; an id that is no row gives zeros.
#[kernel]
pub fn embedding(
    block: Block<256>,
    table: Matrix<F32x4>,
    ids: &[u32],
    mut out: PerBlockRow<F32x4>,
) {
    let Some(mut out) = out.row(&block) else {
        return;
    };
    let id = ids.get(block.index()).copied().unwrap_or(u32::MAX);
    match table.row(id as usize) {
        Some(row) => {
            let row = &row[..out.len()];
            out.fill(&block, |_, i| row[i]);
        }
        None => out.fill(&block, |_, _| F32x4::default()),
    }
}

/// table_gradient[ids[i]] += gradient[i], by rows, with atomic additions. A block adds a row; an id
/// that is no row is left out.
#[kernel]
pub fn embedding_backward(
    block: Block<256>,
    gradient: Matrix<f32>,
    ids: &[u32],
    table_gradient: &[Atomic<f32>],
) {
    let (Some(gradient), Some(&id)) = (gradient.row(block.index()), ids.get(block.index())) else {
        return;
    };
    let first = id as usize * gradient.len();
    let Some(row) = table_gradient.get(first..first + gradient.len()) else {
        return;
    };
    block.threads(|t| {
        for i in t.block_stride(gradient.len()) {
            row[i].fetch_add(t, gradient[i], Relaxed);
        }
    });
}
