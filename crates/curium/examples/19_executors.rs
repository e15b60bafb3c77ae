//! Awaits copies and kernels with tokio, with smol, and without an executor.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

mod device;

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use curium::driver::Completion;
use curium::prelude::*;
use smol::stream::StreamExt as _;

const KERNELS: &str = include_str!("kernels/vectors.ptx");
const ELEMENTS: usize = 1024;

type Step = Kernel<(&'static mut [u32], u32, u32)>;

/// A kernel, and the context in which tasks use it.
#[derive(Clone)]
struct Work {
    context: Context,
    step: Step,
}

fn main() -> device::Outcome {
    let context = device::driver()?.device(0)?.primary_context()?;
    let step = Library::from_ptx(context.driver(), KERNELS)?.kernel("step")?;
    let work = Work { context, step };
    with_tokio(&work)?;
    with_smol(&work)?;
    block_on(join(&work))?;
    println!("3 executors awaited the device");
    Ok(())
}

impl Work {
    /// Enqueues `count` steps of each generator in `data`.
    fn enqueue(
        &self,
        stream: &Stream,
        data: &mut DeviceSlice<u32>,
        count: u32,
    ) -> curium::driver::Result<()> {
        let len = data.len() as u32;
        // SAFETY: `step` writes the first `len` elements, which `data` has.
        unsafe {
            self.step.launch(
                stream,
                LaunchConfig::for_elements(data.len()),
                (data, len, count),
            )
        }
    }

    /// Copies the generators to the device and back. The pinned buffer is returned by each copy.
    async fn advance(self, seed: u32) -> curium::driver::Result<Vec<u32>> {
        let stream = self.context.stream()?;
        let mut data = DeviceBuffer::zeroed(&stream, ELEMENTS)?;
        let seeds =
            PinnedBuffer::from_slice(&self.context, &[seed; ELEMENTS], PinnedFlags::empty())?;
        let buffer = copy::upload(&stream, seeds, &mut data)?.await?;
        self.enqueue(&stream, &mut data, 1)?;
        let results = copy::download(&stream, &data, buffer)?.await?;
        Ok(results.to_vec())
    }
}

fn with_tokio(work: &Work) -> device::Outcome {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()?;
    runtime.block_on(async {
        let tasks: Vec<_> = (0..4)
            .map(|seed| tokio::spawn(work.clone().advance(seed)))
            .collect();
        for (seed, task) in (0..4).zip(tasks) {
            assert_eq!(task.await??, [next(seed); ELEMENTS]);
        }
        let stream = work.context.stream()?;
        // The future that loses is dropped, which ends the wait and not the work.
        tokio::select! {
            result = stream.completion() => result?,
            () = tokio::time::sleep(Duration::from_secs(10)) => println!("the device is slow"),
        }
        Ok(())
    })
}

fn with_smol(work: &Work) -> device::Outcome {
    smol::block_on(async {
        let task = smol::spawn(work.clone().advance(7));
        assert_eq!(task.await?, [next(7); ELEMENTS]);
        let stream = work.context.stream()?;
        let mut data = DeviceBuffer::filled(&stream, ELEMENTS, 1)?;
        let mut rounds = VecDeque::new();
        for round in 1..=5 {
            work.enqueue(&stream, &mut data, 1)?;
            rounds.push_back((round, stream.completion()));
        }
        // The points of a stream are reached in order.
        let mut finished = pin!(smol::stream::unfold(rounds, async |mut rounds| {
            let (round, completion) = rounds.pop_front()?;
            Some((completion.await.map(|()| round), rounds))
        }));
        while let Some(round) = finished.next().await {
            println!("round {} is complete", round?);
        }
        Ok(())
    })
}

/// Waits for two streams at once.
async fn join(work: &Work) -> curium::driver::Result<()> {
    let streams = [work.context.stream()?, work.context.stream()?];
    let mut buffers = Vec::new();
    for (seed, stream) in (0..).zip(&streams) {
        let mut data = DeviceBuffer::filled(stream, ELEMENTS, seed)?;
        work.enqueue(stream, &mut data, 1)?;
        buffers.push(data);
    }
    Completion::join(streams.iter().map(Stream::completion)).await?;
    for (seed, data) in (0..).zip(buffers) {
        assert_eq!(data.to_vec()?, [next(seed); ELEMENTS]);
    }
    Ok(())
}

/// Runs a future on this thread, which is parked while the future is pending.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = std::task::Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn next(value: u32) -> u32 {
    value.wrapping_mul(1_664_525).wrapping_add(1_013_904_223)
}
