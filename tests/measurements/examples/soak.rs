//! Runs the soak test: ten million operations, or the number in the first argument, on the
//! simulator or, with `CURIUM_TEST_DRIVER=cuda`, on this machine's driver. Fails if anything is
//! leaked or the process has grown.
#![expect(clippy::print_stdout, reason = "it reports")]

use std::error::Error;
use std::time::Instant;

use curium_driver::Driver;
use curium_sim::{Config, Simulator};
use curium_tests::{Soak, uses_cuda};

/// The number of bytes by which the process may grow after the first tenth of the operations.
const SLACK: u64 = 8 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let operations = std::env::args()
        .nth(1)
        .map_or(Ok(10_000_000), |count| count.parse())?;
    if uses_cuda() {
        return run(&Driver::load()?, operations);
    }
    let simulator = Simulator::new(Config::new())?;
    run(&simulator.driver::<Driver>()?, operations)?;
    let live = simulator.live_handles();
    println!("live handles: {}", live.total());
    if live.is_empty() {
        Ok(())
    } else {
        Err(format!("something is left: {live}").into())
    }
}

fn run(driver: &Driver, operations: u64) -> Result<(), Box<dyn Error>> {
    let begin = Instant::now();
    let soak = Soak {
        operations,
        threads: 4,
        seed: 1,
    };
    let soaked = soak.run(&driver.device(0)?.primary_context()?)?;
    println!(
        "{operations} operations in {:.1} s: {soaked:?}",
        begin.elapsed().as_secs_f64()
    );
    match (soaked.resident_early, soaked.resident_late) {
        (Some(early), Some(late)) if late > early + SLACK => {
            Err(format!("the process grew from {early} to {late} bytes").into())
        }
        _ => Ok(()),
    }
}
