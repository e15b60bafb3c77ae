//! What tests of kernels share.
#![allow(unsafe_code, reason = "mutants are not the code of the kernels")]

use curium_driver::{Device, Library, Result, Stream};
use curium_sim::Config;
use curium_test_kernels::Kernels;

use crate::mutation::PTX_VARIABLE;

/// Loads the kernels, or a mutant of them.
pub(crate) fn load(device: &Device) -> Result<Kernels> {
    let Some(path) = std::env::var_os(PTX_VARIABLE) else {
        return Kernels::load(device);
    };
    let ptx = std::fs::read_to_string(path).expect("the PTX is readable");
    let library = Library::from_ptx(device, &ptx)?;
    // SAFETY: the simulator stops a mutant that accesses other memory than its arguments.
    unsafe { Kernels::from_library(&library) }
}

/// Runs a body for several orders of execution, with all checks.
pub(crate) fn on_device(body: impl Fn(&Kernels, &Stream) -> Result<()>) -> Result<()> {
    for seed in 0..3 {
        curium_sim::test_with(Config::new().with_seed(seed), |device: Device| {
            let stream = device.primary_context()?.stream()?;
            body(&load(&device)?, &stream)
        })?;
    }
    Ok(())
}
