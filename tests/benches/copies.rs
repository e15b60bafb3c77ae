//! Measures copies between slices and the device, by size and direction, beside the three forms of
//! C: `cuMemcpyHtoD`, `cuMemcpyHtoDAsync`, and `cuMemcpyHtoDAsync` with a wait. Runs on a GPU.
//!
//! The first table has the time of one call on an idle stream, the second the time per call of many
//! calls in a row with a wait at the end. Each number is the median of the medians of several
//! repeats, with the lowest and the highest.
//!
//! `-- sweep` measures the ways in which Curium can copy instead: the driver's copy, bounce
//! buffers, and staging buffers with several numbers of threads. The defaults of `StagingOptions`
//! are from this table. `-- parts` measures what a small copy to the device consists of, in C.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::error::Error;
use std::fmt;
use std::time::{Duration, Instant};

use curium_driver::{AsRawStream as _, Driver, Result, Stream, call};
use curium_memory::{DeviceBuffer, PinnedBuffer, PinnedFlags, Staging, StagingOptions};
use curium_tests::{Samples, uses_cuda};

/// The sizes in bytes of the copies.
const SIZES: [usize; 20] = [
    64,
    256,
    1 << 10,
    4 << 10,
    16 << 10,
    32 << 10,
    64 << 10,
    128 << 10,
    256 << 10,
    512 << 10,
    1 << 20,
    2 << 20,
    4 << 20,
    8 << 20,
    16 << 20,
    32 << 20,
    64 << 20,
    128 << 20,
    256 << 20,
    1 << 30,
];

/// The sizes in bytes of the sweep.
const SWEPT: [usize; 9] = [
    16 << 10,
    64 << 10,
    256 << 10,
    512 << 10,
    1 << 20,
    2 << 20,
    4 << 20,
    8 << 20,
    16 << 20,
];

/// The number of repeats of each measurement.
const REPEATS: usize = 7;

/// The number of bytes that a repeat copies, and the limits of the number of its copies.
const BYTES: usize = 64 << 20;
const MIN_COPIES: usize = 3;
const MAX_COPIES: usize = 300;

/// The maximum number of copies in a row without a wait.
const ROW: usize = 100;

#[derive(Clone, Copy)]
enum Direction {
    ToDevice,
    ToHost,
}

/// A form of a copy.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Synchronous,
    Asynchronous,
    AsynchronousAndWait,
    Curium,
}

const FORMS: [Form; 4] = [
    Form::Synchronous,
    Form::Asynchronous,
    Form::AsynchronousAndWait,
    Form::Curium,
];

/// The source and destination of the copies.
struct Sides {
    stream: Stream,
    host: Vec<u8>,
    device: DeviceBuffer<u8>,
}

/// The medians of the repeats, in nanoseconds.
struct Medians(Samples);

fn main() -> Result<(), Box<dyn Error>> {
    if !uses_cuda() {
        println!(
            "times of the simulator are not meaningful; CURIUM_TEST_DRIVER=cuda measures on this machine's driver"
        );
        return Ok(());
    }
    let context = Driver::load()?.device(0)?.primary_context()?;
    let stream = context.stream()?;
    // The synchronous form requires a current context.
    context.entered(|_| match std::env::args().nth(1).as_deref() {
        Some("sweep") => sweep(&stream),
        Some("parts") => parts(&stream),
        _ => compare(&stream),
    })?;
    Ok(())
}

/// Prints the time of each size, direction and form.
fn compare(stream: &Stream) -> Result<()> {
    for is_row in [false, true] {
        for direction in [Direction::ToDevice, Direction::ToHost] {
            let subject = if is_row {
                "per call of many in a row"
            } else {
                "of one call on an idle stream"
            };
            println!("\nns {subject}, {direction}: median [lowest highest] of {REPEATS} repeats");
            println!(
                "{:>10}  {:>28}  {:>28}  {:>28}  {:>28}  best C / Curium  sync C / Curium",
                "bytes", "sync", "async", "async + wait", "Curium"
            );
            for bytes in SIZES {
                let mut sides = Sides::new(stream, bytes)?;
                let medians = sides.measure(direction, &FORMS, is_row)?;
                let [synchronous, asynchronous, waited, curium] = &medians[..] else {
                    unreachable!("there are four forms")
                };
                let best = synchronous
                    .median()
                    .min(asynchronous.median())
                    .min(waited.median());
                println!(
                    "{bytes:>10}  {synchronous}  {asynchronous}  {waited}  {curium}  {:>15.2}  {:>15.2}",
                    best / curium.median(),
                    synchronous.median() / curium.median(),
                );
            }
        }
    }
    Ok(())
}

