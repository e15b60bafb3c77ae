//! The kernels of this package, on the simulator with all checks. The contract tests run them on every driver.
#![cfg(not(miri))]

mod clusters;
mod gemm;
mod grids;
mod tensors;

use curium_driver::{Device, Result, Stream};
use curium_sim::Config;
use curium_test_kernels_hopper::Kernels;

/// Runs a test for several orders of execution, with all checks.
fn on_device(test: impl Fn(&Kernels, &Stream) -> Result<()>) -> Result<()> {
    for seed in 0..3 {
        curium_sim::test_with(Config::new().with_seed(seed), |device: Device| {
            let stream = device.primary_context()?.stream()?;
            test(&Kernels::load(&device)?, &stream)
        })?;
    }
    Ok(())
}
