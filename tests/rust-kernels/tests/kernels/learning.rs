use curium_driver::Result;
use curium_kernel::host::{Blocks, RowMajor};
use curium_kernel::{F32x2, F32x4};
use curium_memory::DeviceBuffer;

use super::{assert_close, integers, noise};
use crate::common::on_device;

fn vectors(x: &[f32]) -> Vec<F32x4> {
    x.chunks(4)
        .map(|x| F32x4::new(x[0], x[1], x[2], x[3]))
        .collect()
}

fn numbers(x: Vec<F32x4>) -> Vec<f32> {
    x.into_iter().flat_map(|x| [x.x, x.y, x.z, x.w]).collect()
}

/// The last row has a label that is no column.
#[test]
fn cross_entropy() -> Result<()> {
    on_device(|kernels, stream| {
        for (rows, columns) in [(1, 4), (3, 1000), (4, 1024), (3, 1028)] {
            let x: Vec<f32> = noise(rows * columns, 11)
                .into_iter()
                .map(|x| 20.0 * x)
                .collect();
            let mut labels: Vec<u32> = integers(rows, 12)
                .into_iter()
                .map(|i| i % columns as u32)
                .collect();
            labels[rows - 1] = if rows > 1 { u32::MAX } else { 3 };
            let device_x = DeviceBuffer::from_slice(stream, &vectors(&x))?;
            let device_labels = DeviceBuffer::from_slice(stream, &labels)?;
            let mut loss = DeviceBuffer::uninit(stream, rows)?;
            let mut gradient = DeviceBuffer::uninit(stream, rows * columns / 4)?;
            kernels.cross_entropy.launch(
                stream,
                Blocks::new(rows as u32 + 1),
                RowMajor::new(&device_x, rows, columns / 4),
                &device_labels,
                &mut loss,
                RowMajor::new(&mut gradient, rows, columns / 4),
            )?;
            let loss = loss.to_vec()?;
            let gradient = numbers(gradient.to_vec()?);
            for row in 0..rows {
                let x = &x[row * columns..][..columns];
                let label = labels[row] as usize;
                let sum: f64 = x.iter().map(|x| f64::from(*x).exp()).sum();
                let (expected_loss, expected) = match x.get(label) {
                    Some(at_label) => (
                        sum.ln() - f64::from(*at_label),
                        x.iter()
                            .enumerate()
                            .map(|(i, x)| {
                                let one = if i == label { 1.0 } else { 0.0 };
                                (f64::from(*x).exp() / sum - one) as f32
                            })
                            .collect(),
                    ),
                    None => (0.0, vec![0.0; columns]),
                };
                assert_close(&[loss[row]], &[expected_loss as f32], 1e-5);
                assert_close(&gradient[row * columns..][..columns], &expected, 1e-5);
            }
        }
        Ok(())
    })
}

