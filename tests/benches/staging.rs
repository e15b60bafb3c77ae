//! Measures copies between pageable memory and the device with different numbers of threads and
//! sizes of staging buffers, on a GPU.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::error::Error;
use std::thread;
use std::time::Instant;

use curium_driver::{Driver, Stream};
use curium_memory::{DeviceBuffer, Staging, StagingOptions};
use curium_tests::{Samples, uses_cuda};

/// The size in bytes of the copies of each sweep, and the number of copies in each median.
const SWEEPS: [(usize, usize); 4] = [(8 << 20, 51), (16 << 20, 51), (64 << 20, 21), (1 << 30, 5)];

/// The numbers of threads, up to the number of CPU cores.
const THREADS: [usize; 10] = [3, 4, 6, 8, 10, 12, 14, 16, 20, 24];

/// The source and destination of the copies.
struct Sides {
    stream: Stream,
    host: Vec<u8>,
    device: DeviceBuffer<u8>,
}

fn main() -> Result<(), Box<dyn Error>> {
    if !uses_cuda() {
        println!(
            "times of the simulator are not meaningful; CURIUM_TEST_DRIVER=cuda measures on this machine's driver"
        );
        return Ok(());
    }
    let stream = Driver::load()?.device(0)?.primary_context()?.stream()?;
    SWEEPS
        .into_iter()
        .try_for_each(|(bytes, copies)| sweep(&stream, bytes, copies))
}

/// Measures the copies with each number of threads and each size of the buffer.
fn sweep(stream: &Stream, bytes: usize, copies: usize) -> Result<(), Box<dyn Error>> {
    let device = DeviceBuffer::zeroed(stream, bytes)?;
    let mut sides = Sides {
        stream: stream.clone(),
        host: vec![1; bytes],
        device,
    };
    println!(
        "GB/s of {bytes} bytes by threads and staging buffer, median of {copies} [quartiles]; with one thread the driver copies"
    );
    sides.measure(StagingOptions::new().with_threads(1), copies)?;
    let cores = thread::available_parallelism()?.get();
    for buffer in [16 << 20, 32 << 20, 64 << 20] {
        for threads in THREADS.into_iter().filter(|threads| *threads <= cores) {
            sides.measure(
                StagingOptions::new()
                    .with_threads(threads)
                    .with_buffer_bytes(buffer),
                copies,
            )?;
        }
    }
    Ok(())
}

impl Sides {
    fn measure(&mut self, options: StagingOptions, copies: usize) -> Result<(), Box<dyn Error>> {
        Staging::set_options(self.stream.context(), options)?;
        let Self { host, device, .. } = self;
        // The first copy allocates the staging buffers.
        device.copy_from_slice(host)?;
        device.copy_to_slice(host)?;
        let mut to = Vec::new();
        let mut from = Vec::new();
        for _ in 0..copies {
            to.push(rate(host.len(), || device.copy_from_slice(host))?);
            from.push(rate(device.len(), || device.copy_to_slice(host))?);
        }
        let [to, from] = [to, from].map(|rates| {
            let rates: Samples = rates.into_iter().collect();
            let [low, median, high] = [0.25, 0.5, 0.75].map(|part| rates.quantile(part));
            format!("{median:.1} [{low:.1} {high:.1}]")
        });
        let threads = options.threads;
        let buffer = options.buffer_bytes >> 20;
        println!("buffer {buffer:>2} MiB, {threads:>2} threads: to the device {to}, back {from}");
        Ok(())
    }
}

/// Returns the bandwidth of one copy in GB/s.
fn rate(
    bytes: usize,
    copy: impl FnOnce() -> curium_driver::Result<()>,
) -> curium_driver::Result<f64> {
    let begin = Instant::now();
    copy()?;
    Ok(bytes as f64 / begin.elapsed().as_nanos() as f64)
}
