//! The parts of the model, on the simulator with all checks.

use curium_driver::Result;
use curium_kernel::Philox;
use curium_kernel::host::{Blocks, RowMajor};
use curium_memory::DeviceBuffer;

use crate::common::on_device;

#[test]
fn reverse_through_shared_memory() -> Result<()> {
    let x: Vec<u32> = (0..512).collect();
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let mut y = DeviceBuffer::uninit(stream, 512)?;
        kernels
            .reverse
            .launch(stream, Blocks::new(2), &device_x, &mut y)?;
        let expected: Vec<u32> = (0..512).map(|i| i / 256 * 256 + 255 - i % 256).collect();
        assert_eq!(y.to_vec()?, expected);
        let mut y = DeviceBuffer::uninit(stream, 300)?;
        // 100 elements of dynamic shared memory in each block of 64 threads.
        kernels.reverse_dynamic.launch(
            stream,
            Blocks::new(3),
            100,
            &device_x,
            RowMajor::new(&mut y, 3, 100),
        )?;
        let expected: Vec<u32> = (0..300).map(|i| i / 100 * 100 + 99 - i % 100).collect();
        assert_eq!(y.to_vec()?, expected);
        Ok(())
    })
}

#[test]
fn coordinates_in_3d() -> Result<()> {
    on_device(|kernels, stream| {
        let mut index = DeviceBuffer::uninit(stream, 128)?;
        let mut packed = DeviceBuffer::uninit(stream, 128)?;
        kernels
            .coordinates
            .launch(stream, Blocks::new(2), &mut index, &mut packed)?;
        let expected: Vec<u32> = (0..128).map(|i| i % 64).collect();
        assert_eq!(index.to_vec()?, expected);
        let expected: Vec<u32> = expected
            .iter()
            .map(|i| i / 8 * 256 + i / 4 % 2 * 16 + i % 4)
            .collect();
        assert_eq!(packed.to_vec()?, expected);
        Ok(())
    })
}

/// Each element of a grid-stride loop belongs to one thread.
#[test]
fn grid_stride_visits_once() -> Result<()> {
    on_device(|kernels, stream| {
        let mut y = DeviceBuffer::uninit(stream, 1000)?;
        kernels.visitors.launch(stream, 300, &mut y)?;
        // 300 threads are two blocks of 256.
        let expected: Vec<u32> = (0..1000).map(|i| i % 512).collect();
        assert_eq!(y.to_vec()?, expected);
        Ok(())
    })
}

#[test]
fn atomic_operations() -> Result<()> {
    on_device(|kernels, stream| {
        let mut unsigned =
            DeviceBuffer::from_slice(stream, &[0, 0, u32::MAX, 0, u32::MAX, 0, 0, 0, 0])?;
        let mut signed = DeviceBuffer::from_slice(stream, &[0_i64, 0])?;
        let mut float = DeviceBuffer::from_slice(stream, &[0.0_f64])?;
        kernels
            .atomics
            .launch(stream, 512, &mut unsigned, &mut signed, &mut float)?;
        let sum = 511 * 512 / 2;
        let exclusive_or = (0..512).fold(0, |bits, i| bits ^ i);
        let expected = [sum, 511, 0, u32::MAX, !0xff, exclusive_or, 1024, 1, 7];
        assert_eq!(unsigned.to_vec()?, expected);
        assert_eq!(signed.to_vec()?, [-i64::from(sum), -511]);
        assert_eq!(float.to_vec()?, [256.0]);
        Ok(())
    })
}

#[test]
fn warp_operations() -> Result<()> {
    on_device(|kernels, stream| {
        let mut y = DeviceBuffer::uninit(stream, 640)?;
        kernels
            .warp_operations
            .launch(stream, Blocks::new(1), RowMajor::new(&mut y, 1, 640))?;
        let y = y.to_vec()?;
        for i in 0..64_u32 {
            let lane = i % 32;
            let first = i - lane;
            let expected = [
                first,
                (first..first + 32).sum(),
                first + 31,
                0x5555_5555,
                first + (lane ^ 5),
                if lane < 3 { i } else { i - 3 },
                if lane > 28 { i } else { i + 3 },
                first + 31 - lane,
                (first..=i).sum(),
                1,
            ];
            for (operation, expected) in expected.into_iter().enumerate() {
                assert_eq!(
                    y[64 * operation + i as usize],
                    expected,
                    "operation {operation}, thread {i}"
                );
            }
        }
        Ok(())
    })
}

