//! The algorithms, on the simulator with all checks, against references on the host.

use curium_driver::Result;
use curium_kernel::F32x4;
use curium_kernel::host::{Blocks, RowMajor, Threads};
use curium_memory::DeviceBuffer;
use curium_test_kernels::algorithms::View;

use crate::common::on_device;

/// Returns numbers from -0.5 to 0.5.
fn noise(len: usize, seed: u64) -> Vec<f32> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..len).map(|_| random.f32() - 0.5).collect()
}

#[track_caller]
fn assert_close(actual: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(actual.len(), expected.len());
    for (index, (actual, expected)) in actual.iter().zip(expected).enumerate() {
        assert!(
            (actual - expected).abs() <= tolerance * expected.abs().max(1.0),
            "element {index} is {actual} and not {expected}"
        );
    }
}

/// The last elements are in a block that is not full. Kernels in Rust round as the host does.
#[test]
fn saxpy() -> Result<()> {
    let x = noise(1000, 1);
    let y = noise(1000, 2);
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let mut device_y = DeviceBuffer::from_slice(stream, &y)?;
        kernels
            .saxpy
            .launch(stream, x.len(), 2.5, &device_x, &mut device_y)?;
        let expected: Vec<f32> = x
            .iter()
            .zip(&y)
            .map(|(x, y)| 2.5_f32.mul_add(*x, *y))
            .collect();
        assert_eq!(device_y.to_vec()?, expected);
        Ok(())
    })
}

#[test]
fn block_sum() -> Result<()> {
    let x: Vec<f32> = (0..10_000_u16).map(|i| f32::from(i % 7)).collect();
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let mut total = DeviceBuffer::zeroed(stream, 1)?;
        kernels
            .block_sum
            .launch(stream, Blocks::new(4), &device_x, &mut total)?;
        assert_eq!(total.to_vec()?, [x.iter().sum::<f32>()]);
        Ok(())
    })
}

/// The sizes are no multiples of a tile.
#[test]
fn matmul() -> Result<()> {
    let (rows, columns, inner) = (70, 90, 37);
    let a = noise(rows * inner, 3);
    let b = noise(inner * columns, 4);
    on_device(|kernels, stream| {
        let device_a = DeviceBuffer::from_slice(stream, &a)?;
        let device_b = DeviceBuffer::from_slice(stream, &b)?;
        let mut c = DeviceBuffer::uninit(stream, rows * columns)?;
        kernels.matmul.launch(
            stream,
            Blocks::new((2, 2)),
            RowMajor::new(&device_a, rows, inner),
            RowMajor::new(&device_b, inner, columns),
            RowMajor::new(&mut c, rows, columns),
        )?;
        let element = |i: usize| {
            (0..inner)
                .map(|k| a[i / columns * inner + k] * b[k * columns + i % columns])
                .sum()
        };
        let expected: Vec<f32> = (0..rows * columns).map(element).collect();
        assert_close(&c.to_vec()?, &expected, 1e-5);
        let mut c = DeviceBuffer::uninit(stream, rows * columns)?;
        kernels.matmul_async.launch(
            stream,
            Blocks::new((2, 2)),
            RowMajor::new(&device_a, rows, inner),
            RowMajor::new(&device_b, inner, columns),
            RowMajor::new(&mut c, rows, columns),
        )?;
        assert_close(&c.to_vec()?, &expected, 1e-5);
        Ok(())
    })
}

#[test]
fn histogram() -> Result<()> {
    let data: Vec<u8> = (0..5000_u32).map(|i| (i * i % 251) as u8).collect();
    let mut expected = vec![0_u32; 256];
    for byte in &data {
        expected[usize::from(*byte)] += 1;
    }
    on_device(|kernels, stream| {
        let device_data = DeviceBuffer::from_slice(stream, &data)?;
        let mut total = DeviceBuffer::zeroed(stream, 256)?;
        kernels
            .histogram
            .launch(stream, Blocks::new(3), &device_data, &mut total)?;
        assert_eq!(total.to_vec()?, expected);
        Ok(())
    })
}

