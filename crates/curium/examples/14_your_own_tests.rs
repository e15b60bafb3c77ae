//! Tests code of one's own on the simulator, where no GPU is: with many orders of independent work, with an older driver, and without
//! a leak. What stands in `main` here would be tests.
#![expect(clippy::print_stdout, reason = "an example says what it did")]

use curium::driver::{CudaVersion, Result};
use curium::prelude::*;
use curium_sim::{Config, Simulator};

const KERNELS: &str = include_str!("kernels/vectors.ptx");

/// The code under test: the sum of each pair, over two streams.
fn sums(device: &Device, x: &[f32], y: &[f32]) -> Result<Vec<f32>> {
    let context = device.primary_context()?;
    let (left, right) = (context.stream()?, context.stream()?);
    let add = Library::from_ptx(device, KERNELS)?.kernel::<(&[f32], &[f32], &mut [f32], u32)>("add")?;
    let (x, y) = (DeviceBuffer::from_slice(&left, x)?, DeviceBuffer::from_slice(&right, y)?);
    let n = x.len() as u32;
    let mut sum = DeviceBuffer::uninit(&left, x.len())?;
    // SAFETY: `add` reads x and y, writes sum, and guards its index with n, the length of all three.
    unsafe { add.launch(&right, LaunchConfig::for_elements(n), (&x, &y, &mut sum, n)) }?;
    sum.to_vec()
}

/// Runs a test on a simulated device, which must be left without a live handle.
fn on_simulator(config: Config, test: impl FnOnce(&Device) -> Result<()>) -> Result<(), Box<dyn std::error::Error>> {
    let simulator = Simulator::new(config)?;
    // SAFETY: the simulator implements the driver's functions, and outlives everything made from this table.
    let driver = unsafe { Driver::from_api(simulator.api()) }?;
    test(&driver.device(0)?)?;
    drop(driver);
    assert!(simulator.live_handles().is_empty(), "leaked: {}", simulator.live_handles());
    assert!(simulator.kernel_faults().is_empty(), "a kernel went out of bounds");
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let test = |device: &Device| {
        assert_eq!(sums(device, &[1.0, 2.0], &[10.0, 20.0])?, [11.0, 22.0]);
        Ok(())
    };
    // A missing wait that works by luck fails for some order.
    for seed in 0..20 {
        on_simulator(Config::new().with_seed(seed), test)?;
    }
    on_simulator(Config::new().with_driver_version(CudaVersion::new(12, 0)), test)?;
    println!("20 orders of work and a driver for CUDA 12.0 gave the same");
    Ok(())
}
