//! Tests your own code on the simulator, without a GPU: with several seeds, with an older driver,
//! and with all checks enabled. In a program, the calls in `main` are `#[test]` functions.
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use curium::driver::{CudaVersion, Result};
use curium::prelude::*;
use curium_sim::Config;

const KERNELS: &str = include_str!("kernels/vectors.ptx");

/// The code under test: the sum of each pair, over two streams.
fn sums(device: &Device, x: &[f32], y: &[f32]) -> Result<Vec<f32>> {
    let context = device.primary_context()?;
    let left = context.stream()?;
    let right = context.stream()?;
    let add =
        Library::from_ptx(device, KERNELS)?.kernel::<(&[f32], &[f32], &mut [f32], u32)>("add")?;
    let x = DeviceBuffer::from_slice(&left, x)?;
    let y = DeviceBuffer::from_slice(&right, y)?;
    let n = x.len() as u32;
    let mut sum = DeviceBuffer::uninit(&left, x.len())?;
    // SAFETY: `add` reads x and y, writes sum, and guards its index with n, the length of all
    // three.
    unsafe {
        add.launch(
            &right,
            LaunchConfig::for_elements(x.len()),
            (&x, &y, &mut sum, n),
        )
    }?;
    sum.to_vec()
}

fn sums_are_right(device: &Device) -> Result<()> {
    assert_eq!(sums(device, &[1.0, 2.0], &[10.0, 20.0])?, [11.0, 22.0]);
    Ok(())
}

fn main() -> Result<()> {
    // A missing wait that is harmless in one order fails in another.
    for seed in 0..20 {
        curium_sim::test_with(Config::new().with_seed(seed), |device| {
            sums_are_right(&device)
        })?;
    }
    curium_sim::test_with(
        Config::new().with_driver_version(CudaVersion::new(12, 0)),
        |device| sums_are_right(&device),
    )?;
    println!("20 orders of work and a driver for CUDA 12.0 gave the same");
    Ok(())
}