#[test]
fn softmax_and_layer_norm() -> Result<()> {
    let (rows, columns) = (5, 700);
    let mut x: Vec<f32> = noise(rows * columns, 5).iter().map(|x| 10.0 * x).collect();
    // Without the right maximum, the exponential function overflows.
    x[255] = 200.0;
    let gain = noise(columns, 6);
    let bias = noise(columns, 7);
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let device_gain = DeviceBuffer::from_slice(stream, &gain)?;
        let device_bias = DeviceBuffer::from_slice(stream, &bias)?;
        let mut softmax = DeviceBuffer::uninit(stream, rows * columns)?;
        let mut norm = DeviceBuffer::uninit(stream, rows * columns)?;
        // More blocks than rows: the last one returns early.
        let grid = Blocks::new(rows as u32 + 1);
        let matrix = RowMajor::new(&device_x, rows, columns);
        kernels.softmax.launch(
            stream,
            grid,
            matrix,
            RowMajor::new(&mut softmax, rows, columns),
        )?;
        let output = RowMajor::new(&mut norm, rows, columns);
        kernels.layer_norm.launch(
            stream,
            grid,
            matrix,
            &device_gain,
            &device_bias,
            1e-5,
            output,
        )?;
        let softmax = softmax.to_vec()?;
        let norm = norm.to_vec()?;
        for row in 0..rows {
            let range = row * columns..(row + 1) * columns;
            let x: Vec<f64> = x[range.clone()].iter().map(|x| f64::from(*x)).collect();
            let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = x.iter().map(|x| (x - max).exp()).sum();
            let expected: Vec<f32> = x.iter().map(|x| ((x - max).exp() / sum) as f32).collect();
            assert_close(&softmax[range.clone()], &expected, 1e-6);
            let mean = x.iter().sum::<f64>() / columns as f64;
            let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / columns as f64;
            let normalized = x.iter().map(|x| (x - mean) / (variance + 1e-5).sqrt());
            let expected: Vec<f32> = normalized
                .zip(gain.iter().zip(&bias))
                .map(|(x, (gain, bias))| (x * f64::from(*gain) + f64::from(*bias)) as f32)
                .collect();
            assert_close(&norm[range], &expected, 1e-5);
        }
        Ok(())
    })
}

#[test]
fn scan() -> Result<()> {
    let x: Vec<u32> = (0..2500).map(|i| i * 7 % 13).collect();
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let mut sums = DeviceBuffer::uninit(stream, x.len())?;
        let mut totals = DeviceBuffer::uninit(stream, 3)?;
        kernels
            .scan
            .launch(stream, Blocks::new(3), &device_x, &mut sums, &mut totals)?;
        let sums = sums.to_vec()?;
        let totals = totals.to_vec()?;
        for (part, (x, sums)) in x.chunks(1024).zip(sums.chunks(1024)).enumerate() {
            let mut sum = 0;
            for (x, before) in x.iter().zip(sums) {
                assert_eq!(*before, sum);
                sum += x;
            }
            assert_eq!(totals[part], sum);
        }
        Ok(())
    })
}

#[test]
fn sort() -> Result<()> {
    let x: Vec<u32> = (0..2048_u32)
        .map(|i| i.wrapping_mul(2_654_435_761))
        .collect();
    let mut expected = x.clone();
    for part in expected.chunks_mut(1024) {
        part.sort_unstable();
    }
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let mut y = DeviceBuffer::uninit(stream, x.len())?;
        kernels.sort.launch(
            stream,
            Blocks::new(2),
            &device_x,
            RowMajor::new(&mut y, 2, 1024),
        )?;
        assert_eq!(y.to_vec()?, expected);
        Ok(())
    })
}

#[test]
fn n_body() -> Result<()> {
    let bodies: Vec<F32x4> = noise(4 * 300, 8)
        .chunks(4)
        .map(|c| F32x4::new(c[0], c[1], c[2], c[3].abs()))
        .collect();
    on_device(|kernels, stream| {
        let device_bodies = DeviceBuffer::from_slice(stream, &bodies)?;
        let mut accelerations = DeviceBuffer::uninit(stream, bodies.len())?;
        kernels.n_body.launch(
            stream,
            Blocks::new(2),
            &device_bodies,
            0.01,
            &mut accelerations,
        )?;
        for (own, acceleration) in bodies.iter().zip(accelerations.to_vec()?) {
            let mut expected = [0.0_f64; 3];
            for other in &bodies {
                let d = [other.x - own.x, other.y - own.y, other.z - own.z].map(f64::from);
                let square = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + 0.01;
                let factor = f64::from(other.w) / square.powf(1.5);
                for (sum, d) in expected.iter_mut().zip(d) {
                    *sum += d * factor;
                }
            }
            let actual = [acceleration.x, acceleration.y, acceleration.z];
            assert_close(&actual, &expected.map(|sum| sum as f32), 1e-4);
        }
        Ok(())
    })
}

