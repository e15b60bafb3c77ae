//! Measures waits for kernels of fixed durations by NVIDIA's cuda-async, as `tests/benches/wake.rs`
//! does by Curium: the time from the launch until the host continues, beside its
//! `cuStreamSynchronize`, and the CPU time of waits of one second.
//!
//! Building it needs the headers of CUDA 13 and libclang: `pip install --target headers
//! nvidia-cuda-runtime nvidia-cuda-crt nvidia-curand libclang`,
//! `CUDA_HOME=$PWD/headers/nvidia/cu13` and `LIBCLANG_PATH=$PWD/headers/clang/native`.

use std::error::Error;
use std::future::{Future, IntoFuture};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use cuda_async::device_context::{global_policy, init_device_contexts, load_module_from_ptx};
use cuda_async::device_future::DeviceFuture;
use cuda_async::device_operation::{DeviceOp, ExecutionContext};
use cuda_async::error::DeviceError;
use cuda_async::launch::AsyncKernelLaunchBuilder;
use cuda_core::{Function, LaunchConfig};

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

struct Busy {
    function: Arc<Function>,
    nanoseconds: u64,
}

impl DeviceOp for Busy {
    type Output = ();

    unsafe fn execute(self, context: &ExecutionContext) -> Result<(), DeviceError> {
        let mut launch = AsyncKernelLaunchBuilder::new(self.function);
        launch.push_scalar_arg(self.nanoseconds);
        launch.set_launch_config(LaunchConfig {
            grid_dim: (1, 1, 1),
            block_dim: (1, 1, 1),
            shared_mem_bytes: 0,
        });
        // SAFETY: the kernel has this parameter, and accesses no memory.
        unsafe { launch.execute(context) }
    }
}

impl IntoFuture for Busy {
    type Output = Result<(), DeviceError>;
    type IntoFuture = DeviceFuture<(), Self>;

    fn into_future(self) -> Self::IntoFuture {
        let scheduled = global_policy(0).and_then(|policy| self.schedule(&policy));
        scheduled.unwrap_or_else(DeviceFuture::failed)
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

/// Returns the CPU time of all threads of this process.
fn cpu_time() -> Result<Duration, Box<dyn Error>> {
    let mut time = Duration::ZERO;
    for task in std::fs::read_dir("/proc/self/task")? {
        let statistics = std::fs::read_to_string(task?.path().join("schedstat"))?;
        let on_cpu = statistics.split_whitespace().next().unwrap_or_default();
        time += Duration::from_nanos(on_cpu.parse()?);
    }
    Ok(time)
}

fn main() -> Result<(), Box<dyn Error>> {
    init_device_contexts(0, 1)?;
    let module = load_module_from_ptx(BUSY, 0)?;
    let function = Arc::new(module.load_function("busy")?);
    let busy = |time: Duration| Busy {
        function: Arc::clone(&function),
        nanoseconds: time.as_nanos() as u64,
    };
    for (microseconds, count) in [(20, 500), (100, 300), (1_000, 300), (5_000, 60)] {
        let time = Duration::from_micros(microseconds);
        let mut samples = [Vec::new(), Vec::new()];
        for round in 0..count + 5 {
            for (is_awaited, samples) in samples.iter_mut().enumerate() {
                let begin = Instant::now();
                if is_awaited == 1 {
                    block_on(busy(time).into_future())?;
                } else {
                    busy(time).sync()?;
                }
                if round >= 5 {
                    samples.push(begin.elapsed());
                }
            }
        }
        let medians = samples.map(|mut times| {
            times.sort_unstable();
            times[times.len() / 2].as_secs_f64() * 1e6
        });
        println!(
            "{time:?}: .sync() {:.1} µs, .await {:.1} µs, {:+.1} µs",
            medians[0],
            medians[1],
            medians[1] - medians[0]
        );
    }
    for _ in 0..2 {
        let before = cpu_time()?;
        block_on(busy(Duration::from_secs(1)).into_future())?;
        println!(
            "CPU time of a wait of 1 s by .await: {:?}",
            cpu_time()?.saturating_sub(before)
        );
    }
    Ok(())
}
