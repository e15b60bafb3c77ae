//! Cooperative grids.

use curium_driver::{Device, Result};
use curium_kernel::host::Blocks;
use curium_memory::DeviceBuffer;
use curium_test_kernels_hopper::Kernels;

use super::on_device;

#[test]
fn diffusion_in_one_launch() -> Result<()> {
    let x: Vec<f32> = (0..600_u16).map(|i| f32::from(i * 7 % 64)).collect();
    let mut expected = x.clone();
    for _ in 0..6 {
        let current = expected.clone();
        for i in 0..current.len() {
            let left = current[i.saturating_sub(1)];
            let right = current[(i + 1).min(current.len() - 1)];
            expected[i] = 0.25 * left + 0.5 * current[i] + 0.25 * right;
        }
    }
    on_device(|kernels, stream| {
        let mut even = DeviceBuffer::from_slice(stream, &x)?;
        let mut odd = DeviceBuffer::zeroed(stream, x.len())?;
        kernels
            .diffuse
            .launch(stream, Blocks::new(4), 6, &mut even, &mut odd)?;
        assert_eq!(even.to_vec()?, expected);
        Ok(())
    })
}

#[test]
fn normalization_in_one_launch() -> Result<()> {
    let x: Vec<f32> = (0..1000_u16).map(|i| f32::from(i % 8)).collect();
    let sum: f32 = x.iter().sum();
    let expected: Vec<f32> = x.iter().map(|x| x / sum).collect();
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let mut partial = DeviceBuffer::uninit(stream, 3)?;
        let mut y = DeviceBuffer::uninit(stream, x.len())?;
        kernels
            .normalize
            .launch(stream, Blocks::new(3), &device_x, &mut partial, &mut y)?;
        assert_eq!(y.to_vec()?, expected);
        Ok(())
    })
}

/// The blocks take the same branches by a value that they share.
#[test]
fn blocks_decide_together() -> Result<()> {
    on_device(|kernels, stream| {
        let x: Vec<u32> = (1..=300).collect();
        let mut device_x = DeviceBuffer::from_slice(stream, &x)?;
        kernels
            .double_until
            .launch(stream, Blocks::new(5), 2000, &mut device_x)?;
        let expected: Vec<u32> = x.iter().map(|x| x * 8).collect();
        assert_eq!(device_x.to_vec()?, expected);
        Ok(())
    })
}

#[test]
fn values_survive_barriers() -> Result<()> {
    on_device(|kernels, stream| {
        for blocks in [1, 2, 7] {
            let mut tickets = DeviceBuffer::zeroed(stream, blocks)?;
            kernels
                .rounds
                .launch(stream, Blocks::new(blocks as u32), 5, &mut tickets)?;
            let mut expected: Vec<u32> = (0..blocks as u32).collect();
            for round in 0..5 {
                expected.iter_mut().for_each(|own| *own += round);
                let sum: u32 = expected.iter().sum();
                expected.iter_mut().for_each(|own| *own += sum);
            }
            assert_eq!(tickets.to_vec()?, expected);
        }
        Ok(())
    })
}

/// A grid whose blocks are not all resident would wait forever. The error names the maximum, which
/// can be launched.
#[test]
fn grid_that_is_not_resident_is_an_error() -> Result<()> {
    curium_sim::test(|device: Device| {
        let context = device.primary_context()?;
        let stream = context.stream()?;
        let kernels = Kernels::load(&device)?;
        let maximum = kernels.rounds.suggested_blocks(&context, 0)?;
        let mut tickets = DeviceBuffer::zeroed(&stream, maximum as usize + 1)?;
        let launch = kernels
            .rounds
            .launch(&stream, Blocks::new(maximum + 1), 1, &mut tickets);
        let text = match launch {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        };
        assert!(
            text.contains("rounds::launch") && text.contains(&format!("at most {maximum}")),
            "{text}"
        );
        kernels
            .rounds
            .launch(&stream, Blocks::new(0), 1, &mut tickets)?;
        Ok(())
    })
}

/// The counter of the barrier needs no preparation: launches can be repeated, also by a graph.
#[test]
fn cooperative_graph() -> Result<()> {
    curium_sim::test(|device: Device| {
        let context = device.primary_context()?;
        let stream = context.stream()?;
        let kernels = Kernels::load(&device)?;
        let mut x = DeviceBuffer::from_slice(&stream, &[1_u32; 100])?;
        for limit in [1, 2, 4] {
            kernels
                .double_until
                .launch(&stream, Blocks::new(2), limit, &mut x)?;
        }
        assert_eq!(x.to_vec()?, [8; 100]);
        Ok(())
    })
}

/// An exchange of handles in one block does not change what the names mean in the code of the grid.
#[test]
fn handles_exchanged_in_one_block() -> Result<()> {
    on_device(|kernels, stream| {
        let mut x = DeviceBuffer::zeroed(stream, 100)?;
        let mut y = DeviceBuffer::zeroed(stream, 100)?;
        kernels
            .exchanged
            .launch(stream, Blocks::new(3), &mut x, &mut y)?;
        let expected: Vec<u32> = (0..100).collect();
        assert_eq!(x.to_vec()?, expected);
        let expected: Vec<u32> = (0..100).rev().collect();
        assert_eq!(y.to_vec()?, expected);
        Ok(())
    })
}

/// Scratch memory keeps its state between the code of blocks.
#[test]
fn sums_without_a_grid_barrier() -> Result<()> {
    on_device(|kernels, stream| {
        let mut total = DeviceBuffer::uninit(stream, 3)?;
        kernels
            .repeated_sums
            .launch(stream, Blocks::new(3), &mut total)?;
        let expected: Vec<u32> = (0..3)
            .map(|block| {
                (0..4).fold(0, |total, round| {
                    2 * total + (0..128).map(|i| 128 * block + i + round).sum::<u32>()
                })
            })
            .collect();
        assert_eq!(total.to_vec()?, expected);
        Ok(())
    })
}
