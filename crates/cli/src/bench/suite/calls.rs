//! Counts the driver calls for a buffer that is used on one stream, and compares them with those of
//! a C program.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::Result;
use curium::driver::AsRawStream as _;
use curium::driver::{Call, observe_calls};
use curium::prelude::{Context, DeviceBuffer, Kernel, LaunchConfig, Library, Stream};

use super::{Comparison, Implementation, Observer, Plan, Unit, call};

type Empty = Kernel<(&'static mut [u32], u32)>;

const PTX: &str = ".version 7.0\n.target sm_52\n.address_size 64\n\
    .visible .entry empty(.param .u64 x, .param .u32 n)\n{\n ret;\n}\n";
const COUNT: usize = 256;
const BYTES: usize = COUNT * size_of::<u32>();

/// The stream and the kernel for the buffer.
struct Bench {
    stream: Stream,
    kernel: Empty,
    source: DeviceBuffer<u32>,
}

pub(super) fn ids(plan: &Plan) -> Vec<String> {
    plan.uses.iter().map(|uses| id(*uses)).collect()
}

fn id(uses: usize) -> String {
    format!("calls/one-stream/{uses}")
}

pub(super) fn run(context: &Context, plan: &Plan, observe: &mut Observer<'_>) -> Result<()> {
    for &uses in plan.uses.iter().filter(|uses| plan.wants(&id(**uses))) {
        let bench = Bench::new(context)?;
        let rounds = plan.rounds.min(5);
        let comparison = Comparison::measure(id(uses), Unit::Calls, rounds, |implementation| {
            let calls = match implementation {
                Implementation::C => bench.run_as_c(uses)?,
                Implementation::Curium => count_calls(|| bench.run(uses))?,
            };
            bench.stream.synchronize()?;
            Ok(calls as f64)
        })?;
        observe(comparison)?;
    }
    Ok(())
}

/// Returns the number of driver calls of this thread during `operation`, as the call observer
/// reports them.
fn count_calls(operation: impl FnOnce() -> Result<()>) -> Result<usize> {
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&calls);
    let this_thread = thread::current().id();
    let guard = observe_calls(move |_: &Call<'_>| {
        if thread::current().id() == this_thread {
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
            kernel: Library::from_ptx(context.driver(), PTX)?.kernel("empty")?,
            stream,
            source,
        })
    }

    /// Allocates a buffer, fills it, writes it with a kernel, copies it `uses` times, and frees it.
    fn run(&self, uses: usize) -> Result<()> {
        let mut buffer = DeviceBuffer::<u32>::uninit(&self.stream, COUNT)?;
        for _ in 0..uses {
            buffer.fill(1)?;
            let config = LaunchConfig::new(1, 32);
            let arguments = (&mut buffer, COUNT as u32);
            // SAFETY: the kernel does nothing.
            unsafe { self.kernel.launch(&self.stream, config, arguments) }?;
            buffer.copy_from_device(&self.source)?;
        }
        buffer.close().map_err(curium::Error::from)?;
        Ok(())
    }

    /// Does the same as a C program, and returns the number of driver calls.
    fn run_as_c(&self, uses: usize) -> Result<usize> {
        let driver = self.stream.driver();
        let stream = self.stream.as_raw();
        let mut address = 0;
        // SAFETY: `address` is valid for writes, and the stream is live.
        unsafe { call!(driver, cuMemAllocAsync(&raw mut address, BYTES, stream)) }?;
        let mut calls = 1;
        for _ in 0..uses {
            // SAFETY: the memory has this many words.
            unsafe { call!(driver, cuMemsetD32Async(address, 1, COUNT, stream)) }?;
            self.launch_as_c(address)?;
            let source = self.source.as_pointer().as_raw();
            // SAFETY: source and destination have this many bytes.
            unsafe { call!(driver, cuMemcpyDtoDAsync_v2(address, source, BYTES, stream)) }?;
            calls += 3;
        }
        // SAFETY: the memory is live, and all accesses to it are on the stream.
        unsafe { call!(driver, cuMemFreeAsync(address, stream)) }?;
        Ok(calls + 1)
    }

    fn launch_as_c(&self, address: u64) -> Result<()> {
        let mut x = address;
        let mut n = COUNT as u32;
        let mut arguments: [*mut c_void; 2] = [(&raw mut x).cast(), (&raw mut n).cast()];
        // SAFETY: the kernel has parameters of these sizes, which it does not access.
        unsafe {
            call!(
                self.stream.driver(),
                cuLaunchKernel(
                    self.kernel.as_raw(),
                    1,
                    1,
                    1,
                    32,
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
}
