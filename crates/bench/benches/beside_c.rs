//! The measurements of `curium bench` as criterion benchmarks with the same ids. They run on this machine's driver with
//! `CURIUM_TEST_DRIVER=cuda`, otherwise on the simulator, whose times are not representative of hardware.
//!
//! Criterion compares each implementation with its own earlier run. `curium bench` alternates the two implementations.

use std::error::Error;
use std::time::Duration;

use criterion::{Criterion, Throughput};
use curium_bench::{Measurement, Plan, Way};
use curium_driver::Driver;
use curium_sim::{Config, Simulator};

fn main() -> Result<(), Box<dyn Error>> {
    let (driver, plan) = if std::env::var("CURIUM_TEST_DRIVER").is_ok_and(|driver| driver == "cuda")
    {
        (Driver::load()?, Plan::quick())
    } else {
        let simulator = Simulator::new(Config::new())?;
        // SAFETY: the functions are the simulator's, which the driver keeps.
        (
            unsafe { Driver::from_api_with_owner(simulator.api(), simulator) }?,
            Plan::simulator(),
        )
    };
    let times = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1));
    let mut criterion = times.sample_size(20).configure_from_args();
    curium_bench::visit(
        &driver.device(0)?.primary_context()?,
        &plan,
        &mut |measurement| {
            bench(&mut criterion, measurement);
            Ok(())
        },
    )?;
    criterion.final_summary();
    Ok(())
}

/// Benchmarks both implementations of one measurement.
fn bench(criterion: &mut Criterion, measurement: &mut Measurement<'_>) {
    let mut group = criterion.benchmark_group(measurement.id());
    if let Some(bytes) = measurement.bytes() {
        group.throughput(Throughput::Bytes(bytes as u64));
    }
    for way in Way::ALL {
        group.bench_function(way.name(), |bencher| {
            bencher.iter_custom(|count| {
                let count = usize::try_from(count).expect("no benchmark is done so often");
                measurement
                    .time(way, count)
                    .expect("the driver does what is measured")
            });
        });
    }
    group.finish();
}
