//! The cost of a launch on the host: batches of an empty kernel with three arguments, on one or several threads with a stream each.

use std::ffi::c_void;
use std::hint::black_box;
use std::ptr;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use curium_driver::{Context, Function, Kernel, LaunchConfig, Library, Stream};
use curium_memory::DeviceBuffer;

use crate::error::checked;
use crate::{Error, Measurement, Plan, Result, Visit, Way};

type Nothing = Kernel<(&'static [f32], &'static mut [f32], u32)>;

const NOTHING: &str = ".version 7.0\n.target sm_52\n.address_size 64\n\
    .visible .entry nothing(.param .u64 x, .param .u64 y, .param .u32 n)\n{\n ret;\n}\n";
const COUNT: u32 = 256;

/// The resources of one launching thread.
struct Lane {
    kernel: Nothing,
    stream: Stream,
    x: DeviceBuffer<f32>,
    y: DeviceBuffer<f32>,
}

pub(crate) fn ids(plan: &Plan) -> Vec<String> {
    plan.threads
        .iter()
        .map(|threads| id(*threads))
        .chain(["launch/current/1".to_owned()])
        .collect()
}

fn id(threads: usize) -> String {
    format!("launch/threads/{threads}")
}

pub(crate) fn visit(context: &Context, plan: &Plan, visit: &mut Visit<'_>) -> Result<()> {
    for &threads in plan.threads {
        if plan.wants(&id(threads)) {
            visit(&mut measurement(id(threads), plan, context, threads)?)?;
        }
    }
    let current = "launch/current/1";
    if plan.wants(current) {
        context.scoped(|| visit(&mut measurement(current.to_owned(), plan, context, 1)?))??;
    }
    Ok(())
}

fn measurement(
    id: String,
    plan: &Plan,
    context: &Context,
    threads: usize,
) -> Result<Measurement<'static>> {
    let mut lanes = (0..threads)
        .map(|_| Lane::new(context))
        .collect::<Result<Vec<_>>>()?;
    Ok(Measurement::new(
        id,
        plan.rounds,
        [plan.launches; 2],
        move |way, count| batch(&mut lanes, way, count),
    ))
}

/// Launches on one thread per lane, and returns the time of the slowest.
fn batch(lanes: &mut [Lane], way: Way, launches: usize) -> Result<Duration> {
    let slowest = if let [lane] = lanes {
        lane.launches(way, launches)?
    } else {
        together(lanes, way, launches)?
    };
    lanes
        .iter()
        .try_for_each(|lane| lane.stream.synchronize())?;
    Ok(slowest)
}

fn together(lanes: &mut [Lane], way: Way, launches: usize) -> Result<Duration> {
    let barrier = Barrier::new(lanes.len());
    let time = |lane: &mut Lane| {
        barrier.wait();
        lane.launches(way, launches)
    };
    let times = thread::scope(|scope| {
        let threads: Vec<_> = lanes
            .iter_mut()
            .map(|lane| scope.spawn(|| time(lane)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no thread panics"))
            .collect::<Result<Vec<_>>>()
    })?;
    Ok(times.into_iter().max().unwrap_or_default())
}

impl Lane {
    fn new(context: &Context) -> Result<Self> {
        let stream = context.stream()?;
        let [x, y] = [
            DeviceBuffer::zeroed(&stream, COUNT as usize)?,
            DeviceBuffer::zeroed(&stream, COUNT as usize)?,
        ];
        stream.synchronize()?;
        Ok(Self {
            kernel: Library::from_ptx(context.driver(), NOTHING)?.kernel("nothing")?,
            stream,
            x,
            y,
        })
    }

    fn launches(&mut self, way: Way, count: usize) -> Result<Duration> {
        let begin = Instant::now();
        match way {
            Way::C => (0..count).try_for_each(|_| self.launch_as_c())?,
            Way::Curium => (0..count).try_for_each(|_| self.launch())?,
        }
        Ok(begin.elapsed())
    }

    /// Launches as a C program does: addresses of the arguments, call, check.
    #[inline(never)]
    fn launch_as_c(&mut self) -> Result<()> {
        let function = Function::cuLaunchKernel;
        let launch = self
            .kernel
            .driver()
            .api()
            .cuLaunchKernel
            .ok_or(Error::Missing(function))?;
        let (mut x, mut y) = (self.x.as_pointer().as_raw(), self.y.as_pointer().as_raw());
        let mut n = black_box(COUNT);
        let mut places = [
            (&raw mut x).cast(),
            (&raw mut y).cast(),
            (&raw mut n).cast::<c_void>(),
        ];
        let (kernel, stream, places) = (
            self.kernel.as_raw(),
            self.stream.as_raw(),
            places.as_mut_ptr(),
        );
        // SAFETY: the kernel and the stream are live, and the kernel has parameters of these sizes, which it ignores.
        checked(function, unsafe {
            launch(
                kernel,
                1,
                1,
                1,
                COUNT,
                1,
                1,
                0,
                stream,
                places,
                ptr::null_mut(),
            )
        })
    }

    #[inline(never)]
    fn launch(&mut self) -> Result<()> {
        let (config, n) = (LaunchConfig::new(1, COUNT), black_box(COUNT));
        // SAFETY: the kernel does nothing.
        Ok(unsafe {
            self.kernel
                .launch(&self.stream, config, (&self.x, &mut self.y, n))
        }?)
    }
}