#[test]
fn layer_norm_backward() -> Result<()> {
    on_device(|kernels, stream| {
        for (rows, columns, blocks) in [
            (1, 4, 1),
            (5, 1020, 2),
            (7, 1024, 3),
            (3, 1028, 3),
            (2, 4096, 1),
        ] {
            let x = noise(rows * columns, 13);
            let gain = noise(columns, 14);
            let gradient = noise(rows * columns, 15);
            let statistics: Vec<F32x2> = x
                .chunks(columns)
                .map(|x| {
                    let mean = x.iter().sum::<f32>() / columns as f32;
                    let variance =
                        x.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / columns as f32;
                    F32x2::new(mean, 1.0 / (variance + 1e-5).sqrt())
                })
                .collect();
            let device_x = DeviceBuffer::from_slice(stream, &vectors(&x))?;
            let device_gain = DeviceBuffer::from_slice(stream, &vectors(&gain))?;
            let device_statistics = DeviceBuffer::from_slice(stream, &statistics)?;
            let device_gradient = DeviceBuffer::from_slice(stream, &vectors(&gradient))?;
            let mut dx = DeviceBuffer::uninit(stream, rows * columns / 4)?;
            let mut gain_rows = DeviceBuffer::uninit(stream, blocks * columns / 4)?;
            let mut bias_rows = DeviceBuffer::uninit(stream, blocks * columns / 4)?;
            kernels.layer_norm_backward.launch(
                stream,
                Blocks::new(blocks as u32),
                RowMajor::new(&device_x, rows, columns / 4),
                &device_gain,
                &device_statistics,
                RowMajor::new(&device_gradient, rows, columns / 4),
                RowMajor::new(&mut dx, rows, columns / 4),
                RowMajor::new(&mut gain_rows, blocks, columns / 4),
                RowMajor::new(&mut bias_rows, blocks, columns / 4),
            )?;
            let mut gain_sums = DeviceBuffer::uninit(stream, columns / 4)?;
            let mut bias_sums = DeviceBuffer::uninit(stream, columns / 4)?;
            for (rows, sums) in [(&gain_rows, &mut gain_sums), (&bias_rows, &mut bias_sums)] {
                kernels.column_sums.launch(
                    stream,
                    Blocks::new((columns / 4).div_ceil(32) as u32),
                    RowMajor::new(rows, blocks, columns / 4),
                    sums,
                )?;
            }
            let mut expected_gain = vec![0.0_f64; columns];
            let mut expected_bias = vec![0.0_f64; columns];
            let mut expected = Vec::new();
            for row in 0..rows {
                let F32x2 {
                    x: mean,
                    y: inverse,
                } = statistics[row];
                let at = |c: usize| f64::from(gradient[row * columns + c]);
                let n = |c: usize| f64::from((x[row * columns + c] - mean) * inverse);
                let h = |c: usize| at(c) * f64::from(gain[c]);
                let count = columns as f64;
                let mean_h = (0..columns).map(h).sum::<f64>() / count;
                let mean_hn = (0..columns).map(|c| h(c) * n(c)).sum::<f64>() / count;
                for c in 0..columns {
                    expected_gain[c] += at(c) * n(c);
                    expected_bias[c] += at(c);
                    expected.push(((h(c) - mean_h - n(c) * mean_hn) * f64::from(inverse)) as f32);
                }
            }
            assert_close(&numbers(dx.to_vec()?), &expected, 1e-5);
            let single = |x: Vec<f64>| x.into_iter().map(|x| x as f32).collect::<Vec<_>>();
            assert_close(&numbers(gain_sums.to_vec()?), &single(expected_gain), 1e-5);
            assert_close(&numbers(bias_sums.to_vec()?), &single(expected_bias), 1e-5);
        }
        Ok(())
    })
}

/// Several rows have one id, and one id is no row.
#[test]
fn embedding() -> Result<()> {
    let (rows, columns) = (10, 300);
    let table = noise(rows * columns, 16);
    let ids = [3, 0, 9, 3, 10, 3];
    on_device(|kernels, stream| {
        let device_table = DeviceBuffer::from_slice(stream, &vectors(&table))?;
        let device_ids = DeviceBuffer::from_slice(stream, &ids)?;
        let mut out = DeviceBuffer::uninit(stream, ids.len() * columns / 4)?;
        kernels.embedding.launch(
            stream,
            Blocks::new(ids.len() as u32),
            RowMajor::new(&device_table, rows, columns / 4),
            &device_ids,
            RowMajor::new(&mut out, ids.len(), columns / 4),
        )?;
        let out = numbers(out.to_vec()?);
        for (id, out) in ids.iter().zip(out.chunks(columns)) {
            match table.chunks(columns).nth(*id as usize) {
                Some(row) => assert_eq!(out, row),
                None => assert_eq!(out, vec![0.0; columns]),
            }
        }
        // Integers, so that their sums do not depend on the order.
        let gradient: Vec<f32> = (0..ids.len() * columns).map(|i| (i % 17) as f32).collect();
        let device_gradient = DeviceBuffer::from_slice(stream, &gradient)?;
        let mut sums = DeviceBuffer::zeroed(stream, rows * columns)?;
        kernels.embedding_backward.launch(
            stream,
            Blocks::new(ids.len() as u32),
            RowMajor::new(&device_gradient, ids.len(), columns),
            &device_ids,
            &mut sums,
        )?;
        let mut expected = vec![0.0; rows * columns];
        for (id, gradient) in ids.iter().zip(gradient.chunks(columns)) {
            if let Some(row) = expected.chunks_mut(columns).nth(*id as usize) {
                for (sum, gradient) in row.iter_mut().zip(gradient) {
                    *sum += gradient;
                }
            }
        }
        assert_eq!(sums.to_vec()?, expected);
        Ok(())
    })
}
