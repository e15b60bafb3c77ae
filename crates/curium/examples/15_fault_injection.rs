//! Makes each driver call fail in turn, and checks that the code under test returns the error,
//! leaks nothing and works afterwards.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use curium::driver::{Function, Result};
use curium::prelude::*;
use curium::sys::CUresult;
use curium_sim::{Config, Fault, Simulator};

/// The code under test: three buffers, and a copy of one.
fn work(device: &Device) -> Result<Vec<u32>> {
    let stream = device.primary_context()?.stream()?;
    let first = DeviceBuffer::from_slice(&stream, &[1_u32, 2, 3])?;
    let mut second = DeviceBuffer::zeroed(&stream, 3)?;
    second.copy_from_device(&first)?;
    second.to_vec()
}

/// The fallible driver calls of `work`.
const CALLS: [Function; 5] = [
    Function::cuDevicePrimaryCtxRetain,
    Function::cuStreamCreateWithPriority,
    Function::cuMemAllocAsync,
    Function::cuMemcpyHtoDAsync_v2,
    Function::cuMemcpyDtoHAsync_v2,
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let simulator = Simulator::new(Config::new())?;
    let device: Device = simulator.driver()?;
    let mut failures = 0;
    for function in CALLS {
        let before = simulator.calls(function);
        work(&device)?;
        let count = simulator.calls(function) - before;
        assert!(count > 0, "{function} is not called");
        for call in 1..=count {
            simulator.inject(
                Fault::on(function)
                    .call(call)
                    .returns(CUresult::CUDA_ERROR_OUT_OF_MEMORY),
            );
            let error = work(&device).expect_err("the call fails");
            assert_eq!(
                (error.function(), error.is_out_of_memory()),
                (Some(function), true)
            );
            assert!(
                simulator.live_handles().is_empty(),
                "{function} leaks: {}",
                simulator.live_handles()
            );
            simulator.clear_faults();
            failures += 1;
        }
    }
    assert_eq!(work(&device)?, [1, 2, 3]);
    println!("{failures} failures were returned, and nothing leaked");
    Ok(())
}
