//! Programs that try to break the rules of the model, on the simulator with all checks.

use std::num::NonZeroU32;

use curium_driver::Result;
use curium_kernel::F32x4;
use curium_kernel::host::{Blocks, RowMajor};
use curium_memory::DeviceBuffer;
use curium_test_kernels::soundness::{OPERATIONS, Packed, TEXT, operations};

use crate::common::on_device;

/// The device computes what the host computes: casts, wide integers, floating-point numbers, slices
/// and texts.
#[test]
fn operations_match_the_host() -> Result<()> {
    let special = [
        0,
        1,
        2,
        3,
        100,
        u64::MAX,
        1 << 63,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0x8000_0000,
        0x7ff0 << 48,
        0xfff0 << 48,
        0x3ff0 << 48,
        0x3f80_0000,
        0x4f80_0000,
        0x4b00_0001,
        0x41ef << 48,
        0x5f00_0000,
        0xdf00_0000,
        0x42ff_0000,
        0x4300_0000,
    ];
    let mut pairs = Vec::new();
    for a in special {
        pairs.extend(special.map(|b| (a, b)));
    }
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..200 {
        pairs.push((
            random.u64(..) >> random.u32(..64),
            random.u64(..) >> random.u32(..64),
        ));
    }
    let (a, b): (Vec<u64>, Vec<u64>) = pairs.into_iter().unzip();
    on_device(|kernels, stream| {
        let device_a = DeviceBuffer::from_slice(stream, &a)?;
        let device_b = DeviceBuffer::from_slice(stream, &b)?;
        let mut y = DeviceBuffer::<[u64; OPERATIONS]>::zeroed(stream, a.len())?;
        kernels
            .operations_of_core
            .launch(stream, a.len(), &device_a, &device_b, &mut y)?;
        for (i, y) in y.to_vec()?.into_iter().enumerate() {
            for (operation, (y, expected)) in y.into_iter().zip(operations(a[i], b[i])).enumerate()
            {
                assert_eq!(
                    y, expected,
                    "operation {operation} of {:#x} and {:#x}",
                    a[i], b[i]
                );
            }
        }
        Ok(())
    })
}

/// Quotients that are large, infinite or not a number.
#[test]
fn remainders() -> Result<()> {
    let x = [
        1e10_f32,
        7.5,
        -7.5,
        1e30,
        5.0,
        3e38,
        1e-45,
        -3e38,
        0.0,
        1.0,
        f32::INFINITY,
    ];
    let divisors = [
        3.0_f32,
        2.0,
        2.0,
        0.1,
        f32::INFINITY,
        1e-38,
        3e-45,
        1e-45,
        5.0,
        0.0,
        2.0,
    ];
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let device_divisors = DeviceBuffer::from_slice(stream, &divisors)?;
        let mut single = DeviceBuffer::<f32>::zeroed(stream, x.len())?;
        let mut double = DeviceBuffer::<f64>::zeroed(stream, x.len())?;
        kernels.remainders.launch(
            stream,
            x.len(),
            &device_x,
            &device_divisors,
            &mut single,
            &mut double,
        )?;
        let single = single.to_vec()?;
        let double = double.to_vec()?;
        for i in 0..x.len() {
            let expected = x[i] % divisors[i];
            let is_same = single[i].to_bits() == expected.to_bits();
            assert!(
                is_same || single[i].is_nan() && expected.is_nan(),
                "{} % {} is {}, not {}",
                x[i],
                divisors[i],
                expected,
                single[i]
            );
            let expected = f64::from(x[i]) % f64::from(divisors[i]);
            let is_same = double[i].to_bits() == expected.to_bits();
            assert!(
                is_same || double[i].is_nan() && expected.is_nan(),
                "{expected}, {}",
                double[i]
            );
        }
        Ok(())
    })
}

#[test]
fn branch_on_a_remainder() -> Result<()> {
    on_device(|kernels, stream| {
        for (number, factor) in [(1e10_f32, 2), (5.0, 1), (4.0, 2)] {
            let x = DeviceBuffer::from_slice(stream, &[number])?;
            let mut y = DeviceBuffer::zeroed(stream, 64)?;
            kernels
                .branch_on_a_remainder
                .launch(stream, Blocks::new(1), &x, &mut y)?;
            let mut expected: Vec<u32> = (0..64).map(|i| factor * (63 - i)).collect();
            expected[0] += u32::from(number == 1e10);
            assert_eq!(y.to_vec()?, expected);
        }
        Ok(())
    })
}

