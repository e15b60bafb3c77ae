//! The service of the example answers every request under load and faults, and ends.

#[path = "../examples/18_service/service.rs"]
mod service;

use std::sync::atomic::{AtomicUsize, Ordering};
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
                message.contains("cu"),
                "the error names the call: {message}"
            );
            &outcomes.failed
        }
        Err(failure) => panic!("client {number}: {failure:?}"),
    };
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Runs all clients at once. Returns the numbers of requests that were served, expired, canceled and failed.
fn serve(simulator: &Simulator, faults: impl IntoIterator<Item = Fault>) -> TestResult<[usize; 4]> {
    let driver = simulator.driver::<Driver>()?;
    let service = Service::start(&driver.device(0)?.primary_context()?)?;
    for fault in faults {
        simulator.inject(fault);
    }
    let outcomes = Outcomes::default();
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            let service = &service;
            let outcomes = &outcomes;
            scope.spawn(move || client(service, number, outcomes));
        }
    });
    drop(service);
    let Outcomes {
        served,
        expired,
        canceled,
        failed,
    } = outcomes;
    let counts = [served, expired, canceled, failed].map(AtomicUsize::into_inner);
    assert_eq!(counts.iter().sum::<usize>(), CLIENTS, "{counts:?}");
    Ok(counts)
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
