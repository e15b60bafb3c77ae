//! A service on a GPU: requests are collected into batches, refused when the queue is full, and
//! expire or are canceled.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

#[path = "../device/mod.rs"]
mod device;
mod service;

use std::time::Duration;

use self::service::{Failure, LEN, Service, block_on, expected};

/// The number of clients.
const CLIENTS: u32 = 100;

fn main() -> device::Outcome {
    let context = device::driver()?.device(0)?.primary_context()?;
    let service = Service::start(&context)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()?;
    let mut responses = Vec::new();
    for client in 0..CLIENTS {
        match service.request([client; LEN], Duration::from_secs(10)) {
            Ok(response) => responses.push((client, runtime.spawn(response))),
            // A client would try again later.
            Err(Failure::Overloaded) => println!("client {client} is refused"),
            Err(failure) => return Err(failure.into()),
        }
    }
    for (client, response) in responses {
        let numbers = runtime.block_on(response)??;
        assert_eq!(numbers, expected([client; LEN]));
    }
    // A response is a future of any executor; this one waits without one.
    let response = service.request([7; LEN], Duration::from_secs(10));
    assert_eq!(block_on(response?)?, expected([7; LEN]));
    // The requests in the queue are computed before the service ends.
    drop(service);
    println!("{CLIENTS} clients were served in batches");
    Ok(())
}
