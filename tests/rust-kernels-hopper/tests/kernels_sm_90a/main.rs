//! The kernels of this package, on the simulator with all checks. The contract tests run them on
//! every driver.
#![cfg(not(miri))]

mod clusters;
mod gemm;
mod grids;
mod mutants;
mod tensors;

use curium_driver::{Result, Stream};
use curium_test_kernels_hopper::Kernels;

/// Runs a test for several orders of execution, with all checks.
fn on_device(test: impl Fn(&Kernels, &Stream) -> Result<()>) -> Result<()> {
    curium_test_mutants::on_device(Kernels::load, Kernels::from_library, test)
}
