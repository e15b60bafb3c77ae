//! The loader that the tests of kernels share.

use curium_driver::{Result, Stream};
use curium_test_kernels::Kernels;

/// Runs a body for several orders of execution, with all checks.
pub(crate) fn on_device(body: impl Fn(&Kernels, &Stream) -> Result<()>) -> Result<()> {
    curium_test_mutants::on_device(Kernels::load, Kernels::from_library, body)
}
