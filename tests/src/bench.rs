//! The measurements of `curium-bench` as benchmarks of the workspace.

use std::error::Error;

use curium_bench::{Comparison, Plan, Samples, run};
use curium_driver::Driver;
use curium_sim::{Config, Simulator};

use crate::uses_cuda;

/// Makes the measurements whose id contains `filter` and prints them: on this machine's driver with `CURIUM_TEST_DRIVER=cuda`, else on the
/// simulator, whose times say nothing of hardware.
///
/// # Errors
///
/// Those of the driver.
#[expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
pub fn bench(filter: &str) -> Result<(), Box<dyn Error>> {
    let (driver, plan) = if uses_cuda() {
        (Driver::load()?, Plan::hardware())
    } else {
        let simulator = Simulator::new(Config::new())?;
        // SAFETY: the functions are the simulator's, which the driver keeps.
        (unsafe { Driver::from_api_with_owner(simulator.api(), simulator) }?, Plan::simulator())
    };
    let device = driver.device(0)?;
    println!("{} on CUDA {}: median [quartiles] of C, of Curium, and of Curium / C", device.name()?, driver.version());
    run(&device.primary_context()?, &plan.with_filter(filter), &mut |comparison| {
        print_row(&comparison);
        Ok(())
    })?;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
fn print_row(comparison: &Comparison) {
    let Comparison { id, unit, c, curium, ratio, note, .. } = comparison;
    let spread = |samples: &Samples| [0.5, 0.25, 0.75].map(|part| format!("{:.3}", samples.quantile(part))).join(" ");
    let note = note.as_deref().unwrap_or_default();
    println!("{id:36} {:>28} {:>28} {:>22} {} {note}", spread(c), spread(curium), spread(ratio), unit.symbol());
}
