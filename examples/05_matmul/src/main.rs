//! Tiles: the product of two matrices.
//!
//! A block copies a tile of each matrix to shared memory, where its threads read each element many
//! times. A thread computes 4 × 4 elements in registers, which code of the block carries from tile
//! to tile without being able to read them. The barriers are those of hand-written CUDA C++: before
//! the tiles are read, and before they are written again.
#![expect(clippy::print_stdout, reason = "the program prints its result")]

use std::time::Duration;

use curium::prelude::*;
use curium_kernel::host::{Blocks, RowMajor};

#[allow(unreachable_pub, reason = "a launcher is public")]
mod kernels {
    use curium_kernel::prelude::*;

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
            // Elements beyond the matrices are zero.
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
        c.for_each_with(&block, &sums, |position, c, sums| {
            *c = sums[position.i][position.j];
        });
    }
}
curium_kernel::include_kernels!("kernels");

/// A matrix on the host, row by row.
struct HostMatrix {
    rows: usize,
    columns: usize,
    elements: Vec<f32>,
}

impl HostMatrix {
    /// Returns a matrix of numbers from -0.5 to 0.5.
    fn new(rows: usize, columns: usize) -> Self {
        let element = |i: usize| (i * 37 % 101) as f32 / 100.0 - 0.5;
        Self {
            rows,
            columns,
            elements: (0..rows * columns).map(element).collect(),
        }
    }

    fn on_device<'a>(&self, buffer: &'a DeviceBuffer<f32>) -> RowMajor<&'a DeviceBuffer<f32>> {
        RowMajor::new(buffer, self.rows, self.columns)
    }
}

/// Returns the product, and the time that the kernel took.
fn product(
    device: &Device,
    a: &HostMatrix,
    b: &HostMatrix,
) -> curium::Result<(Vec<f32>, Duration)> {
    let context = device.primary_context()?;
    let stream = context.stream()?;
    let kernels = Kernels::load(device)?;
    let device_a = DeviceBuffer::from_slice(&stream, &a.elements)?;
    let device_b = DeviceBuffer::from_slice(&stream, &b.elements)?;
    let mut c = DeviceBuffer::uninit(&stream, a.rows * b.columns)?;
    let blocks = (b.columns.div_ceil(64) as u32, a.rows.div_ceil(64) as u32);
    let begin = Event::new(&context, EventFlags::empty())?;
    let end = Event::new(&context, EventFlags::empty())?;
    // The first launch prepares the device for the second one, which is measured.
    for _ in 0..2 {
        begin.record(&stream)?;
        kernels.matmul.launch(
            &stream,
            Blocks::new(blocks),
            a.on_device(&device_a),
            b.on_device(&device_b),
            RowMajor::new(&mut c, a.rows, b.columns),
        )?;
        end.record(&stream)?;
    }
    let c = c.to_vec()?;
    Ok((c, end.elapsed_since(&begin)?))
}

/// Returns the largest difference of some elements from those that the host computes.
fn error(a: &HostMatrix, b: &HostMatrix, c: &[f32]) -> f64 {
    let difference = |i: usize| {
        let row = &a.elements[i / b.columns * a.columns..][..a.columns];
        let column = b.elements[i % b.columns..].iter().step_by(b.columns);
        let expected: f64 = row
            .iter()
            .zip(column)
            .map(|(a, b)| f64::from(*a) * f64::from(*b))
            .sum();
        (f64::from(c[i]) - expected).abs()
    };
    (0..c.len()).step_by(97).map(difference).fold(0.0, f64::max)
}

fn run(device: &Device, rows: usize, inner: usize, columns: usize) -> curium::Result<()> {
    let a = HostMatrix::new(rows, inner);
    let b = HostMatrix::new(inner, columns);
    let (c, time) = product(device, &a, &b)?;
    let error = error(&a, &b, &c);
    assert!(error < 1e-4, "the largest error is {error}");
    let operations = 2.0 * (rows * columns * inner) as f64;
    println!(
        "{rows} × {inner} times {inner} × {columns} in {time:.1?}: {:.0} GFLOP/s; largest error {error:.1e}",
        operations / time.as_secs_f64() / 1e9
    );
    Ok(())
}

fn main() -> curium::Result<()> {
    run(&Device::first()?, 2048, 2048, 2048)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes are no multiples of a tile.
    #[test]
    fn products_of_any_size() -> curium::Result<()> {
        curium_sim::test(|device: Device| {
            for (rows, inner, columns) in [(70, 37, 90), (1, 1, 1), (64, 16, 64)] {
                run(&device, rows, inner, columns)?;
            }
            Ok(())
        })
    }
}
