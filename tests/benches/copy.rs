//! Copies between ordinary slices and the device beside the driver's own way, in turn, over sizes; and with `--sweep` over lanes and
//! blocks. On the simulator sizes are small and the figures say nothing.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::error::Error;
use std::time::Instant;

use curium_driver::{Driver, Stream, call};
use curium_memory::{DeviceBuffer, PinnedBuffer, PinnedFlags, Staging, StagingOptions};
use curium_sim::{Config, Simulator};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The two ways of a copy.
#[derive(Clone, Copy, Debug)]
enum Way {
    ToDevice,
    ToHost,
}

fn main() -> Result<()> {
    let simulator = (std::env::var("CURIUM_TEST_DRIVER").as_deref() != Ok("cuda"))
        .then(|| Simulator::new(Config::new()))
        .transpose()?;
    let driver = match &simulator {
        // SAFETY: the simulator implements the driver's functions, and outlives all that is made from this table.
        Some(simulator) => unsafe { Driver::from_api(simulator.api()) }?,
        None => Driver::load()?,
    };
    let stream = driver.device(0)?.primary_context()?.stream()?;
    let largest = if simulator.is_some() { 8 << 20 } else { 1 << 30 };
    sizes(&stream, largest)?;
    if std::env::args().any(|argument| argument == "--sweep") {
        Bench::new(&stream, largest)?.sweep()?;
    }
    Ok(())
}

/// Both ways of copies of each size up to `largest`.
fn sizes(stream: &Stream, largest: usize) -> Result<()> {
    println!("GB/s, median (least-most); the ratio is Curium's to the driver's in the same run");
    println!("{:>10} {:>8} {:>26} {:>26} {:>7} {:>26}", "bytes", "way", "driver", "Curium", "ratio", "pinned");
    let sizes = (18..=30).map(|log| 1_usize << log).filter(|bytes| *bytes <= largest);
    for bytes in sizes {
        let mut bench = Bench::new(stream, bytes)?;
        for way in [Way::ToDevice, Way::ToHost] {
            let (mut driver, mut curium, mut pinned) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..((256 << 20) / bytes).clamp(7, 31) {
                driver.push(rate(bytes, || bench.by_driver(way))?);
                curium.push(rate(bytes, || bench.by_curium(way))?);
                pinned.push(rate(bytes, || bench.pinned(way))?);
            }
            let ratio = median(&mut curium) / median(&mut driver);
            let [driver, curium, pinned] = [driver, curium, pinned].map(|mut rates| spread(&mut rates));
            println!("{bytes:>10} {way:>8?} {driver:>26} {curium:>26} {ratio:>7.2} {pinned:>26}");
        }
    }
    Ok(())
}

/// What is copied, on both sides.
struct Bench {
    stream: Stream,
    device: DeviceBuffer<u8>,
    host: Vec<u8>,
    pinned: PinnedBuffer<u8>,
}

impl Bench {
    fn new(stream: &Stream, bytes: usize) -> Result<Self> {
        let pinned = PinnedBuffer::zeroed(stream.context(), bytes, PinnedFlags::empty())?;
        let device = DeviceBuffer::zeroed(stream, bytes)?;
        Ok(Self { stream: stream.clone(), device, host: vec![1; bytes], pinned })
    }

    /// All of the slice with each number of lanes and each size of a block.
    fn sweep(&mut self) -> Result<()> {
        let bytes = self.host.len();
        println!("GB/s of {bytes} bytes by lanes and blocks");
        for block in [512 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20] {
            for lanes in [2, 4, 6, 8, 10, 12, 14, 16] {
                let options = StagingOptions::new().with_lanes(lanes).with_block_bytes(block);
                Staging::set_options(self.stream.context(), options)?;
                let mut rates = [Vec::new(), Vec::new()];
                for _ in 0..5 {
                    rates[0].push(rate(bytes, || self.by_curium(Way::ToDevice))?);
                    rates[1].push(rate(bytes, || self.by_curium(Way::ToHost))?);
                }
                let [to, from] = rates.map(|mut rates| spread(&mut rates));
                println!("block {:>5} KiB, {lanes:>2} lanes: to the device {to}, back {from}", block >> 10);
            }
        }
        Ok(())
    }

    /// What C does: one call, which waits.
    fn by_driver(&mut self, way: Way) -> Result<()> {
        let bytes = self.host.len();
        let (stream, device) = (&self.stream, self.device.as_pointer().as_raw());
        let host = self.host.as_mut_ptr().cast();
        match way {
            // SAFETY: both sides have this many bytes and live until the stream has been waited for below.
            Way::ToDevice => unsafe {
                call!(stream.driver(), cuMemcpyHtoDAsync_v2(device, host, bytes, stream.as_raw()))
            },
            // SAFETY: as above.
            Way::ToHost => unsafe {
                call!(stream.driver(), cuMemcpyDtoHAsync_v2(host, device, bytes, stream.as_raw()))
            },
        }?;
        Ok(stream.synchronize()?)
    }

    fn by_curium(&mut self, way: Way) -> Result<()> {
        let host = &mut self.host;
        Ok(match way {
            Way::ToDevice => self.device.copy_from_slice(host),
            Way::ToHost => self.device.copy_to_slice(host),
        }?)
    }

    fn pinned(&mut self, way: Way) -> Result<()> {
        let host = &mut self.pinned;
        Ok(match way {
            Way::ToDevice => self.device.copy_from_slice(host),
            Way::ToHost => self.device.copy_to_slice(host),
        }?)
    }
}

/// GB/s of one copy.
fn rate(bytes: usize, copy: impl FnOnce() -> Result<()>) -> Result<f64> {
    let begin = Instant::now();
    copy()?;
    Ok(bytes as f64 / begin.elapsed().as_nanos() as f64)
}

fn median(rates: &mut [f64]) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

fn spread(rates: &mut [f64]) -> String {
    let median = median(rates);
    format!("{median:.2} ({:.2}-{:.2})", rates[0], rates[rates.len() - 1])
}
