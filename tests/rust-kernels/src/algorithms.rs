//! Common kernels, in the forms that a programmer of CUDA C++ knows.

use curium_kernel::prelude::*;

/// y = a * x + y
#[kernel]
pub fn saxpy(t: Thread, a: f32, x: &[f32], mut y: PerThread<f32>) {
    if let Some(y) = y.get(&t) {
        *y = a.mul_add(x[t.index()], *y);
    }
}

/// Adds the sum of all of x to the total.
#[kernel]
pub fn block_sum(block: Block<256>, mut scratch: Scratch<f32>, x: &[f32], total: &[Atomic<f32>]) {
    let own = block.threads(|t| t.grid_stride(x.len()).map(|i| x[i]).sum::<f32>());
    let sum = block.sum(&own, &mut scratch);
    block.threads(|t| {
        if t.index_in_block() == 0 {
            total[0].fetch_add(t, sum, Relaxed);
        }
    });
}

/// c = a * b. Each block computes a tile of 64 × 64 elements, and each thread 4 × 4 of them.
#[kernel]
pub fn matmul(
    block: Block<16, 16>,
    mut a_tile: Shared<Tile<f32, 64, 16, 1>>,
    mut b_tile: Shared<Tile<f32, 16, 64>>,
    a: Matrix<f32>,
    b: Matrix<f32>,
    mut c: PerBlockTile<f32, 64, 64>,
) {
    let first_row = block.index_y() * 64;
    let first_column = block.index_x() * 64;
    let mut sums = Registers::new([[0.0_f32; 4]; 4]);
    for first_k in (0..a.columns()).step_by(16) {
        a_tile.fill(&block, |_, (row, k)| {
            a.get(first_row + row, first_k + k).copied().unwrap_or(0.0)
        });
        b_tile.fill(&block, |_, (k, column)| {
            b.get(first_k + k, first_column + column)
                .copied()
                .unwrap_or(0.0)
        });
        (&mut a_tile, &mut b_tile).synced(&block, |(a, b)| {
            block.threads_with(&mut sums, |t, sums| {
                for k in 0..16 {
                    let a: [f32; 4] = core::array::from_fn(|i| a[t.y() + 16 * i][k]);
                    let b: [f32; 4] = core::array::from_fn(|j| b[k][t.x() + 16 * j]);
                    for i in 0..4 {
                        for j in 0..4 {
                            sums[i][j] = a[i].mul_add(b[j], sums[i][j]);
                        }
                    }
                }
            });
        });
    }
    c.for_each_with(&block, &sums, |position, element, sums| {
        *element = sums[position.i][position.j];
    });
}

/// c = a * b like [`matmul`](fn@matmul), with tiles that are copied while the block computes.
#[kernel]
pub fn matmul_async(
    block: Block<16, 16>,
    mut a_now: Shared<Tile<f32, 64, 16, 1>>,
    mut a_next: Shared<Tile<f32, 64, 16, 1>>,
    mut b_now: Shared<Tile<f32, 16, 64>>,
    mut b_next: Shared<Tile<f32, 16, 64>>,
    a: Matrix<f32>,
    b: Matrix<f32>,
    mut c: PerBlockTile<f32, 64, 64>,
) {
    let first_row = block.index_y() * 64;
    let first_column = block.index_x() * 64;
    let mut sums = Registers::new([[0.0_f32; 4]; 4]);
    a_now.copy_during(&block, &a, (first_row, 0), || ());
    b_now.copy_during(&block, &b, (0, first_column), || ());
    for k in (0..a.columns()).step_by(16) {
        a_next.copy_during(&block, &a, (first_row, k + 16), || {
            b_next.copy_during(&block, &b, (k + 16, first_column), || {
                (&mut a_now, &mut b_now).synced(&block, |(a, b)| {
                    block.threads_with(&mut sums, |t, sums| {
                        for k in 0..16 {
                            let a: [f32; 4] = core::array::from_fn(|i| a[t.y() + 16 * i][k]);
                            let b: [f32; 4] = core::array::from_fn(|j| b[k][t.x() + 16 * j]);
                            for i in 0..4 {
                                for j in 0..4 {
                                    sums[i][j] = a[i].mul_add(b[j], sums[i][j]);
                                }
                            }
                        }
                    });
                });
            });
        });
        (a_now, a_next) = (a_next, a_now);
        (b_now, b_next) = (b_next, b_now);
    }
    c.for_each_with(&block, &sums, |position, element, sums| {
        *element = sums[position.i][position.j];
    });
}