#[test]
fn votes_of_a_block() -> Result<()> {
    on_device(|kernels, stream| {
        for (first, end, expected) in [
            (0, 0, [0, 0, 0]),
            (8, 40, [1, 0, 32]),
            (0, 40, [1, 0, 40]),
            (0, 96, [1, 1, 96]),
        ] {
            let mut y = DeviceBuffer::uninit(stream, 1)?;
            kernels
                .votes
                .launch(stream, Blocks::new(1), first, end, &mut y)?;
            assert_eq!(y.to_vec()?, [expected]);
        }
        Ok(())
    })
}

/// Numbers of 64 bits, and a number of warps that is not a power of two.
#[test]
fn reductions_of_three_warps() -> Result<()> {
    let x: Vec<u64> = (0..192).map(|i| i * 0x1_0000_0001).collect();
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let mut sums = DeviceBuffer::uninit(stream, 2)?;
        let mut largest = DeviceBuffer::uninit(stream, 2)?;
        let mut before = DeviceBuffer::uninit(stream, 192)?;
        kernels.reductions.launch(
            stream,
            Blocks::new(2),
            &device_x,
            &mut sums,
            &mut largest,
            &mut before,
        )?;
        let halves = [&x[..96], &x[96..]];
        assert_eq!(sums.to_vec()?, halves.map(|half| half.iter().sum::<u64>()));
        assert_eq!(largest.to_vec()?, halves.map(|half| half[95] as f64));
        let mut expected = Vec::new();
        for half in halves {
            let mut sum = 0;
            for x in half {
                expected.push(sum);
                sum += x;
            }
        }
        assert_eq!(before.to_vec()?, expected);
        Ok(())
    })
}

/// The result of `branch_on_sum` for a block, except for rounding.
fn expected_sum(x: &[f32], block: usize) -> f32 {
    let mut sum: f32 = (0..128).map(|t| x[128 * block + t] * x[t]).sum();
    for _ in 0..8 {
        if sum <= 1.0 {
            break;
        }
        sum = x[..128].iter().map(|x| sum * x).sum::<f32>() / 128.0;
    }
    sum
}

/// All threads of a block have the same sum, and take the same branches.
#[test]
fn branch_on_a_sum() -> Result<()> {
    let mut random = fastrand::Rng::with_seed(1);
    let x: Vec<f32> = (0..256).map(|_| random.f32() * 1.7).collect();
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let mut y = DeviceBuffer::<f32>::uninit(stream, 256)?;
        kernels
            .branch_on_sum
            .launch(stream, Blocks::new(2), &device_x, &mut y)?;
        for (index, block) in y.to_vec()?.chunks(128).enumerate() {
            let expected = expected_sum(&x, index);
            assert!(
                (block[0] - expected).abs() < 1e-3 * expected.abs(),
                "{} and not {expected}",
                block[0]
            );
            assert!(
                block.iter().all(|sum| sum.to_bits() == block[0].to_bits()),
                "{block:?}"
            );
        }
        Ok(())
    })
}

/// Barriers behind `dyn` and function pointers.
#[test]
fn indirect_barriers() -> Result<()> {
    let program = [0_u32, 1, 3, 2, 0, 1];
    let mut expected: Vec<u32> = (0..64).collect();
    for step in program {
        match step {
            0 => expected.rotate_left(1),
            3 => expected.rotate_left(3),
            _ => expected.iter_mut().for_each(|x| *x *= 2),
        }
        expected.iter_mut().skip(1).step_by(2).for_each(|x| *x += 1);
    }
    on_device(|kernels, stream| {
        let device_program = DeviceBuffer::from_slice(stream, &program)?;
        let mut y = DeviceBuffer::uninit(stream, 64)?;
        kernels
            .indirect_barriers
            .launch(stream, Blocks::new(1), &device_program, &mut y)?;
        assert_eq!(y.to_vec()?, expected);
        Ok(())
    })
}

#[test]
fn early_returns() -> Result<()> {
    on_device(|kernels, stream| {
        let mut y = DeviceBuffer::zeroed(stream, 128)?;
        kernels
            .early_return
            .launch(stream, Blocks::new(2), 1, &mut y)?;
        let expected: Vec<u32> = (0..64).rev().chain([0; 64]).collect();
        assert_eq!(y.to_vec()?, expected);
        let mut y = DeviceBuffer::uninit(stream, 1)?;
        kernels
            .thread_returns
            .launch(stream, Blocks::new(1), &mut y)?;
        assert_eq!(y.to_vec()?, [(0..64).filter(|i| i % 3 != 0).sum::<u32>()]);
        Ok(())
    })
}

