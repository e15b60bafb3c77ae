//! The cost of a launch on the host: batches of an empty kernel with three arguments, on one or
//! several threads with a stream each.

use std::ffi::c_void;
use std::hint::black_box;
use std::ptr;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use curium::driver::AsRawStream as _;
use curium::prelude::{Context, DeviceBuffer, Kernel, LaunchConfig, Library, Stream};

use super::{Implementation, Measurement, Observer, Plan, call};

type Empty = Kernel<(&'static [f32], &'static mut [f32], u32)>;

const PTX: &str = ".version 7.0\n.target sm_52\n.address_size 64\n\
    .visible .entry empty(.param .u64 x, .param .u64 y, .param .u32 n)\n{\n ret;\n}\n";

/// Launches on a thread whose current context is that of the kernel.
const CURRENT: &str = "launch/current/1";

const COUNT: u32 = 256;

/// The resources of one launching thread.
struct Launcher {
    kernel: Empty,
    stream: Stream,
    x: DeviceBuffer<f32>,
    y: DeviceBuffer<f32>,
}

pub(super) fn ids(plan: &Plan) -> Vec<String> {
    let mut ids: Vec<_> = plan.threads.iter().map(|threads| id(*threads)).collect();
    ids.push(CURRENT.to_owned());
    ids
}

fn id(threads: usize) -> String {
    format!("launch/threads/{threads}")
}

pub(super) fn run(context: &Context, plan: &Plan, observe: &mut Observer<'_>) -> Result<()> {
    for &threads in plan.threads {
        if plan.wants(&id(threads)) {
            observe(measurement(id(threads), plan, context, threads)?.compare()?)?;
        }
    }
    if plan.wants(CURRENT) {
        let comparison = context.scoped(|| {
            measurement(CURRENT.to_owned(), plan, context, 1).and_then(Measurement::compare)
        })?;
        observe(comparison?)?;
    }
    Ok(())
}

fn measurement(
    id: String,
    plan: &Plan,
    context: &Context,
    threads: usize,
) -> Result<Measurement<'static>> {
    let mut launchers = (0..threads)
        .map(|_| Launcher::new(context))
        .collect::<Result<Vec<_>>>()?;
    Ok(Measurement::new(
        id,
        plan.rounds,
        [plan.launches; 2],
        move |implementation, count| measure(&mut launchers, implementation, count),
    ))
}

/// Launches on one thread per launcher, and returns the time of the slowest.
fn measure(
    launchers: &mut [Launcher],
    implementation: Implementation,
    launches: usize,
) -> Result<Duration> {
    let slowest = if let [launcher] = launchers {
        launcher.measure(implementation, launches)?
    } else {
        measure_in_parallel(launchers, implementation, launches)?
    };
    for launcher in launchers {
        launcher.stream.synchronize()?;
    }
    Ok(slowest)
}

fn measure_in_parallel(
    launchers: &mut [Launcher],
    implementation: Implementation,
    launches: usize,
) -> Result<Duration> {
    let barrier = &Barrier::new(launchers.len());
    let times = thread::scope(|scope| {
        let threads: Vec<_> = launchers
            .iter_mut()
            .map(|launcher| {
                scope.spawn(move || {
                    barrier.wait();
                    launcher.measure(implementation, launches)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no thread panics"))
            .collect::<Result<Vec<_>>>()
    })?;
    Ok(times.into_iter().max().unwrap_or_default())
}

impl Launcher {
    fn new(context: &Context) -> Result<Self> {
        let stream = context.stream()?;
        let x = DeviceBuffer::zeroed(&stream, COUNT as usize)?;
        let y = DeviceBuffer::zeroed(&stream, COUNT as usize)?;
        stream.synchronize()?;
        Ok(Self {
            kernel: Library::from_ptx(context.driver(), PTX)?.kernel("empty")?,
            stream,
            x,
            y,
        })
    }

    fn measure(&mut self, implementation: Implementation, count: usize) -> Result<Duration> {
        let begin = Instant::now();
        match implementation {
            Implementation::C => (0..count).try_for_each(|_| self.launch_as_c())?,
            Implementation::Curium => (0..count).try_for_each(|_| self.launch())?,
        }
        Ok(begin.elapsed())
    }

    /// Launches as a C program does: addresses of the arguments, call, check.
    #[inline(never)]
    fn launch_as_c(&mut self) -> Result<()> {
        let mut x = self.x.as_pointer().as_raw();
        let mut y = self.y.as_pointer().as_raw();
        let mut n = black_box(COUNT);
        let mut arguments: [*mut c_void; 3] = [
            (&raw mut x).cast(),
            (&raw mut y).cast(),
            (&raw mut n).cast(),
        ];
        // SAFETY: the kernel and the stream are live, and the kernel has parameters of these sizes,
        // which it ignores.
        unsafe {
            call!(
                self.kernel.driver(),
                cuLaunchKernel(
                    self.kernel.as_raw(),
                    1,
                    1,
                    1,
                    COUNT,
                    1,
                    1,
                    0,
                    self.stream.as_raw(),
                    arguments.as_mut_ptr(),
                    ptr::null_mut(),
                )
            )
        }
    }

    #[inline(never)]
    fn launch(&mut self) -> Result<()> {
        let config = LaunchConfig::new(1, COUNT);
        let arguments = (&self.x, &mut self.y, black_box(COUNT));
        // SAFETY: the kernel does nothing.
        unsafe { self.kernel.launch(&self.stream, config, arguments) }?;
        Ok(())
    }
}
