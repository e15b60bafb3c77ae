//! Measures `SyncAlloc` compared with `cuMemAlloc` and `cuMemFree`, and the driver calls that it
//! adds one by one.
//!
//! Runs on this machine's driver with `CURIUM_TEST_DRIVER=cuda`, otherwise on the simulator, whose
//! times are not those of hardware.
#![expect(clippy::print_stdout, reason = "it reports")]

use std::error::Error;
use std::hint::black_box;
use std::ptr;
use std::time::Instant;

use curium_driver::sys::{CUcontext, CUdeviceptr, CUstreamCaptureMode};
use curium_driver::{Driver, Result, Stream, call};
use curium_memory::{Resource, SyncAlloc};
use curium_sim::{Config, Simulator};
use curium_tests::{Samples, uses_cuda};

const BYTES: usize = 1 << 20;
const ROUNDS: usize = 50;

fn main() -> Result<(), Box<dyn Error>> {
    if uses_cuda() {
        return Ok(measure(&Driver::load()?, 200)?);
    }
    let simulator = Simulator::new(Config::new())?;
    Ok(measure(&simulator.driver::<Driver>()?, 10)?)
}

fn measure(driver: &Driver, calls: u32) -> Result<()> {
    let context = driver.device(0)?.primary_context()?;
    let stream = context.stream()?;
    let cases: [(&str, &dyn Fn() -> Result<()>); 6] = [
        ("cuMemAlloc and cuMemFree of 1 MiB", &|| in_c(driver)),
        ("SyncAlloc, the same", &|| in_curium(&stream)),
        ("cuCtxGetCurrent", &|| current(driver)),
        ("cuThreadExchangeStreamCaptureMode", &|| exchange(driver)),
        ("cuStreamQuery", &|| stream.is_finished().map(|_| ())),
        ("cuStreamSynchronize", &|| stream.synchronize()),
    ];
    context.scoped(|| {
        let mut times = vec![Vec::new(); cases.len()];
        for _ in 0..ROUNDS {
            for ((_, call), times) in cases.iter().zip(&mut times) {
                let begin = Instant::now();
                for _ in 0..calls {
                    call()?;
                }
                times.push(begin.elapsed() / calls);
            }
        }
        for ((name, _), times) in cases.iter().zip(times) {
            println!("{name:<36} {}", times.into_iter().collect::<Samples>());
        }
        Ok(())
    })?
}

fn in_c(driver: &Driver) -> Result<()> {
    let mut address: CUdeviceptr = 0;
    // SAFETY: `address` is valid for writes, and a context is current.
    unsafe { call!(driver, cuMemAlloc_v2(&raw mut address, BYTES)) }?;
    // SAFETY: the memory was just allocated, and nothing uses it.
    unsafe { call!(driver, cuMemFree_v2(black_box(address))) }
}

fn in_curium(stream: &Stream) -> Result<()> {
    let pointer = black_box(SyncAlloc.allocate(stream, BYTES, 256)?);
    // SAFETY: the memory was just allocated with this size and alignment, and nothing uses it.
    unsafe { SyncAlloc.deallocate(stream, pointer, BYTES, 256) }
}

fn current(driver: &Driver) -> Result<()> {
    let mut current: CUcontext = ptr::null_mut();
    // SAFETY: `current` is valid for writes.
    unsafe { call!(driver, cuCtxGetCurrent(&raw mut current)) }
}

fn exchange(driver: &Driver) -> Result<()> {
    let mut mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    // SAFETY: `mode` is valid for reads and writes. It is the mode of threads that have set none.
    unsafe { call!(driver, cuThreadExchangeStreamCaptureMode(&raw mut mode)) }
}
