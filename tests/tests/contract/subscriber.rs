//! Subscribers of `tracing` that panic: where no caller could receive the panic, it is caught.
#![cfg(not(miri))]

use std::error::Error;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use curium_driver::{Graph, UserObject};
use curium_memory::DeviceBuffer;
use curium_nccl::{Communicator, Operation, UniqueId};
use curium_sim::Config;
use curium_sim_libraries::nccl;
use curium_tests::{TestDriver, TestResult, in_new_process, on_simulator};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// A subscriber that panics at each warning and at each error.
struct Panicking;

impl Subscriber for Panicking {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        panic!("this panic of a subscriber is part of the test")
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Runs a test in a process whose subscriber panics: a panic that is not caught ends the process.
fn with_panicking_subscriber(test: fn(&TestDriver) -> Result) -> TestResult {
    in_new_process(|| {
        tracing::subscriber::set_global_default(Panicking)?;
        on_simulator(Config::new(), |driver, _| {
            test(driver)?;
            Ok(())
        })
    })
}

#[test]
fn panic_in_a_host_node() -> TestResult {
    with_panicking_subscriber(|test| {
        let stream = test.stream();
        let mut graph = Graph::new(&test.context())?;
        graph.add_host(&[], || panic!("this panic is part of the test"))?;
        graph.instantiate()?.launch(&stream)?;
        Ok(stream.synchronize()?)
    })?;
    Ok(())
}

/// A value whose drop panics.
struct PanicsOnDrop;

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        panic!("this panic of a drop is part of the test")
    }
}

#[test]
fn panic_in_a_user_object() -> TestResult {
    with_panicking_subscriber(|test| {
        let mut graph = Graph::new(&test.context())?;
        graph.retain_object(&UserObject::new(test.driver(), PanicsOnDrop)?)?;
        Ok(())
    })?;
    Ok(())
}

/// Polls a future until it is ready, for at most ten seconds.
fn resolved<T>(future: impl Future<Output = T>) -> Result<T> {
    let mut future = pin!(future);
    for _ in 0..10_000 {
        if let Poll::Ready(value) = future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            return Ok(value);
        }
        thread::sleep(Duration::from_millis(1));
    }
    Err("the future does not resolve".into())
}

#[test]
fn panic_in_a_host_function() -> TestResult {
    with_panicking_subscriber(|test| {
        let stream = test.stream();
        let panicking = stream.launch_host_function(|| panic!("this panic is part of the test"))?;
        assert!(resolved::<curium_driver::Result<()>>(panicking)?.is_err());
        let other = stream.launch_host_function(|| 7)?;
        assert_eq!(resolved(other)??, 7);
        Ok(())
    })?;
    Ok(())
}

#[test]
fn panic_at_a_group_end() -> TestResult {
    with_panicking_subscriber(|test| {
        let stream = test.stream();
        let nccl = nccl();
        let id = UniqueId::new(&nccl)?;
        let mut rank = Communicator::new(&nccl, stream.context(), id, 0, 1)?;
        let memory = DeviceBuffer::<f32>::zeroed(&stream, 64)?;
        let group = catch_unwind(AssertUnwindSafe(|| {
            nccl.group(|group| {
                // The group fails: the rank does not receive.
                group.enqueue(&mut rank, &stream, Operation::send(&memory, 0))?;
                if true {
                    panic!("this panic is part of the test");
                }
                Ok(())
            })
        }));
        assert!(group.is_err());
        Ok(())
    })?;
    Ok(())
}
