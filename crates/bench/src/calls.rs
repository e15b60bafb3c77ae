//! Counts the driver calls for a buffer that is used on one stream, and compares them with those of a C program.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use curium_driver::sys::CUresult;
use curium_driver::{
    Call, Context, Function, Kernel, LaunchConfig, Library, Stream, observe_calls,
};
use curium_memory::DeviceBuffer;

use crate::error::checked;
use crate::{Comparison, Error, Plan, Result, Unit, Way};

type Nothing = Kernel<(&'static mut [u32], u32)>;

const NOTHING: &str = ".version 7.0\n.target sm_52\n.address_size 64\n\
    .visible .entry nothing(.param .u64 x, .param .u32 n)\n{\n ret;\n}\n";
const COUNT: usize = 256;

/// The stream and the kernel for the buffer.
struct Bench {
    stream: Stream,
    kernel: Nothing,
    source: DeviceBuffer<u32>,
}

/// The calls of a C program, which it counts itself.
struct Twin<'a> {
    bench: &'a Bench,
    calls: usize,
}

pub(crate) fn ids(plan: &Plan) -> Vec<String> {
    plan.uses.iter().map(|uses| id(*uses)).collect()
}

fn id(uses: usize) -> String {
    format!("calls/one-stream/{uses}")
}

pub(crate) fn run(
    context: &Context,
    plan: &Plan,
    observe: &mut dyn FnMut(Comparison) -> Result<()>,
) -> Result<()> {
    for &uses in plan.uses.iter().filter(|uses| plan.wants(&id(**uses))) {
        let bench = Bench::new(context)?;
        let measure = |way| {
            let calls = match way {
                Way::C => Twin {
                    bench: &bench,
                    calls: 0,
                }
                .run(uses)?,
                Way::Curium => counted(|| bench.run(uses))?,
            };
            bench.stream.synchronize()?;
            Ok(calls as f64)
        };
        observe(Comparison::measure(
            id(uses),
            Unit::Calls,
            plan.rounds.min(5),
            measure,
        )?)?;
    }
    Ok(())
}

/// Returns the number of driver calls of this thread during `operation`, as the call observer reports them.
fn counted(operation: impl FnOnce() -> Result<()>) -> Result<usize> {
    let (calls, own) = (Arc::new(AtomicUsize::new(0)), thread::current().id());
    let counter = Arc::clone(&calls);
    let guard = observe_calls(move |_: &Call<'_>| {
        if thread::current().id() == own {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    });
    operation()?;
    drop(guard);
    Ok(calls.load(Ordering::Relaxed))
}

impl Bench {
    fn new(context: &Context) -> Result<Self> {
        let stream = context.stream()?;
        let source = DeviceBuffer::zeroed(&stream, COUNT)?;
        stream.synchronize()?;
        Ok(Self {
            kernel: Library::from_ptx(context.driver(), NOTHING)?.kernel("nothing")?,
            stream,
            source,
        })
    }

    /// Allocates a buffer, fills it, writes it with a kernel, copies it `uses` times, and frees it.
    fn run(&self, uses: usize) -> Result<()> {
        let mut buffer = DeviceBuffer::<u32>::uninit(&self.stream, COUNT)?;
        for _ in 0..uses {
            buffer.as_slice_mut().fill(1)?;
            // SAFETY: the kernel does nothing.
            unsafe {
                self.kernel.launch(
                    &self.stream,
                    LaunchConfig::new(1, 32),
                    (&mut buffer, COUNT as u32),
                )
            }?;
            buffer.copy_from_device(&self.source)?;
        }
        buffer.close().map_err(curium_driver::Error::from)?;
        Ok(())
    }
}

impl Twin<'_> {
    fn run(mut self, uses: usize) -> Result<usize> {
        let (api, stream) = (self.bench.stream.driver().api(), self.bench.stream.as_raw());
        let function = Function::cuMemAllocAsync;
        let allocate = api.cuMemAllocAsync.ok_or(Error::Missing(function))?;
        let mut address = 0;
        // SAFETY: `address` is valid for writes, and the stream is live.
        self.call(function, || unsafe {
            allocate(&raw mut address, size_of::<u32>() * COUNT, stream)
        })?;
        for _ in 0..uses {
            self.use_once(address)?;
        }
        let function = Function::cuMemFreeAsync;
        let free = api.cuMemFreeAsync.ok_or(Error::Missing(function))?;
        // SAFETY: the memory is live, and all accesses to it are on the stream.
        self.call(function, || unsafe { free(address, stream) })?;
        Ok(self.calls)
    }

    fn use_once(&mut self, address: u64) -> Result<()> {
        let (api, stream) = (self.bench.stream.driver().api(), self.bench.stream.as_raw());
        let function = Function::cuMemsetD32Async;
        let fill = api.cuMemsetD32Async.ok_or(Error::Missing(function))?;
        // SAFETY: the memory has this many words.
        self.call(function, || unsafe { fill(address, 1, COUNT, stream) })?;
        let function = Function::cuLaunchKernel;
        let launch = api.cuLaunchKernel.ok_or(Error::Missing(function))?;
        let (mut x, mut n) = (address, COUNT as u32);
        let mut places = [(&raw mut x).cast(), (&raw mut n).cast::<c_void>()];
        let (kernel, places) = (self.bench.kernel.as_raw(), places.as_mut_ptr());
        // SAFETY: the kernel has parameters of these sizes, which it does not access.
        self.call(function, || unsafe {
            launch(
                kernel,
                1,
                1,
                1,
                32,
                1,
                1,
                0,
                stream,
                places,
                ptr::null_mut(),
            )
        })?;
        let (source, bytes) = (
            self.bench.source.as_pointer().as_raw(),
            size_of::<u32>() * COUNT,
        );
        let function = Function::cuMemcpyDtoDAsync_v2;
        let copy = api.cuMemcpyDtoDAsync_v2.ok_or(Error::Missing(function))?;
        // SAFETY: both sides have this many bytes.
        self.call(function, || unsafe { copy(address, source, bytes, stream) })
    }

    fn call(&mut self, function: Function, call: impl FnOnce() -> CUresult) -> Result<()> {
        self.calls += 1;
        checked(function, call())
    }
}
