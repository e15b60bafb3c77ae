//! The service of the example answers every request under load and faults, and ends.

#[path = "../examples/18_service/service.rs"]
mod service;

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use curium::driver::Function;
use curium::driver::sys::CUresult;
use curium::prelude::*;
use curium_sim::{Config, Fault, Simulator};

use self::service::{Failure, LEN, Service, block_on, expected};

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// The number of concurrent requests.
const CLIENTS: usize = 1_000;

/// The outcomes of the requests.
#[derive(Debug, Default)]
struct Outcomes {
    served: AtomicUsize,
    expired: AtomicUsize,
    canceled: AtomicUsize,
    failed: AtomicUsize,
}

impl Outcomes {
    /// Returns the numbers of requests that were served, expired, canceled and failed, which are
    /// all.
    fn counts(&self) -> TestResult<[usize; 4]> {
        let Self {
            served,
            expired,
            canceled,
            failed,
        } = self;
        let counts =
            [served, expired, canceled, failed].map(|counter| counter.load(Ordering::Relaxed));
        if counts.iter().sum::<usize>() != CLIENTS {
            return Err(format!("{counts:?} of {CLIENTS}").into());
        }
        Ok(counts)
    }
}

/// Sends a request until the queue has space, and counts its outcome. Every tenth client cancels.
fn client(service: &Service, number: usize, outcomes: &Outcomes) {
    let numbers = [number as u32; LEN];
    let limit = if number % 10 == 3 {
        Duration::ZERO
    } else {
        Duration::from_secs(60)
    };
    let response = loop {
        match service.request(numbers, limit) {
            Ok(response) => break response,
            Err(Failure::Overloaded) => thread::yield_now(),
            Err(failure) => panic!("{failure:?}"),
        }
    };
    if number % 10 == 7 {
        drop(response);
        outcomes.canceled.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let counter = match block_on(response) {
        Ok(result) => {
            assert_eq!(
                result,
                expected(numbers),
                "client {number} has its own result"
            );
            &outcomes.served
        }
        Err(Failure::Expired) => &outcomes.expired,
        Err(Failure::Device(message)) => {
            assert!(
                message.contains("cu") || message.contains("Stream::completion"),
                "the error names the call: {message}"
            );
            &outcomes.failed
        }
        Err(failure) => panic!("client {number}: {failure:?}"),
    };
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Runs all clients at once. Returns the numbers of requests that were served, expired, canceled
/// and failed.
fn serve(simulator: &Simulator, faults: impl IntoIterator<Item = Fault>) -> TestResult<[usize; 4]> {
    let driver = simulator.driver::<Driver>()?;
    let service = Service::start(&driver.device(0)?.primary_context()?)?;
    for fault in faults {
        simulator.inject(fault);
    }
    let outcomes = Outcomes::default();
    run_clients(service, &outcomes);
    outcomes.counts()
}

/// Runs all clients at once, and ends the service.
fn run_clients(service: Service, outcomes: &Outcomes) {
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            let service = &service;
            scope.spawn(move || client(service, number, outcomes));
        }
    });
    drop(service);
}

#[test]
fn every_request_has_an_outcome() -> TestResult {
    let simulator = Simulator::new(Config::new())?;
    let [served, expired, canceled, failed] = serve(&simulator, [])?;
    assert_eq!(canceled, CLIENTS / 10);
    assert_eq!(failed, 0);
    assert!(
        expired > 0 && served >= CLIENTS * 7 / 10,
        "{served} {expired}"
    );
    assert!(simulator.leaked_objects().is_empty());
    Ok(())
}

