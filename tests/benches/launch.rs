//! What a launch costs on the host, beside C's twin in the same run: batches of an empty kernel with three arguments, in turns, on
//! one thread and on several with a stream each.
//!
//! Runs on this machine's driver with `CURIUM_TEST_DRIVER=cuda`, else on the simulator, whose times say nothing of hardware.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::error::Error;
use std::ffi::c_void;
use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use curium_driver::sys::CUresult;
use curium_driver::{Context, Driver, Kernel, LaunchConfig, Library, Result, Stream};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, Simulator};
use curium_tests::{Samples, uses_cuda};

type Nothing = Kernel<(&'static [f32], &'static mut [f32], u32)>;

const NOTHING: &str = ".version 7.0\n.target sm_52\n.address_size 64\n\
    .visible .entry nothing(.param .u64 x, .param .u64 y, .param .u32 n)\n{\n ret;\n}\n";
const COUNT: u32 = 256;

/// How much is done.
struct Plan {
    rounds: usize,
    /// Launches in a batch, fewer than the driver queues before it has the host wait.
    launches: u32,
    threads: &'static [usize],
}

const HARDWARE: Plan = Plan { rounds: 301, launches: 400, threads: &[1, 2, 4] };
const SIMULATOR: Plan = Plan { rounds: 5, launches: 20, threads: &[1, 2] };

/// Who launches.
#[derive(Clone, Copy)]
enum Way {
    C,
    Curium,
}

/// What one thread launches with.
struct Lane {
    kernel: Nothing,
    stream: Stream,
    x: DeviceBuffer<f32>,
    y: DeviceBuffer<f32>,
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let plan = if uses_cuda() { HARDWARE } else { SIMULATOR };
    let driver = if uses_cuda() {
        Driver::load()?
    } else {
        let simulator = Simulator::new(Config::new())?;
        // SAFETY: the functions are the simulator's, which the driver keeps.
        unsafe { Driver::from_api_with_owner(simulator.api(), simulator) }?
    };
    let device = driver.device(0)?;
    let context = device.primary_context()?;
    println!("{} on CUDA {}: {} rounds of {} launches", device.name()?, driver.version(), plan.rounds, plan.launches);
    println!("{:26}{:34}{:34}Curium / C", "per launch", "C", "Curium");
    for &threads in plan.threads {
        report(&format!("{threads} threads"), &plan, &mut lanes(&context, threads)?)?;
    }
    context.set_current()?;
    report("1, its context current", &plan, &mut lanes(&context, 1)?)?;
    Ok(())
}

fn lanes(context: &Context, count: usize) -> Result<Vec<Lane>> {
    (0..count).map(|_| Lane::new(context)).collect()
}

/// Measures both in turns, each beginning every other round.
fn report(what: &str, plan: &Plan, lanes: &mut [Lane]) -> Result<()> {
    let mut rounds = Vec::new();
    for round in 0..=plan.rounds {
        let [c, curium] = if round % 2 == 0 {
            let c = batch(lanes, Way::C, plan.launches)?;
            [c, batch(lanes, Way::Curium, plan.launches)?]
        } else {
            let curium = batch(lanes, Way::Curium, plan.launches)?;
            [batch(lanes, Way::C, plan.launches)?, curium]
        };
        rounds.push((c, curium));
    }
    // The first round loads the kernel.
    let rounds = &rounds[1..];
    let c: Samples = rounds.iter().map(|(c, _)| *c).collect();
    let curium: Samples = rounds.iter().map(|(_, curium)| *curium).collect();
    let ratio: Samples = rounds.iter().map(|(c, curium)| curium / c).collect();
    let (low, middle, high) = (ratio.quantile(0.25), ratio.median(), ratio.quantile(0.75));
    println!(
        "{what:26}{c}  {curium}  {middle:.4} [{low:.4} {high:.4}], of the medians {:.4}",
        curium.median() / c.median()
    );
    Ok(())
}

/// Has every lane launch on a thread of its own; returns the nanoseconds for each launch on the slowest.
fn batch(lanes: &mut [Lane], way: Way, launches: u32) -> Result<f64> {
    let slowest = if let [lane] = lanes {
        lane.launches(way, launches)?
    } else {
        let barrier = Barrier::new(lanes.len());
        let time = |lane: &mut Lane| {
            barrier.wait();
            lane.launches(way, launches)
        };
        let times = thread::scope(|scope| {
            let threads: Vec<_> = lanes.iter_mut().map(|lane| scope.spawn(|| time(lane))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect::<Result<Vec<_>>>()
        })?;
        times.into_iter().max().unwrap_or_default()
    };
    lanes.iter().try_for_each(|lane| lane.stream.synchronize())?;
    Ok(slowest.as_nanos() as f64 / f64::from(launches))
}

impl Lane {
    fn new(context: &Context) -> Result<Self> {
        let stream = context.stream()?;
        let [x, y] = [DeviceBuffer::zeroed(&stream, COUNT as usize)?, DeviceBuffer::zeroed(&stream, COUNT as usize)?];
        stream.synchronize()?;
        Ok(Self { kernel: Library::from_ptx(context.driver(), NOTHING)?.kernel("nothing")?, stream, x, y })
    }

    fn launches(&mut self, way: Way, count: u32) -> Result<Duration> {
        let begin = Instant::now();
        match way {
            Way::C => (0..count).for_each(|_| self.launch_as_c()),
            Way::Curium => (0..count).try_for_each(|_| self.launch())?,
        }
        Ok(begin.elapsed())
    }

    /// What a C program does: the addresses of its arguments, the call, and a look at the code.
    #[inline(never)]
    fn launch_as_c(&mut self) {
        let launch = self.kernel.driver().api().cuLaunchKernel.expect("the driver launches");
        let (mut x, mut y) = (self.x.as_pointer().as_raw(), self.y.as_pointer().as_raw());
        let mut n = black_box(COUNT);
        let mut places = [(&raw mut x).cast(), (&raw mut y).cast(), (&raw mut n).cast::<c_void>()];
        let (kernel, stream, places) = (self.kernel.as_raw(), self.stream.as_raw(), places.as_mut_ptr());
        // SAFETY: the kernel and the stream are live, and it has parameters of these sizes, which it does not use.
        let code = unsafe { launch(kernel, 1, 1, 1, COUNT, 1, 1, 0, stream, places, std::ptr::null_mut()) };
        assert!(code == CUresult::CUDA_SUCCESS, "cuLaunchKernel returned {}", code.0);
    }

    #[inline(never)]
    fn launch(&mut self) -> Result<()> {
        let (config, n) = (LaunchConfig::new(1, COUNT), black_box(COUNT));
        // SAFETY: the kernel does nothing.
        unsafe { self.kernel.launch(&self.stream, config, (&self.x, &mut self.y, n)) }
    }
}
