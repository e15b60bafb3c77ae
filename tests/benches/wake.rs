//! Measures the time from the end of device work until the host continues: an awaited future compared to
//! `cuStreamSynchronize`, in a context that spins and in one that blocks.
//!
//! A kernel polls a word in mapped memory until a second host thread sets it; that thread records the time just before.
//! Every measurement therefore includes the propagation of the word to the device, the end of the kernel, and the
//! notification of the waiting thread.
//!
//! Runs on this machine's driver with `CURIUM_TEST_DRIVER=cuda`, otherwise on the simulator, whose times are not those
//! of hardware.
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

/// The way the host waits.
#[derive(Clone, Copy)]
enum Way {
    Synchronize,
    AwaitStream,
    AwaitEvent,
}

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
    println!(
        "{} on CUDA {}: from the end of work to the host: median [quartiles]",
        device.name()?,
        driver.version()
    );
    let ways = [
        (
            "cuStreamSynchronize, context spins",
            ContextFlags::SPIN,
            Way::Synchronize,
        ),
        (
            "cuStreamSynchronize, context blocks",
            ContextFlags::BLOCKING_SYNC,
            Way::Synchronize,
        ),
        (
            "stream.completion().await, spins",
            ContextFlags::SPIN,
            Way::AwaitStream,
        ),
        (
            "stream.completion().await, blocks",
            ContextFlags::BLOCKING_SYNC,
            Way::AwaitStream,
        ),
        (
            "event.completion().await, spins",
            ContextFlags::SPIN,
            Way::AwaitEvent,
        ),
    ];
    for (name, flags, way) in ways {
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
        // SAFETY: the word is live until the thread's channel is closed, and is accessed only as an atomic from here
        // on.
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
        // SAFETY: the kernel reads the word, which is mapped at its host address, and writes one element.
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