/// Batches that do not fit are divided; calls that fail reach the clients of their batch only.
#[test]
fn faults_neither_lose_nor_hang_a_request() -> TestResult {
    let simulator = Simulator::new(Config::new())?;
    let faults = [
        Fault::on(Function::cuMemAllocAsync)
            .call(2)
            .returns(CUresult::CUDA_ERROR_OUT_OF_MEMORY),
        Fault::on(Function::cuLaunchKernel)
            .call(5)
            .returns(CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES),
    ];
    let [served, _, _, failed] = serve(&simulator, faults)?;
    assert!(failed > 0, "one batch failed");
    assert!(served > CLIENTS / 2, "the others were served: {served}");
    simulator.clear_faults();
    assert!(simulator.leaked_objects().is_empty());
    Ok(())
}

/// After the device is lost, every request fails, and the service ends.
#[test]
fn lost_device_answers_every_request() -> TestResult {
    let simulator = Simulator::new(Config::new())?;
    let lost = Fault::on(Function::cuLaunchKernel).call(4).loses_devices();
    let [served, expired, canceled, failed] = serve(&simulator, [lost])?;
    assert!(served > 0, "the batches before are served");
    assert!(
        failed > CLIENTS / 2,
        "{failed} of {served} {expired} {canceled} failed"
    );
    Ok(())
}

/// Waits until another kernel, or the host, writes to the word.
const BUSY: &str = "
.version 7.8
.target sm_75
.address_size 64
.visible .entry busy(.param .u64 word)
{
    .reg .pred %p;
    .reg .u32 %value;
    .reg .u64 %word;
    ld.param.u64 %word, [word];
again:
    ld.volatile.global.u32 %value, [%word];
    setp.eq.u32 %p, %value, 0;
    @%p bra again;
    ret;
}
";

/// A kernel of another stream occupies the device for longer than a batch may take. The requests of
/// these batches fail, and later ones are served.
#[test]
fn slow_kernel_fails_its_batches_only() -> TestResult {
    const TIMEOUT: Duration = Duration::from_millis(300);
    let simulator = Simulator::new(Config::new().with_workers(1))?;
    let driver = simulator.driver::<Driver>()?;
    let context = driver.device(0)?.primary_context()?;
    let service = Service::with_batch_timeout(&context, TIMEOUT)?;
    let stream = context.stream()?;
    let busy: Kernel<(DevicePointer<u32>,)> = Library::from_ptx(&driver, BUSY)?.kernel("busy")?;
    let mut word = PinnedBuffer::<u32>::zeroed(&context, 1, PinnedFlags::DEVICE_MAP)?;
    // SAFETY: only atomics access the word from here on, and it outlives the kernel, which is
    // waited for below.
    let word = unsafe { AtomicU32::from_ptr(word.as_mut_ptr()) };
    let address = DevicePointer::from_raw(word.as_ptr().expose_provenance() as u64);
    // SAFETY: the kernel reads the word, which is mapped at its host address.
    unsafe { busy.launch(&stream, LaunchConfig::new(1, 1), (address,)) }?;
    let outcomes = Outcomes::default();
    thread::scope(|scope| {
        scope.spawn(|| {
            while outcomes.failed.load(Ordering::Relaxed) == 0 {
                thread::yield_now();
            }
            word.store(1, Ordering::Release);
        });
        run_clients(service, &outcomes);
    });
    stream.synchronize()?;
    let [served, expired, canceled, failed] = outcomes.counts()?;
    assert!(failed > 0, "{served} {expired} {canceled}");
    assert!(served > 0, "{failed} {expired} {canceled}");
    Ok(())
}

/// A request that is in the queue at the end is answered.
#[test]
fn shutdown_answers_the_queue() -> TestResult {
    let simulator = Simulator::new(Config::new())?;
    let driver = simulator.driver::<Driver>()?;
    let service = Service::start(&driver.device(0)?.primary_context()?)?;
    let mut responses = Vec::new();
    for number in 0..100 {
        responses.push(service.request([number; LEN], Duration::from_secs(60))?);
    }
    drop(service);
    for (number, response) in (0..).zip(responses) {
        assert_eq!(block_on(response)?, expected([number; LEN]));
    }
    Ok(())
}