/// Prints the time of one copy through Curium with each set of options.
fn sweep(stream: &Stream) -> Result<()> {
    let base = StagingOptions::new()
        .with_upload_bounce_bytes(0)
        .with_download_bounce_bytes(0)
        .with_threshold(usize::MAX);
    for direction in [Direction::ToDevice, Direction::ToHost] {
        println!("\nns of one copy on an idle stream, {direction}: median [lowest highest]");
        for bytes in SWEPT {
            let mut ways = vec![
                ("driver".to_owned(), base),
                (
                    "bounce".to_owned(),
                    base.with_upload_bounce_bytes(bytes)
                        .with_download_bounce_bytes(bytes),
                ),
            ];
            if bytes >= 256 << 10 {
                for threads in [3, 4, 6, 8, 12, 16] {
                    let options = base.with_threads(threads).with_threshold(bytes);
                    ways.push((format!("staged by {threads} threads"), options));
                }
            }
            let mut sides = Sides::new(stream, bytes)?;
            for (name, options) in ways {
                Staging::set_options(stream.context(), options)?;
                let medians = sides.measure(direction, &[Form::Curium], false)?;
                println!("{bytes:>10}  {name:<22}  {}", medians[0]);
            }
        }
    }
    Ok(())
}

/// The source of the copies of a part.
#[derive(Clone, Copy)]
enum Source {
    /// Pageable memory.
    Pageable,
    /// The same bytes of pinned memory for each copy.
    Pinned,
    /// The same bytes of pinned memory, copied from pageable memory before each copy.
    Staged,
    /// The bytes of a circle of 512 KiB in pinned memory, copied from pageable memory before each
    /// copy.
    StagedInCircle,
}

const SOURCES: [(&str, Source); 4] = [
    ("pageable", Source::Pageable),
    ("pinned", Source::Pinned),
    ("pinned, after a copy by the CPU", Source::Staged),
    (
        "circle of 512 KiB, after a copy by the CPU",
        Source::StagedInCircle,
    ),
];

/// Prints the times of the calls that a small copy to the device consists of.
fn parts(stream: &Stream) -> Result<()> {
    const CALLS: usize = 300;
    let driver = stream.driver();
    let raw = stream.as_raw();
    let event = stream.pooled_event()?;
    for name in ["cuStreamIsCapturing", "cuEventRecord", "cuStreamQuery"] {
        let mut times = Vec::new();
        for _ in 0..CALLS {
            let begin = Instant::now();
            match name {
                "cuStreamIsCapturing" => drop(stream.is_capturing()?),
                "cuEventRecord" => event.record(stream)?,
                _ => drop(stream.is_finished()?),
            }
            times.push(begin.elapsed());
        }
        stream.synchronize()?;
        println!(
            "{name:<22} {:>8.0} ns",
            times.into_iter().collect::<Samples>().median()
        );
    }
    println!("ns of cuMemcpyHtoDAsync: on an idle stream, and per call of {CALLS} in a row");
    for bytes in [64, 1 << 10, 4 << 10, 16 << 10, 64 << 10] {
        let device = DeviceBuffer::<u8>::zeroed(stream, bytes)?;
        let target = device.as_pointer().as_raw();
        let pageable = vec![1_u8; bytes];
        let mut pinned =
            PinnedBuffer::<u8>::zeroed(stream.context(), 512 << 10, PinnedFlags::empty())?;
        let slots = pinned.len() / bytes;
        for (name, source) in SOURCES {
            let mut idle = Vec::new();
            let mut row = Duration::ZERO;
            for is_row in [false, true] {
                let whole = Instant::now();
                for copy in 0..CALLS {
                    let begin = Instant::now();
                    let slot = match source {
                        Source::StagedInCircle => copy % slots * bytes,
                        _ => 0,
                    };
                    let staged = &mut pinned[slot..slot + bytes];
                    if matches!(source, Source::Staged | Source::StagedInCircle) {
                        staged.copy_from_slice(&pageable);
                    }
                    let from = match source {
                        Source::Pageable => pageable.as_ptr(),
                        _ => staged.as_ptr(),
                    };
                    // SAFETY: both sides have this many bytes, and live until the stream is
                    // synchronized below.
                    unsafe {
                        call!(
                            driver,
                            cuMemcpyHtoDAsync_v2(target, from.cast(), bytes, raw)
                        )
                    }?;
                    idle.push(begin.elapsed());
                    if !is_row {
                        stream.synchronize()?;
                    }
                }
                stream.synchronize()?;
                row = whole.elapsed();
                if is_row {
                    idle.truncate(CALLS);
                }
            }
            println!(
                "{bytes:>6}  {name:<44} {:>8.0} {:>8.0}",
                idle.into_iter().collect::<Samples>().median(),
                row.as_nanos() as f64 / CALLS as f64,
            );
        }
    }
    Ok(())
}