/// Counts the values of the bytes.
#[kernel]
pub fn histogram(block: Block<256>, mut bins: Counters<256>, data: &[u8], total: &[Atomic<u32>]) {
    bins.fill(&block, |_, _| 0);
    bins.synced(&block, |bins| {
        block.threads(|t| {
            for i in t.grid_stride(data.len()) {
                bins[usize::from(data[i])].fetch_add(t, 1, Relaxed);
            }
        });
    });
    block.threads_with(&mut bins, |t, bins| {
        for (i, bin) in bins {
            total[i].fetch_add(t, *bin.get_mut(), Relaxed);
        }
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
    let x = &x[..y.len()];
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

/// Normalizes each row to mean 0 and variance 1, and scales it.
#[kernel]
pub fn layer_norm(
    block: Block<256>,
    mut scratch: Scratch<f32>,
    x: Matrix<f32>,
    gain: &[f32],
    bias: &[f32],
    epsilon: f32,
    mut y: PerBlockRow<f32>,
) {
    let Some(x) = x.row(block.index()) else {
        return;
    };
    let Some(mut y) = y.row(&block) else { return };
    let x = &x[..y.len()];
    let gain = &gain[..y.len()];
    let bias = &bias[..y.len()];
    let sum = block.threads(|t| t.block_stride(x.len()).map(|i| x[i]).sum::<f32>());
    let mean = block.sum(&sum, &mut scratch) / x.len() as f32;
    let squares = block.threads(|t| {
        t.block_stride(x.len())
            .fold(0.0, |sum, i| (x[i] - mean).mul_add(x[i] - mean, sum))
    });
    let scale = (block.sum(&squares, &mut scratch) / x.len() as f32 + epsilon).fast_rsqrt();
    block.threads_with(&mut y, |_, y| {
        for (i, y) in y {
            *y = ((x[i] - mean) * scale).mul_add(gain[i], bias[i]);
        }
    });
}

/// The sum of all elements before each, in each part of 1024 elements, and the sum of each part.
#[kernel]
pub fn scan(
    block: Block<256>,
    mut scratch: Scratch<u32>,
    x: &[u32],
    mut sums: PerThreadChunk<u32, 4>,
    mut totals: PerBlock<u32>,
) {
    let start = block.index() * 1024;
    let own: Registers<[u32; 4]> = block.threads(|t| {
        core::array::from_fn(|i| {
            x.get(start + 4 * t.index_in_block() + i)
                .copied()
                .unwrap_or(0)
        })
    });
    let sum = block.threads_with(&own, |_, own| own.iter().sum::<u32>());
    let (before, total) = block.exclusive_scan(&sum, 0, &mut scratch, |a, b| a + b);
    block.threads_with((&mut sums, &own, &before), |_, (sums, own, before)| {
        let mut sum = *before;
        for (i, own) in own.iter().enumerate() {
            if let Some(element) = sums.get_mut(i) {
                *element = sum;
            }
            sum += own;
        }
    });
    totals.set(&block, total);
}

/// Sorts each part of 1024 elements.
#[kernel]
pub fn sort(block: Block<512>, mut tile: Shared<[u32; 1024]>, x: &[u32], mut y: PerBlockRow<u32>) {
    let Some(mut y) = y.row(&block) else { return };
    let start = block.index() * 1024;
    tile.fill(&block, |_, i| x.get(start + i).copied().unwrap_or(u32::MAX));
    tile.pairs(&block, |pairs| {
        for bits in 1..11 {
            let size = 1 << bits;
            for stride in (0..bits).rev().map(|bit| 1 << bit) {
                pairs.step(stride, |i, low, high| {
                    if (*low > *high) == (i & size == 0) {
                        core::mem::swap(low, high);
                    }
                });
            }
        }
    });
    tile.synced(&block, |tile| {
        block.threads_with(&mut y, |_, y| {
            for (i, y) in y {
                *y = tile[i];
            }
        });
    });
}

/// The accelerations of bodies (x, y, z, mass).
#[kernel]
pub fn n_body(
    block: Block<256>,
    mut tile: Shared<[F32x4; 256]>,
    bodies: &[F32x4],
    softening: f32,
    mut accelerations: PerThread<F32x4>,
) {
    let own = block.threads(|t| bodies.get(t.index_in_grid()).copied().unwrap_or_default());
    let mut sum = Registers::new(F32x4::default());
    for start in (0..bodies.len()).step_by(256) {
        tile.fill(&block, |_, i| {
            bodies.get(start + i).copied().unwrap_or_default()
        });
        tile.synced(&block, |tile| {
            block.threads_with((&own, &mut sum), |_, (own, sum)| {
                for other in tile {
                    let d = *other - *own;
                    let square =
                        d.x.mul_add(d.x, d.y.mul_add(d.y, d.z.mul_add(d.z, softening)));
                    let inverse = square.fast_rsqrt();
                    let factor = other.w * inverse * inverse * inverse;
                    sum.x = d.x.mul_add(factor, sum.x);
                    sum.y = d.y.mul_add(factor, sum.y);
                    sum.z = d.z.mul_add(factor, sum.z);
                }
            });
        });
    }
    block.threads_with((&mut accelerations, &sum), |_, (accelerations, sum)| {
        if let Some(acceleration) = accelerations.first() {
            *acceleration = *sum;
        }
    });
}

/// The part of the complex plane that an image shows.
#[derive(Clone, Copy, ByValue)]
#[repr(C)]
pub struct View {
    pub left: f32,
    pub top: f32,
    pub step: f32,
    pub limit: u32,
}

/// The number of iterations of z² + c until |z| > 2.
#[kernel]
pub fn mandelbrot(block: Block<16, 16>, view: View, mut image: PerBlockTile<u32, 16, 16>) {
    image.for_each(&block, |position, pixel| {
        let cx = (position.column as f32).mul_add(view.step, view.left);
        let cy = (position.row as f32).mul_add(view.step, view.top);
        let mut x = 0.0_f32;
        let mut y = 0.0_f32;
        let mut count = 0;
        while count < view.limit && x.mul_add(x, y * y) <= 4.0 {
            let next = x.mul_add(x, -(y * y)) + cx;
            y = (2.0 * x).mul_add(y, cy);
            x = next;
            count += 1;
        }
        *pixel = count;
    });
}

/// A step of the heat equation.
#[kernel]
pub fn stencil(block: Block<32, 8>, x: Matrix<f32>, rate: f32, mut y: PerBlockTile<f32, 8, 32>) {
    y.for_each(&block, |position, y| {
        let (r, c) = (position.row, position.column);
        let is_inside = r > 0 && r + 1 < x.rows() && c > 0 && c + 1 < x.columns();
        *y = if is_inside {
            let neighbors = x[(r - 1, c)] + x[(r + 1, c)] + x[(r, c - 1)] + x[(r, c + 1)];
            rate.mul_add(4.0_f32.mul_add(-x[(r, c)], neighbors), x[(r, c)])
        } else {
            x[(r, c)]
        };
    });
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
