//! Measures waits for device work: an awaited future compared to `cuStreamSynchronize`, in a
//! context that spins and in one that blocks.
//!
//! 1. The time from the launch of a kernel of a fixed duration until the host continues.
//! 2. The CPU time of all threads of the process during a wait of one second.
//! 3. The time from the end of the work until the host continues.
//!
//! For the third, a kernel polls a word in mapped memory until a second host thread sets it; that
//! thread records the time just before. Every measurement therefore includes the propagation of the
//! word to the device, the end of the kernel, and the notification of the waiting thread.
//!
//! Runs on this machine's driver with `CURIUM_TEST_DRIVER=cuda`, otherwise on the simulator, whose
//! times are not those of hardware.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::error::Error;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context as TaskContext, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use curium_driver::{
    Context, ContextFlags, ContextOptions, Device, DevicePointer, Driver, Event, EventFlags,
    Kernel, LaunchConfig, Library, Result, Stream,
};
use curium_memory::{DeviceBuffer, PinnedBuffer, PinnedFlags};
use curium_sim::{Config, Simulator};
use curium_tests::{Samples, kernels, uses_cuda};

/// Runs for a number of nanoseconds.
const BUSY: &str = "
.version 7.8
.target sm_75
.address_size 64
.visible .entry busy(.param .u64 nanoseconds)
{
    .reg .pred %p;
    .reg .u64 %begin, %now, %limit;
    ld.param.u64 %limit, [nanoseconds];
    mov.u64 %begin, %globaltimer;
again:
    mov.u64 %now, %globaltimer;
    sub.u64 %now, %now, %begin;
    setp.lt.u64 %p, %now, %limit;
    @%p bra again;
    ret;
}
";

