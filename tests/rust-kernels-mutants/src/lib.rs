//! Mutants of PTX: each lacks one instruction of synchronization, or has a weaker one. The tests of
//! its kernel run with it in processes of their own, and must fail.
//!
//! A test runs its kernels by [`on_device`], which loads the mutant that the environment names.
//! [`Suite::run`] finds out which tests launch which kernels: it replaces the code of all kernels
//! by a trap and restores the kernel of each report until the test passes. A mutant is loaded with
//! the code of these kernels only.

mod equivalent;
mod flow;
mod module;
mod mutant;
mod process;
mod suite;

pub use equivalent::{Equivalence, Pattern, lane, mask, own_vote, removed, weakened};
pub use suite::{Figures, Suite};

use curium_driver::{Device, Library, Result, Stream};
use curium_sim::Config;

/// The environment variable with the path of the PTX that tests load instead of their own.
const PTX_VARIABLE: &str = "CURIUM_TEST_PTX";

/// The environment variable with the only seed of a test.
const SEED_VARIABLE: &str = "CURIUM_TEST_SEED";

/// The seeds of each test, which select the order of execution.
const SEEDS: std::ops::Range<u64> = 0..3;

/// The variable that selects the driver of the tests, `cuda` for that of this machine.
const DRIVER_VARIABLE: &str = "CURIUM_TEST_DRIVER";

/// Runs a test for several orders of execution on the simulator, with all checks, or once on the
/// first GPU of this machine if `CURIUM_TEST_DRIVER` is `cuda`.
///
/// `load` and `from_library` are functions of the kernels. The second one also loads mutants.
///
/// # Errors
///
/// Those of `load` and `test`.
///
/// # Panics
///
/// If the simulator reports an error.
pub fn on_device<K>(
    load: fn(&Device) -> Result<K>,
    from_library: unsafe fn(&Library) -> Result<K>,
    test: impl Fn(&K, &Stream) -> Result<()>,
) -> Result<()> {
    if uses_gpu() {
        let device = Device::first()?;
        let stream = device.primary_context()?.stream()?;
        return test(&load(&device)?, &stream);
    }
    let ptx = std::env::var_os(PTX_VARIABLE)
        .map(|path| std::fs::read_to_string(path).expect("the PTX is readable"));
    let only_seed: Option<u64> = std::env::var(SEED_VARIABLE)
        .ok()
        .map(|seed| seed.parse().expect("the seed is a number"));
    for seed in SEEDS {
        if only_seed.is_some_and(|only| only != seed) {
            continue;
        }
        curium_sim::test_with(Config::new().with_seed(seed), |device: Device| {
            let stream = device.primary_context()?.stream()?;
            let kernels = match &ptx {
                // SAFETY: the kernels have the parameters of the original, and the simulator stops
                // a mutant that accesses memory other than its arguments.
                Some(ptx) => unsafe { from_library(&Library::from_ptx(&device, ptx)?)? },
                None => load(&device)?,
            };
            test(&kernels, &stream)
        })?;
    }
    Ok(())
}

/// Returns `true` if the tests run on the driver of this machine, on which mutants must not run.
fn uses_gpu() -> bool {
    std::env::var_os(DRIVER_VARIABLE).is_some_and(|driver| driver == "cuda")
}
