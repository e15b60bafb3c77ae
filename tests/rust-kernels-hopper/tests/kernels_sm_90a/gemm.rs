//! Matrix products by TMA and `wgmma`.

use curium_driver::Result;
use curium_kernel::host::{Blocks, RowMajor};
use curium_memory::DeviceBuffer;

use super::on_device;

/// Small integers, whose products and sums are exact.
fn numbers(count: usize, seed: usize) -> Vec<f32> {
    (0..count)
        .map(|i| ((i * 31 + seed * 17) % 7) as f32 - 3.0)
        .collect()
}

/// Returns the bits of bfloat16 numbers.
fn bf16(numbers: &[f32]) -> Vec<u16> {
    let upper = |number: &f32| (number.to_bits() >> 16) as u16;
    numbers.iter().map(upper).collect()
}

/// Returns the bits of binary16 numbers, which are integers from -4 to 4.
fn f16(numbers: &[f32]) -> Vec<u16> {
    let bits = |number: &f32| {
        let sign = u16::from(number.is_sign_negative()) << 15;
        sign | [0, 0x3c00, 0x4000, 0x4200, 0x4400][number.abs() as usize]
    };
    numbers.iter().map(bits).collect()
}

/// Returns a * bᵀ.
fn product(a: &[f32], b: &[f32], inner: usize) -> Vec<f32> {
    let mut c = Vec::new();
    for a in a.chunks(inner) {
        for b in b.chunks(inner) {
            c.push(a.iter().zip(b).map(|(a, b)| a * b).sum());
        }
    }
    c
}

/// Sizes that are no multiples of a tile, and rings with fewer and more stages than steps.
#[test]
fn product_of_bfloat16_matrices() -> Result<()> {
    for (rows, columns, inner, stages) in [(128, 128, 256, 4), (200, 136, 328, 3), (72, 300, 64, 2)]
    {
        let a = numbers(rows * inner, 1);
        let b = numbers(columns * inner, 2);
        let expected = product(&a, &b, inner);
        on_device(|kernels, stream| {
            let device_a = DeviceBuffer::from_slice(stream, &bf16(&a))?;
            let device_b = DeviceBuffer::from_slice(stream, &bf16(&b))?;
            let mut c = DeviceBuffer::uninit(stream, rows * columns)?;
            kernels.gemm_128x128.launch(
                stream,
                Blocks::new((columns.div_ceil(128) as u32, rows.div_ceil(128) as u32)),
                stages,
                RowMajor::new(&device_a, rows, inner),
                RowMajor::new(&device_b, columns, inner),
                RowMajor::new(&mut c, rows, columns),
            )?;
            compare(&c.to_vec()?, &expected);
            Ok(())
        })?;
    }
    Ok(())
}

/// Compares with the exact product, rounded to bfloat16.
#[track_caller]
fn compare(bits: &[u16], expected: &[f32]) {
    for (index, (bits, expected)) in bits.iter().zip(expected).enumerate() {
        let number = f32::from_bits(u32::from(*bits) << 16);
        let error = (number - expected).abs();
        assert!(
            error <= expected.abs() / 256.0,
            "element {index}: {number}, expected {expected}"
        );
    }
}

#[test]
fn product_in_wide_blocks() -> Result<()> {
    let (rows, columns, inner) = (136, 264, 192);
    let a = numbers(rows * inner, 3);
    let b = numbers(columns * inner, 4);
    let expected = product(&a, &b, inner);
    on_device(|kernels, stream| {
        let device_a = DeviceBuffer::from_slice(stream, &bf16(&a))?;
        let device_b = DeviceBuffer::from_slice(stream, &bf16(&b))?;
        let mut c = DeviceBuffer::uninit(stream, rows * columns)?;
        kernels.gemm_128x256.launch(
            stream,
            Blocks::new((2, 2)),
            4,
            RowMajor::new(&device_a, rows, inner),
            RowMajor::new(&device_b, columns, inner),
            RowMajor::new(&mut c, rows, columns),
        )?;
        compare(&c.to_vec()?, &expected);
        Ok(())
    })
}

/// The accumulators of one warpgroup, in single precision. Odd numbers of columns are stored one by
/// one.
#[test]
fn product_of_binary16_matrices() -> Result<()> {
    for columns in [64, 61] {
        let (rows, inner) = (80, 136);
        let a = numbers(rows * inner, 5);
        let b = numbers(columns * inner, 6);
        let expected: Vec<f32> = product(&a, &b, inner).iter().map(|c| c.max(0.0)).collect();
        on_device(|kernels, stream| {
            let device_a = DeviceBuffer::from_slice(stream, &f16(&a))?;
            let device_b = DeviceBuffer::from_slice(stream, &f16(&b))?;
            let mut c = DeviceBuffer::uninit(stream, rows * columns)?;
            kernels.gemm_relu.launch(
                stream,
                Blocks::new((1, 2)),
                2,
                RowMajor::new(&device_a, rows, inner),
                RowMajor::new(&device_b, columns, inner),
                RowMajor::new(&mut c, rows, columns),
            )?;
            assert_eq!(c.to_vec()?, expected);
            Ok(())
        })?;
    }
    Ok(())
}

/// The first factor is in registers.
#[test]
fn product_of_fragments() -> Result<()> {
    let (rows, columns) = (150, 100);
    let x = numbers(rows * 64, 7);
    let b = numbers(columns * 64, 8);
    let a: Vec<f32> = x.iter().map(|x| x.max(0.0)).collect();
    let expected = product(&a, &b, 64);
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let device_b = DeviceBuffer::from_slice(stream, &bf16(&b))?;
        let mut c = DeviceBuffer::uninit(stream, rows * columns)?;
        kernels.multiply_relu.launch(
            stream,
            Blocks::new((2, 2)),
            2,
            RowMajor::new(&device_x, rows, 64),
            RowMajor::new(&device_b, columns, 64),
            RowMajor::new(&mut c, rows, columns),
        )?;
        assert_eq!(c.to_vec()?, expected);
        Ok(())
    })
}