#[test]
fn drops_in_code_of_the_block() -> Result<()> {
    on_device(|kernels, stream| {
        let mut y = DeviceBuffer::zeroed(stream, 64)?;
        kernels
            .drops_in_code_of_the_block
            .launch(stream, Blocks::new(1), &mut y)?;
        let own = |i: u32| {
            if i.is_multiple_of(3) {
                1
            } else {
                1 + (0..i).sum::<u32>()
            }
        };
        let expected: Vec<u32> = (0..64).map(|i| own(i) + 63 - i).collect();
        assert_eq!(y.to_vec()?, expected);
        Ok(())
    })
}

#[test]
fn memory_without_elements() -> Result<()> {
    on_device(|kernels, stream| {
        let x = DeviceBuffer::<u32>::zeroed(stream, 1)?;
        let mut row = DeviceBuffer::<u32>::zeroed(stream, 1)?;
        let mut y = DeviceBuffer::<u32>::zeroed(stream, 1)?;
        for (rows, columns, expected) in [(1, 0, 0), (0, 7, 1100)] {
            kernels.empty_memory.launch(
                stream,
                Blocks::new(1),
                RowMajor::new(row.slice_mut(1..)?, rows, columns),
                RowMajor::new(x.slice(0..0)?, rows, columns),
                x.slice(1..)?,
                &mut y,
            )?;
            assert_eq!(y.to_vec()?, [expected]);
        }
        kernels
            .empty_slices
            .launch(stream, 1, x.slice(1..)?, &mut y)?;
        assert_eq!(y.to_vec()?, [1]);
        Ok(())
    })
}

#[test]
fn niches() -> Result<()> {
    let x: Vec<Option<NonZeroU32>> = (0..32).map(NonZeroU32::new).collect();
    on_device(|kernels, stream| {
        let x = DeviceBuffer::from_slice(stream, &x)?;
        let mut y = DeviceBuffer::zeroed(stream, 32)?;
        kernels.niches.launch(stream, Blocks::new(1), &x, &mut y)?;
        let expected: Vec<Option<NonZeroU32>> = (0..32)
            .map(|i| NonZeroU32::new(if i == 31 { 1000 } else { 32 - i }))
            .collect();
        assert_eq!(y.to_vec()?, expected);
        Ok(())
    })
}

#[test]
fn values_of_odd_sizes() -> Result<()> {
    on_device(|kernels, stream| {
        let mut y = DeviceBuffer::<u64>::zeroed(stream, 1)?;
        let bytes: [u8; 17] = std::array::from_fn(|i| 3 * i as u8);
        kernels.values_of_odd_sizes.launch(
            stream,
            1,
            bytes,
            [300, 4, 65_535],
            [true, false, true],
            [[1, 2, 3], [4, 5, 250]],
            Packed {
                first: 3,
                rest: 0xdead_beef,
            },
            F32x4::new(0.0, 0.0, 0.0, 9.0),
            &mut y,
        )?;
        let mut numbers: Vec<u64> = bytes.map(u64::from).to_vec();
        numbers.extend([
            1,
            2,
            3,
            4,
            5,
            250,
            300,
            4,
            65_535,
            1,
            0,
            1,
            3,
            0xdead_beef,
            9,
        ]);
        let expected = numbers
            .into_iter()
            .fold(0, |hash: u64, x| hash.wrapping_mul(31).wrapping_add(x));
        assert_eq!(y.to_vec()?, [expected]);
        Ok(())
    })
}

/// One block of the kernel `recursion`, step by step.
fn rotate_and_recurse(tile: &mut [u32; 64], depth: u32) {
    if depth == 0 {
        return;
    }
    let old = *tile;
    for (i, element) in tile.iter_mut().enumerate() {
        let other = old[if i % 2 == 1 { i ^ 1 } else { 63 - i }];
        *element = element.wrapping_mul(3).wrapping_add(other);
    }
    rotate_and_recurse(tile, depth - 1);
    if depth.is_multiple_of(2) {
        rotate_and_recurse(tile, depth - 2);
    }
}

#[test]
fn recursion() -> Result<()> {
    on_device(|kernels, stream| {
        let mut y = DeviceBuffer::zeroed(stream, 64)?;
        kernels
            .recursion
            .launch(stream, Blocks::new(1), 5, &mut y)?;
        let mut expected: [u32; 64] = std::array::from_fn(|i| i as u32);
        for depth in [5, 1, 2, 1, 2] {
            rotate_and_recurse(&mut expected, depth);
        }
        assert_eq!(y.to_vec()?, expected);
        Ok(())
    })
}

#[test]
fn texts() -> Result<()> {
    on_device(|kernels, stream| {
        let mut y = DeviceBuffer::zeroed(stream, 2)?;
        kernels.texts.launch(stream, 2, &mut y)?;
        let sum = |text: &str| text.bytes().map(u32::from).sum::<u32>();
        assert_eq!(y.to_vec()?, [sum(TEXT) + 10, sum("\u{7f}\"@\"") + 6]);
        Ok(())
    })
}
