//! The parts of the model, on the simulator with all checks.
#![cfg(not(miri))]

use curium_driver::{Device, Result, Stream};
use curium_kernel::host::{Blocks, RowMajor};
use curium_memory::DeviceBuffer;
use curium_sim::Config;
use curium_test_kernels::Kernels;

/// Runs a body for several orders of execution, with all checks.
fn on_device(body: impl Fn(&Kernels, &Stream) -> Result<()>) -> Result<()> {
    for seed in 0..3 {
        curium_sim::test_with(Config::new().with_seed(seed), |device: Device| {
            let stream = device.primary_context()?.stream()?;
            body(&Kernels::load(&device)?, &stream)
        })?;
    }
    Ok(())
}

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
fn coordinates_of_three_dimensions() -> Result<()> {
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
fn grid_stride_visits_each_element_once() -> Result<()> {
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
        for (limit, expected) in [(0, [0, 0, 0]), (40, [1, 0, 40]), (96, [1, 1, 96])] {
            let mut y = DeviceBuffer::uninit(stream, 1)?;
            kernels
                .votes
                .launch(stream, Blocks::new(1), limit, &mut y)?;
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
        for block in y.to_vec()?.chunks(128) {
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
        assert_eq!(y.to_vec()?, [42]);
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
