use curium_driver::Result;
use curium_kernel::U32x4;
use curium_kernel::host::{Blocks, RowMajor};
use curium_memory::DeviceBuffer;

use super::{assert_close, noise};
use crate::common::on_device;

/// Returns numbers that bfloat16 represents, and their groups of eight.
fn bf16(len: usize, seed: u64) -> (Vec<f32>, Vec<U32x4>) {
    let x: Vec<f32> = noise(len, seed)
        .into_iter()
        .map(|x| f32::from_bits(x.to_bits() & 0xffff_0000))
        .collect();
    let pair = |x: &[f32]| x[0].to_bits() >> 16 | x[1].to_bits();
    let groups = x
        .chunks(8)
        .map(|x| U32x4::new(pair(x), pair(&x[2..]), pair(&x[4..]), pair(&x[6..])))
        .collect();
    (x, groups)
}

#[test]
fn gemm_bf16() -> Result<()> {
    on_device(|kernels, stream| {
        for (rows, columns, inner) in [(1, 8, 8), (128, 128, 32), (129, 136, 40), (100, 264, 104)] {
            let (a, a_groups) = bf16(rows * inner, 20);
            let (b, b_groups) = bf16(inner * columns, 21);
            let device_a = DeviceBuffer::from_slice(stream, &a_groups)?;
            let device_b = DeviceBuffer::from_slice(stream, &b_groups)?;
            let mut c = DeviceBuffer::uninit(stream, rows * columns / 2)?;
            kernels.gemm_bf16.launch(
                stream,
                Blocks::new((columns.div_ceil(128) as u32, rows.div_ceil(128) as u32)),
                RowMajor::new(&device_a, rows, inner / 8),
                RowMajor::new(&device_b, inner, columns / 8),
                RowMajor::new(&mut c, rows, columns / 2),
            )?;
            let c: Vec<f32> = c.to_vec()?.into_iter().flat_map(|c| [c.x, c.y]).collect();
            let expected: Vec<f32> = (0..rows * columns)
                .map(|i| {
                    (0..inner)
                        .map(|k| a[i / columns * inner + k] * b[k * columns + i % columns])
                        .sum()
                })
                .collect();
            assert_close(&c, &expected, 1e-5);
        }
        Ok(())
    })
}
