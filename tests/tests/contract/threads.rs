//! Contexts and threads: one context for many threads, one context per device, and destruction
//! after all threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use curium_driver::{Context, ContextOptions, Kernel, LaunchConfig, Library, Result};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, Simulator};
use curium_tests::{
    TestDriver, TestResult, driver_test, kernels, on_driver, on_simulator, resume_panic,
    simulator_test,
};

type Fill = (&'static mut [u32], u32, u32);

const THREADS: u32 = 4;
const LEN: u32 = 100;

/// Fills a buffer on a stream of its own, and reads it.
fn filled(context: &Context, fill: &Kernel<Fill>, value: u32) -> Result<Vec<u32>> {
    let stream = context.stream()?;
    let mut buffer = DeviceBuffer::zeroed(&stream, LEN as usize)?;
    // SAFETY: `fill` writes exactly the words of the buffer.
    unsafe {
        fill.launch(
            &stream,
            LaunchConfig::for_elements(LEN as usize),
            (&mut buffer, value, LEN),
        )
    }?;
    buffer.to_vec()
}

fn fill(context: &Context) -> Kernel<Fill> {
    let library = Library::from_ptx(context, kernels::FILL).expect("the PTX is valid");
    library.kernel("fill").expect("the library has the kernel")
}

/// One context serves threads that each work on a stream.
#[driver_test]
fn threads_share_a_context_with_own_streams(test: &TestDriver) -> TestResult {
    let context = test.context();
    let fill = fill(&context);
    thread::scope(|scope| -> TestResult<_> {
        let workers = (0..THREADS).map(|value| {
            let context = &context;
            let fill = &fill;
            (value, scope.spawn(move || filled(context, fill, value)))
        });
        for (value, worker) in workers.collect::<Vec<_>>() {
            let values = resume_panic(worker.join())?;
            assert_eq!(values, [value; LEN as usize]);
        }
        Ok(())
    })?;
    Ok(())
}

/// One context for each device serves one thread through all of them.
#[test]
fn one_thread_uses_all_contexts() -> TestResult {
    fn work(test: &TestDriver) -> TestResult<usize> {
        let devices = test.driver().devices()?;
        let contexts = devices
            .iter()
            .map(|device| device.create_context(ContextOptions::new()));
        let contexts: Vec<_> = contexts.collect::<Result<_>>()?;
        for (value, context) in (0..).zip(&contexts) {
            let values = context.scoped(|| filled(context, &fill(context), value))?;
            assert_eq!(values?, [value; LEN as usize]);
        }
        assert!(Context::current_raw(test.driver())?.is_null());
        Ok(contexts.len())
    }

    on_driver(|test| -> TestResult {
        assert!(work(test)? >= 1);
        Ok(())
    })?;
    on_simulator(Config::new().with_devices(3), |test, _| {
        assert_eq!(work(test)?, 3);
        Ok(())
    })
}

#[simulator_test]
fn context_ends_after_the_threads_that_use_it(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let context = test.device().create_context(ContextOptions::new())?;
    let fill = fill(&context);
    let sum = Arc::new(AtomicU32::new(0));
    let workers: Vec<_> = (0..THREADS)
        .map(|value| {
            let context = context.clone();
            let fill = fill.clone();
            let sum = Arc::clone(&sum);
            thread::spawn(move || {
                let values = filled(&context, &fill, value).expect("the context is there");
                sum.fetch_add(values.iter().sum(), Ordering::Relaxed);
            })
        })
        .collect();
    drop((context, fill));
    workers
        .into_iter()
        .for_each(|worker| resume_panic(worker.join()));
    assert_eq!(sum.load(Ordering::Relaxed), LEN * (0..THREADS).sum::<u32>());
    assert_eq!(
        simulator.live_handles().contexts,
        0,
        "the last thread destroyed the context"
    );
    Ok(())
}