impl Sides {
    fn new(stream: &Stream, bytes: usize) -> Result<Self> {
        Ok(Self {
            stream: stream.clone(),
            host: vec![1; bytes],
            device: DeviceBuffer::zeroed(stream, bytes)?,
        })
    }

    /// Returns the medians of the repeats of each form. The forms alternate.
    fn measure(
        &mut self,
        direction: Direction,
        forms: &[Form],
        is_row: bool,
    ) -> Result<Vec<Medians>> {
        let copies = (BYTES / self.host.len()).clamp(MIN_COPIES, MAX_COPIES);
        let mut medians = vec![Vec::new(); forms.len()];
        for repeat in 0..=REPEATS {
            for (form, medians) in forms.iter().zip(&mut medians) {
                let median = if is_row {
                    self.row(direction, *form, copies.min(ROW))?
                } else {
                    self.single(direction, *form, copies)?
                };
                // The first repeat allocates buffers and warms up.
                if repeat > 0 {
                    medians.push(median);
                }
            }
        }
        Ok(medians
            .into_iter()
            .map(|medians| Medians(medians.into_iter().collect()))
            .collect())
    }

    /// Returns the median time of one call on an idle stream, in nanoseconds.
    fn single(&mut self, direction: Direction, form: Form, copies: usize) -> Result<f64> {
        let mut times = Vec::with_capacity(copies);
        for _ in 0..copies {
            let begin = Instant::now();
            self.copy(direction, form)?;
            times.push(begin.elapsed());
            self.stream.synchronize()?;
        }
        Ok(times.into_iter().collect::<Samples>().median())
    }

    /// Returns the time per call of calls in a row, in nanoseconds.
    fn row(&mut self, direction: Direction, form: Form, copies: usize) -> Result<f64> {
        let begin = Instant::now();
        for _ in 0..copies {
            self.copy(direction, form)?;
        }
        self.stream.synchronize()?;
        let elapsed: Duration = begin.elapsed();
        Ok(elapsed.as_nanos() as f64 / copies as f64)
    }

    fn copy(&mut self, direction: Direction, form: Form) -> Result<()> {
        let bytes = self.host.len();
        let raw = self.stream.as_raw();
        let driver = self.stream.driver();
        let device = self.device.as_pointer().as_raw();
        let host: *mut u8 = self.host.as_mut_ptr();
        match (direction, form) {
            (Direction::ToDevice, Form::Curium) => return self.device.copy_from_slice(&self.host),
            (Direction::ToHost, Form::Curium) => return self.device.copy_to_slice(&mut self.host),
            // SAFETY: both sides have this many bytes and live until the stream is synchronized,
            // and a context is current.
            (Direction::ToDevice, Form::Synchronous) => unsafe {
                call!(driver, cuMemcpyHtoD_v2(device, host.cast(), bytes))
            },
            // SAFETY: both sides have this many bytes and live until the stream is synchronized,
            // and a context is current.
            (Direction::ToHost, Form::Synchronous) => unsafe {
                call!(driver, cuMemcpyDtoH_v2(host.cast(), device, bytes))
            },
            // SAFETY: both sides have this many bytes and live until the stream is synchronized.
            (Direction::ToDevice, _) => unsafe {
                call!(
                    driver,
                    cuMemcpyHtoDAsync_v2(device, host.cast(), bytes, raw)
                )
            },
            // SAFETY: both sides have this many bytes and live until the stream is synchronized.
            (Direction::ToHost, _) => unsafe {
                call!(
                    driver,
                    cuMemcpyDtoHAsync_v2(host.cast(), device, bytes, raw)
                )
            },
        }?;
        if form == Form::AsynchronousAndWait {
            // SAFETY: the stream is live.
            unsafe { call!(driver, cuStreamSynchronize(raw)) }?;
        }
        Ok(())
    }
}

impl Medians {
    fn median(&self) -> f64 {
        self.0.median()
    }
}

impl fmt::Display for Medians {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [low, median, high] = [0.0, 0.5, 1.0].map(|part| self.0.quantile(part));
        write!(formatter, "{median:>10.0} [{low:.0} {high:.0}]")
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::ToDevice => "to the device",
            Self::ToHost => "to the host",
        })
    }
}