/// The compiler does not load shared memory earlier than the source does.
#[test]
fn single_owner_of_an_element() -> Result<()> {
    on_device(|kernels, stream| {
        let mut y = DeviceBuffer::uninit(stream, 2)?;
        kernels
            .single_owner
            .launch(stream, Blocks::new(2), 4, &mut y)?;
        assert_eq!(y.to_vec()?, [626.0, 626.0]);
        Ok(())
    })
}

/// The device computes the numbers that the host computes.
#[test]
fn random_numbers() -> Result<()> {
    on_device(|kernels, stream| {
        let mut y = DeviceBuffer::uninit(stream, 60)?;
        kernels
            .random
            .launch(stream, 10, 0x1234_5678_9abc_def0, &mut y)?;
        let mut expected = Vec::new();
        for sequence in 0..10 {
            let mut random = Philox::new(0x1234_5678_9abc_def0, sequence);
            expected.extend((0..6).map(|_| random.next_u32()));
        }
        assert_eq!(y.to_vec()?, expected);
        Ok(())
    })
}

#[test]
fn instructions_on_integers() -> Result<()> {
    let a = [0x3c00_4248_u32, 0x0102_0304, 0x3f80_4000];
    let b = [0x0000_1001_u32, 0x05ff_0708, 0x8000_0000];
    on_device(|kernels, stream| {
        let device_a = DeviceBuffer::from_slice(stream, &a)?;
        let device_b = DeviceBuffer::from_slice(stream, &b)?;
        let mut y = DeviceBuffer::uninit(stream, 24)?;
        kernels
            .instructions
            .launch(stream, 3, &device_a, &device_b, &mut y)?;
        let y = y.to_vec()?;
        for (i, y) in y.chunks(8).enumerate() {
            let (a, b) = (a[i], b[i]);
            let bytes = || a.to_le_bytes().into_iter().zip(b.to_le_bytes());
            let unsigned: u32 = bytes().map(|(a, b)| u32::from(a) * u32::from(b)).sum();
            let signed: i32 = bytes()
                .map(|(a, b)| i32::from(a.cast_signed()) * i32::from(b.cast_signed()))
                .sum();
            assert_eq!(y[0], unsigned + 7);
            assert_eq!(y[1].cast_signed(), signed - 7);
            let [a0, _, a2, _] = a.to_le_bytes();
            let [_, b1, _, b3] = b.to_le_bytes();
            assert_eq!(y[2].to_le_bytes(), [a0, b1, a2, b3]);
            assert_eq!(y[3], a, "a pair of binary16 is unpacked and packed");
            assert_eq!(y[4], a, "a pair of bfloat16 is unpacked and packed");
            assert_eq!(
                y[5],
                a.count_ones() + (b.leading_zeros() << 8) + (b.trailing_zeros() << 16)
            );
            assert_eq!(y[6], a.saturating_add(b));
            assert_eq!(y[7], a.reverse_bits() ^ b.rotate_left(5));
        }
        Ok(())
    })
}

#[test]
fn functions_of_numbers() -> Result<()> {
    let x: Vec<f32> = vec![0.25, 0.5, 1.5, 2.5, 3.0, 0.1, 0.7, 1e-3];
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let mut y = DeviceBuffer::<f32>::uninit(stream, 14 * x.len())?;
        kernels
            .functions
            .launch(stream, x.len(), &device_x, &mut y)?;
        for (x, y) in x.iter().zip(y.to_vec()?.chunks(14)) {
            let exact = [
                x.sqrt(),
                x.mul_add(*x, 0.1),
                x.floor(),
                x.ceil(),
                x.trunc(),
                x.round_ties_even(),
            ];
            assert_eq!(y[..6], exact, "{x}");
            let approximate = [
                x.exp(),
                x.exp(),
                x.exp2(),
                x.ln(),
                x.sin(),
                x.cos(),
                1.0 / x,
                1.0 / x.sqrt(),
            ];
            for (function, (y, expected)) in y[6..].iter().zip(approximate).enumerate() {
                let error = (y - expected).abs() / expected.abs().max(1.0);
                assert!(
                    error < 2e-6,
                    "function {function} of {x} is {y} and not {expected}"
                );
            }
        }
        Ok(())
    })
}

/// Parameters that are named like the launcher's, an alias of an output, and a type named `usize`.
#[test]
fn names_do_not_collide() -> Result<()> {
    on_device(|kernels, stream| {
        let mut y = DeviceBuffer::uninit(stream, 1)?;
        kernels
            .named_like_the_launcher
            .launch(stream, 1, 1, 2, 3, 4, 5_u8, &mut y)?;
        assert_eq!(y.to_vec()?, [15]);
        Ok(())
    })
}
