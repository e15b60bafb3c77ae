//! Kernels in Rust for the Hopper architecture: grids that wait, clusters, tensor copies and
//! products of warpgroups.
//!
//! The tests are those of the package of the kernels, with the driver of the contract tests.

#[path = "../../rust-kernels-hopper/tests/kernels_sm_90a/clusters.rs"]
mod clusters;
#[path = "../../rust-kernels-hopper/tests/kernels_sm_90a/gemm.rs"]
mod gemm;
#[path = "../../rust-kernels-hopper/tests/kernels_sm_90a/grids.rs"]
mod grids;
#[path = "../../rust-kernels-hopper/tests/kernels_sm_90a/tensors.rs"]
mod tensors;

use curium_driver::{Result, Stream};
use curium_test_kernels_hopper::Kernels;
use curium_tests::on_driver;

/// Runs a test, unless the device is another than those for which the kernels were compiled.
fn on_device(test: impl Fn(&Kernels, &Stream) -> Result<()>) -> Result<()> {
    let mut result = Ok(());
    on_driver(|driver| {
        result = driver.driver().device(0).and_then(|device| {
            let capability = device.compute_capability()?;
            if (capability.major, capability.minor) != (9, 0) {
                return curium_tests::skip("needs compute capability 9.0");
            }
            test(&Kernels::load(&device)?, &driver.stream())
        });
    });
    result
}
