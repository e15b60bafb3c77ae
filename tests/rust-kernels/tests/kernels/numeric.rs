use curium_driver::Result;
use curium_kernel::host::{Blocks, Threads};
use curium_kernel::{F32x4, F64x2, Philox, U32x4};
use curium_memory::DeviceBuffer;

use super::{assert_close, download, integers, noise, output, upload};
use crate::common::on_device;

/// The order of additions is the same in each launch, and `finished` is ready for the next one.
#[test]
fn sum_f64() -> Result<()> {
    on_device(|kernels, stream| {
        for (len, blocks) in [
            (0, 1),
            (1, 1),
            (2, 3),
            (2047, 2),
            (2048, 1),
            (2049, 4),
            (13_001, 3),
        ] {
            let x: Vec<f64> = noise(len, 1).into_iter().map(f64::from).collect();
            let pairs: Vec<F64x2> = x
                .as_chunks::<2>()
                .0
                .iter()
                .map(|x| F64x2::new(x[0], x[1]))
                .collect();
            let rest = &x[2 * pairs.len()..];
            let device_pairs = upload(stream, &pairs)?;
            let device_rest = upload(stream, rest)?;
            let mut sums = DeviceBuffer::zeroed(stream, blocks as usize)?;
            let mut finished = DeviceBuffer::zeroed(stream, 1)?;
            let mut results = Vec::new();
            for _ in 0..2 {
                let mut total = DeviceBuffer::zeroed(stream, 1)?;
                kernels.sum_f64.launch(
                    stream,
                    Blocks::new(blocks),
                    device_pairs.slice(..pairs.len())?,
                    device_rest.slice(..rest.len())?,
                    &mut sums,
                    &mut finished,
                    &mut total,
                )?;
                results.push(total.to_vec()?[0]);
            }
            let expected: f64 = x.iter().sum();
            assert!((results[0] - expected).abs() <= 1e-11, "{len}: {results:?}");
            assert_eq!(results[0].to_bits(), results[1].to_bits());
        }
        Ok(())
    })
}

/// Parts wait for earlier parts, which can start later than they do.
#[test]
fn prefix_sum() -> Result<()> {
    on_device(|kernels, stream| {
        for vectors in [
            0,
            1,
            255,
            256,
            257,
            1023,
            1024,
            1025,
            3 * 1024,
            40 * 1024 + 77,
        ] {
            let x = integers(4 * vectors, 2);
            let device_x: Vec<U32x4> = x
                .as_chunks::<4>()
                .0
                .iter()
                .map(|x| U32x4::new(x[0], x[1], x[2], x[3]))
                .collect();
            let device_x = upload(stream, &device_x)?;
            let parts = vectors.div_ceil(1024);
            let mut states = output(stream, parts)?;
            let mut y = output(stream, vectors)?;
            kernels.prefix_sum.launch(
                stream,
                Blocks::new(parts as u32),
                device_x.slice(..vectors)?,
                states.slice_mut(..parts)?,
                y.slice_mut(..vectors)?,
            )?;
            let mut sum = 0_u32;
            for (i, (x, y)) in x
                .as_chunks::<4>()
                .0
                .iter()
                .zip(download(&y, vectors)?)
                .enumerate()
            {
                for (x, y) in x.iter().zip([y.x, y.y, y.z, y.w]) {
                    assert_eq!(y, sum, "vector {i} of {vectors}");
                    sum = sum.wrapping_add(*x);
                }
            }
        }
        Ok(())
    })
}

/// The numbers do not depend on the grid.
#[test]
fn random_numbers() -> Result<()> {
    let seed = 0x0123_4567_89ab_cdef;
    on_device(|kernels, stream| {
        for (vectors, threads) in [(0, 1), (1, 1), (1000, 300), (1025, 1025)] {
            let mut uniform = output(stream, vectors)?;
            let mut normal = output(stream, vectors)?;
            kernels.random_uniform.launch(
                stream,
                Threads(threads),
                seed,
                uniform.slice_mut(..vectors)?,
            )?;
            kernels.random_normal.launch(
                stream,
                Threads(threads),
                seed,
                normal.slice_mut(..vectors)?,
            )?;
            let normal = download(&normal, vectors)?;
            for (i, v) in download(&uniform, vectors)?.into_iter().enumerate() {
                let numbers = Philox::generate([0x89ab_cdef, 0x0123_4567], [i as u32, 0, 0, 0]);
                let expected = numbers.map(|n| (n >> 8) as f32 / 16_777_216.0);
                assert_eq!([v.x, v.y, v.z, v.w], expected);
                let [a, b, c, d] = numbers.map(|n| f64::from(n >> 8) / 16_777_216.0);
                let box_muller = |u: f64, v: f64| {
                    let radius = (-2.0 * (u + 1.0 / 16_777_216.0).ln()).sqrt();
                    let angle = std::f64::consts::TAU * v;
                    [(radius * angle.cos()) as f32, (radius * angle.sin()) as f32]
                };
                let expected = [box_muller(a, b), box_muller(c, d)].concat();
                let v = normal[i];
                assert_close(&[v.x, v.y, v.z, v.w], &expected, 1e-4);
            }
        }
        Ok(())
    })
}

#[test]
fn small_matmul() -> Result<()> {
    on_device(|kernels, stream| {
        for matrices in [0, 1, 7, 8, 9, 20] {
            let a = noise(256 * matrices, 3);
            let b = noise(256 * matrices, 4);
            let vectors = |x: &[f32]| -> Vec<F32x4> {
                x.chunks(4)
                    .map(|x| F32x4::new(x[0], x[1], x[2], x[3]))
                    .collect()
            };
            let len = 64 * matrices;
            let device_a = upload(stream, &vectors(&a))?;
            let device_b = upload(stream, &vectors(&b))?;
            let mut c = output(stream, len)?;
            kernels.small_matmul.launch(
                stream,
                Blocks::new(matrices.div_ceil(8) as u32),
                device_a.slice(..len)?,
                device_b.slice(..len)?,
                c.slice_mut(..len)?,
            )?;
            let c: Vec<f32> = download(&c, len)?
                .into_iter()
                .flat_map(|c| [c.x, c.y, c.z, c.w])
                .collect();
            let mut expected = Vec::new();
            for (a, b) in a.chunks(256).zip(b.chunks(256)) {
                for i in 0..256 {
                    expected.push(
                        (0..16)
                            .map(|k| a[i / 16 * 16 + k] * b[16 * k + i % 16])
                            .sum(),
                    );
                }
            }
            assert_close(&c, &expected, 1e-5);
        }
        Ok(())
    })
}