#[test]
fn images() -> Result<()> {
    let (rows, columns) = (45, 70);
    let x = noise(rows * columns, 9);
    let view = View {
        left: -2.0,
        top: -1.0,
        step: 0.04,
        limit: 50,
    };
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let matrix = RowMajor::new(&device_x, rows, columns);
        let mut image = DeviceBuffer::uninit(stream, rows * columns)?;
        kernels.mandelbrot.launch(
            stream,
            Blocks::new((5, 3)),
            view,
            RowMajor::new(&mut image, rows, columns),
        )?;
        let mut heat = DeviceBuffer::uninit(stream, rows * columns)?;
        kernels.stencil.launch(
            stream,
            Blocks::new((3, 6)),
            matrix,
            0.1,
            RowMajor::new(&mut heat, rows, columns),
        )?;
        let mut transposed = DeviceBuffer::uninit(stream, rows * columns)?;
        kernels.transpose.launch(
            stream,
            Blocks::new((2, 3)),
            matrix,
            RowMajor::new(&mut transposed, columns, rows),
        )?;
        let image = image.to_vec()?;
        assert!(
            image.contains(&50) && image.iter().any(|count| *count < 10),
            "{image:?}"
        );
        let heat = heat.to_vec()?;
        let transposed = transposed.to_vec()?;
        for row in 0..rows {
            for column in 0..columns {
                let i = row * columns + column;
                assert_eq!(transposed[column * rows + row], x[i]);
                let is_inside = row > 0 && row + 1 < rows && column > 0 && column + 1 < columns;
                let neighbors = || x[i - columns] + x[i + columns] + x[i - 1] + x[i + 1];
                let expected = if is_inside {
                    x[i] + 0.1 * (neighbors() - 4.0 * x[i])
                } else {
                    x[i]
                };
                assert_close(&[heat[i]], &[expected], 1e-6);
            }
        }
        Ok(())
    })
}

/// Rounds to bfloat16.
fn bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

fn from_bf16(x: u16) -> f32 {
    f32::from_bits(u32::from(x) << 16)
}

#[test]
fn attention() -> Result<()> {
    let (queries, keys) = (40, 48);
    let half = |len: usize, seed: u64, factor: f32| {
        noise(len * 64, seed)
            .into_iter()
            .map(|x| bf16(factor * x))
            .collect::<Vec<_>>()
    };
    let pairs = |x: &[u16]| {
        x.chunks(2)
            .map(|pair| u32::from(pair[0]) | u32::from(pair[1]) << 16)
            .collect::<Vec<_>>()
    };
    // The weights of the keys differ by orders of magnitude, so that a wrong sum of them is seen.
    let q = half(queries, 10, 16.0);
    let k = half(keys, 11, 1.0);
    let v = half(keys, 12, 1.0);
    on_device(|kernels, stream| {
        let device_q = DeviceBuffer::from_slice(stream, &pairs(&q))?;
        let device_k = DeviceBuffer::from_slice(stream, &pairs(&k))?;
        let device_v = DeviceBuffer::from_slice(stream, &v)?;
        let mut out = DeviceBuffer::zeroed(stream, queries * 64)?;
        kernels.attention.launch(
            stream,
            Blocks::new(1),
            &device_q,
            &device_k,
            &device_v,
            0.125,
            &mut out,
        )?;
        let out = out.to_vec()?;
        for query in 0..queries {
            let score = |key: usize| {
                let products =
                    (0..64).map(|i| from_bf16(q[query * 64 + i]) * from_bf16(k[key * 64 + i]));
                products.sum::<f32>() * 0.125
            };
            let weights: Vec<f32> = (0..keys).map(|key| score(key).exp()).collect();
            let total: f32 = weights.iter().sum();
            for column in 0..64 {
                let sum: f32 = (0..keys)
                    .map(|key| weights[key] * from_bf16(v[key * 64 + column]))
                    .sum();
                assert_close(&[out[query * 64 + column]], &[sum / total], 5e-3);
            }
        }
        Ok(())
    })
}

/// An element-wise launch without threads enqueues nothing.
#[test]
fn empty_launch() -> Result<()> {
    on_device(|kernels, stream| {
        let x = DeviceBuffer::<f32>::zeroed(stream, 1)?;
        let mut y = DeviceBuffer::<f32>::zeroed(stream, 1)?;
        kernels.saxpy.launch(stream, Threads(0), 1.0, &x, &mut y)?;
        kernels
            .block_sum
            .launch(stream, Blocks::new(0), &x, &mut y)?;
        assert_eq!(y.to_vec()?, [0.0]);
        Ok(())
    })
}
