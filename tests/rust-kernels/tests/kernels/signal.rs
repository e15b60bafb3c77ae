use curium_driver::Result;
use curium_kernel::F32x2;
use curium_kernel::host::{Blocks, RowMajor};
use curium_memory::DeviceBuffer;

use super::{assert_close, download, noise, output, upload};
use crate::common::on_device;

#[test]
fn convolution() -> Result<()> {
    on_device(|kernels, stream| {
        for (rows, columns) in [(1, 1), (2, 300), (16, 128), (17, 129), (40, 90)] {
            let x = noise(rows * columns, 8);
            let filter: Vec<f32> = noise(25, 9);
            let filter: [[f32; 5]; 5] =
                std::array::from_fn(|i| std::array::from_fn(|j| filter[5 * i + j]));
            let device_x = DeviceBuffer::from_slice(stream, &x)?;
            let mut y = DeviceBuffer::uninit(stream, rows * columns)?;
            kernels.convolution.launch(
                stream,
                Blocks::new((columns.div_ceil(128) as u32, rows.div_ceil(16) as u32)),
                RowMajor::new(&device_x, rows, columns),
                filter,
                RowMajor::new(&mut y, rows, columns),
            )?;
            let element = |row: usize, column: usize| {
                let mut sum = 0.0;
                for (i, weights) in filter.iter().enumerate() {
                    for (j, weight) in weights.iter().enumerate() {
                        let (Some(r), Some(c)) =
                            ((row + i).checked_sub(2), (column + j).checked_sub(2))
                        else {
                            continue;
                        };
                        if r < rows && c < columns {
                            sum += weight * x[r * columns + c];
                        }
                    }
                }
                sum
            };
            let expected: Vec<f32> = (0..rows * columns)
                .map(|i| element(i / columns, i % columns))
                .collect();
            assert_close(&y.to_vec()?, &expected, 1e-5);
        }
        Ok(())
    })
}

/// Returns exp(-2πi · n / 1024).
fn root(n: usize) -> [f64; 2] {
    let angle = -std::f64::consts::TAU * n as f64 / 1024.0;
    [angle.cos(), angle.sin()]
}

/// Against the sum of the definition, in `f64`.
#[test]
fn fft_rows() -> Result<()> {
    let roots: Vec<F32x2> = (0..256)
        .map(root)
        .map(|[x, y]| F32x2::new(x as f32, y as f32))
        .collect();
    on_device(|kernels, stream| {
        for rows in [0, 1, 3] {
            let x: Vec<F32x2> = noise(2 * 1024 * rows, 10)
                .chunks(2)
                .map(|x| F32x2::new(x[0], x[1]))
                .collect();
            let device_x = upload(stream, &x)?;
            let device_roots = DeviceBuffer::from_slice(stream, &roots)?;
            let mut y = output(stream, 1024 * rows)?;
            // More blocks than rows: the last one returns early.
            kernels.fft_rows.launch(
                stream,
                Blocks::new(rows as u32 + 1),
                RowMajor::new(device_x.slice(..1024 * rows)?, rows, 1024),
                &device_roots,
                RowMajor::new(y.slice_mut(..1024 * rows)?, rows, 1024),
            )?;
            for (x, y) in x.chunks(1024).zip(download(&y, 1024 * rows)?.chunks(1024)) {
                for (k, y) in y.iter().enumerate().step_by(37) {
                    let mut sum = [0.0_f64; 2];
                    for (n, x) in x.iter().enumerate() {
                        let [c, s] = root(k * n % 1024);
                        let [a, b] = [x.x, x.y].map(f64::from);
                        sum[0] += a * c - b * s;
                        sum[1] += a * s + b * c;
                    }
                    assert_close(&[y.x, y.y], &sum.map(|sum| sum as f32), 2e-5);
                }
            }
        }
        Ok(())
    })
}

#[test]
fn transpose_complex() -> Result<()> {
    on_device(|kernels, stream| {
        for (rows, columns) in [(1, 1), (32, 32), (33, 70)] {
            let x: Vec<F32x2> = (0..rows * columns)
                .map(|i| F32x2::new(i as f32, -(i as f32)))
                .collect();
            let device_x = DeviceBuffer::from_slice(stream, &x)?;
            let mut y = DeviceBuffer::uninit(stream, rows * columns)?;
            kernels.transpose_complex.launch(
                stream,
                Blocks::new((rows.div_ceil(32) as u32, columns.div_ceil(32) as u32)),
                RowMajor::new(&device_x, rows, columns),
                RowMajor::new(&mut y, columns, rows),
            )?;
            for (i, y) in y.to_vec()?.into_iter().enumerate() {
                assert_eq!(y, x[i % rows * columns + i / rows]);
            }
        }
        Ok(())
    })
}
