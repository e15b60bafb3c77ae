//! Copies between ordinary memory and the device over lanes and blocks of what stages them, on a GPU.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::error::Error;
use std::time::Instant;

use curium_driver::{Driver, Stream};
use curium_memory::{DeviceBuffer, Staging, StagingOptions};
use curium_tests::{Samples, uses_cuda};

/// The bytes of a copy of the sweep.
const BYTES: usize = 1 << 30;

fn main() -> Result<(), Box<dyn Error>> {
    if !uses_cuda() {
        println!("there is nothing to see on the simulator: CURIUM_TEST_DRIVER=cuda measures on this machine's driver");
        return Ok(());
    }
    sweep(&Driver::load()?.device(0)?.primary_context()?.stream()?)
}

/// All of a slice with each number of lanes and each size of a block.
fn sweep(stream: &Stream) -> Result<(), Box<dyn Error>> {
    let (mut host, mut device) = (vec![1_u8; BYTES], DeviceBuffer::zeroed(stream, BYTES)?);
    println!("GB/s of {BYTES} bytes by lanes and blocks, median");
    for block in [512 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20] {
        for lanes in [2, 4, 6, 8, 10, 12, 14, 16] {
            Staging::set_options(stream.context(), StagingOptions::new().with_lanes(lanes).with_block_bytes(block))?;
            let to = (0..5).map(|_| rate(|| device.copy_from_slice(&host))).collect::<Result<Samples, _>>()?;
            let from = (0..5).map(|_| rate(|| device.copy_to_slice(&mut host))).collect::<Result<Samples, _>>()?;
            let (to, from) = (to.median(), from.median());
            println!("block {:>5} KiB, {lanes:>2} lanes: to the device {to:.2}, back {from:.2}", block >> 10);
        }
    }
    Ok(())
}

/// GB/s of one copy.
fn rate(copy: impl FnOnce() -> curium_driver::Result<()>) -> curium_driver::Result<f64> {
    let begin = Instant::now();
    copy()?;
    Ok(BYTES as f64 / begin.elapsed().as_nanos() as f64)
}