type Busy = Kernel<(u64,)>;
type Spin = Kernel<(DevicePointer<u32>, u64, &'static mut [u64])>;

/// The number of times the kernel polls the word before it gives up.
const PATIENCE: u64 = 1 << 40;

/// The duration of the device work and the number of measurements.
type Plan = &'static [(Duration, usize)];

const HARDWARE: Plan = &[
    (Duration::from_micros(100), 300),
    (Duration::from_millis(1), 300),
    (Duration::from_millis(20), 60),
];
const SIMULATOR: Plan = &[(Duration::from_millis(1), 3)];

/// The durations of the kernels whose launch and wait are measured together.
const HARDWARE_KERNELS: Plan = &[
    (Duration::from_micros(20), 500),
    (Duration::from_micros(100), 300),
    (Duration::from_millis(1), 300),
    (Duration::from_millis(5), 60),
];
const SIMULATOR_KERNELS: Plan = &[
    (Duration::from_micros(20), 3),
    (Duration::from_millis(1), 3),
];

/// The way the host waits.
#[derive(Clone, Copy)]
enum Way {
    Synchronize,
    AwaitStream,
    AwaitEvent,
}

/// A way to wait in a context with these flags.
struct Alternative {
    name: &'static str,
    flags: ContextFlags,
    way: Way,
}

const ALTERNATIVES: [Alternative; 5] = [
    Alternative {
        name: "cuStreamSynchronize, context spins",
        flags: ContextFlags::SPIN,
        way: Way::Synchronize,
    },
    Alternative {
        name: "cuStreamSynchronize, context blocks",
        flags: ContextFlags::BLOCKING_SYNC,
        way: Way::Synchronize,
    },
    Alternative {
        name: "stream.completion().await, spins",
        flags: ContextFlags::SPIN,
        way: Way::AwaitStream,
    },
    Alternative {
        name: "stream.completion().await, blocks",
        flags: ContextFlags::BLOCKING_SYNC,
        way: Way::AwaitStream,
    },
    Alternative {
        name: "event.completion().await, spins",
        flags: ContextFlags::SPIN,
        way: Way::AwaitEvent,
    },
];

/// A kernel whose end another thread triggers.
struct Work {
    kernel: Spin,
    stream: Stream,
    event: Event,
    looks: DeviceBuffer<u64>,
    word: PinnedBuffer<u32>,
    /// Makes the thread end the work after this time.
    end_after: Sender<Duration>,
    /// The time at which the thread ended the work.
    ended: Receiver<Instant>,
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let driver = if uses_cuda() {
        Driver::load()?
    } else {
        let simulator = Simulator::new(Config::new())?;
        // SAFETY: the functions are the simulator's, which the driver keeps.
        unsafe { Driver::from_api_with_owner(simulator.api(), simulator) }?
    };
    let device = driver.device(0)?;
    println!("{} on CUDA {}", device.name()?, driver.version());
    measure_kernels(&device)?;
    measure_idle_waits(&device)?;
    println!("from the end of work to the host: median [quartiles]");
    for Alternative { name, flags, way } in ALTERNATIVES {
        let mut work = Work::new(&context(&device, flags)?)?;
        for &(time, count) in if uses_cuda() { HARDWARE } else { SIMULATOR } {
            work.latency(way, time)?;
            let samples = (0..count)
                .map(|_| work.latency(way, time))
                .collect::<Result<Samples>>()?;
            println!(
                "{name:36} after {time:>6?}: {samples}, at most {:.1} µs",
                samples.quantile(1.0) / 1e3
            );
        }
    }
    Ok(())
}

/// Measures launches of kernels of fixed durations with the waits for them. The alternatives take
/// turns, so that disturbances affect all of them.
fn measure_kernels(device: &Device) -> std::result::Result<(), Box<dyn Error>> {
    println!("launch of a kernel until the host continues: median [quartiles]");
    let mut kernels = Vec::new();
    for Alternative { name, flags, way } in ALTERNATIVES {
        kernels.push((name, way, BusyWork::new(&context(device, flags)?)?));
    }
    for &(time, count) in if uses_cuda() {
        HARDWARE_KERNELS
    } else {
        SIMULATOR_KERNELS
    } {
        let mut samples = vec![Vec::new(); kernels.len()];
        for round in 0..count + 5 {
            for ((_, way, work), times) in kernels.iter().zip(&mut samples) {
                let taken = work.run(*way, time)?;
                // The first rounds are not measured.
                if round >= 5 {
                    times.push(taken);
                }
            }
        }
        let medians: Vec<f64> = samples
            .iter()
            .map(|times| Samples::from_iter(times.iter().copied()).median())
            .collect();
        for ((name, _, _), times) in kernels.iter().zip(samples) {
            let samples = Samples::from_iter(times);
            println!(
                "{name:36} {time:>6?}: {samples}, {:+.1} µs",
                (samples.median() - medians[0]) / 1e3
            );
        }
    }
    Ok(())
}

/// Measures the CPU time of the process during waits of one second.
fn measure_idle_waits(device: &Device) -> std::result::Result<(), Box<dyn Error>> {
    println!("CPU time during a wait of 1 s: all threads, the thread that watches");
    for Alternative { name, flags, way } in ALTERNATIVES {
        let work = BusyWork::new(&context(device, flags)?)?;
        // After a short wait, and after a long one.
        for _ in 0..if uses_cuda() { 2 } else { 1 } {
            let before = cpu_times();
            work.run(way, Duration::from_secs(1))?;
            let after = cpu_times();
            if let (Ok(before), Ok(after)) = (before, after) {
                println!(
                    "{name:36} {:>10.3?} {:>10.3?}",
                    after.all.saturating_sub(before.all),
                    after.watcher.saturating_sub(before.watcher)
                );
            }
        }
    }
    Ok(())
}

/// The CPU time of threads of this process.
struct CpuTimes {
    all: Duration,
    /// That of the background thread of futures.
    watcher: Duration,
}

/// Returns the CPU times so far, which Linux reports for each thread.
fn cpu_times() -> std::result::Result<CpuTimes, Box<dyn Error>> {
    let mut times = CpuTimes {
        all: Duration::ZERO,
        watcher: Duration::ZERO,
    };
    for task in std::fs::read_dir("/proc/self/task")? {
        let folder = task?.path();
        let statistics = std::fs::read_to_string(folder.join("schedstat"))?;
        let on_cpu = statistics.split_whitespace().next().unwrap_or_default();
        let time = Duration::from_nanos(on_cpu.parse()?);
        times.all += time;
        if std::fs::read_to_string(folder.join("comm"))?.trim() == "curium-watch" {
            times.watcher += time;
        }
    }
    Ok(times)
}

/// Kernels of a fixed duration on a stream.
struct BusyWork {
    kernel: Busy,
    stream: Stream,
    event: Event,
}

impl BusyWork {
    fn new(context: &Context) -> Result<Self> {
        Ok(Self {
            kernel: Library::from_ptx(context.driver(), BUSY)?.kernel("busy")?,
            stream: context.stream()?,
            event: Event::new(context, EventFlags::DISABLE_TIMING)?,
        })
    }

    /// Returns the time from the launch of a kernel of this duration until the host continues.
    fn run(&self, way: Way, time: Duration) -> Result<Duration> {
        let nanoseconds = time.as_nanos() as u64;
        let begin = Instant::now();
        // SAFETY: the kernel accesses no memory.
        unsafe {
            self.kernel
                .launch(&self.stream, LaunchConfig::new(1, 1), (nanoseconds,))
        }?;
        match way {
            Way::Synchronize => self.stream.synchronize()?,
            Way::AwaitStream => block_on(self.stream.completion())?,
            Way::AwaitEvent => {
                self.event.record(&self.stream)?;
                block_on(self.event.completion())?;
            }
        }
        Ok(begin.elapsed())
    }
}

fn context(device: &Device, flags: ContextFlags) -> Result<Context> {
    device.create_context(ContextOptions::new().with_flags(flags))
}

impl Work {
    fn new(context: &Context) -> Result<Self> {
        let stream = context.stream()?;
        let mut word =
            PinnedBuffer::zeroed(context, 1, PinnedFlags::PORTABLE | PinnedFlags::DEVICE_MAP)?;
        let (end_after, times) = channel::<Duration>();
        let (end, ended) = channel();
        // SAFETY: the word is live until the thread's channel is closed, and is accessed only as an
        // atomic from here on.
        let shared: &'static AtomicU32 = unsafe { AtomicU32::from_ptr(word.as_mut_ptr()) };
        thread::spawn(move || {
            for time in times {
                thread::sleep(time);
                let now = Instant::now();
                shared.store(1, Ordering::Release);
                if end.send(now).is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            kernel: Library::from_ptx(context.driver(), kernels::SPIN)?.kernel("spin")?,
            event: Event::new(context, EventFlags::DISABLE_TIMING)?,
            looks: DeviceBuffer::zeroed(&stream, 1)?,
            stream,
            word,
            end_after,
            ended,
        })
    }

    /// Returns the time from the end of work of this duration until the host continues.
    fn latency(&mut self, way: Way, time: Duration) -> Result<Duration> {
        // SAFETY: the word is live, and only this thread and the one that ends the work access it.
        let word = unsafe { AtomicU32::from_ptr(self.word.as_mut_ptr()) };
        word.store(0, Ordering::Release);
        let word_pointer = DevicePointer::from_raw(word.as_ptr().expose_provenance() as u64);
        // SAFETY: the kernel reads the word, which is mapped at its host address, and writes one
        // element.
        unsafe {
            self.kernel.launch(
                &self.stream,
                LaunchConfig::new(1, 1),
                (word_pointer, PATIENCE, &mut self.looks),
            )
        }?;
        self.event.record(&self.stream)?;
        self.end_after
            .send(time)
            .expect("the other thread waits for more");
        match way {
            Way::Synchronize => self.stream.synchronize()?,
            Way::AwaitStream => block_on(self.stream.completion())?,
            Way::AwaitEvent => block_on(self.event.completion())?,
        }
        let now = Instant::now();
        let ended = self
            .ended
            .recv()
            .expect("the other thread sends the time at which it ended the work");
        Ok(now.saturating_duration_since(ended))
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread, which is parked while the future is pending.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match future.as_mut().poll(&mut TaskContext::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}
