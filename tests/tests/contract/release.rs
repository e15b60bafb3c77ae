//! Drops of handles: no panic, and failures are reported.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use curium_driver::{
    ContextOptions, Driver, Event, EventFlags, Function, Graph, Library, Module, set_drop_observer,
};
use curium_memory::{DeviceBuffer, PinnedBuffer, PinnedFlags, UnifiedBuffer};
use curium_sim::{Config, Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{TestResult, kernels, skip, uses_cuda};
use parking_lot::Mutex;
use tracing::span::{Attributes, Id, Record};
use tracing::{Level, Metadata, Subscriber};

/// Serializes these tests: a process has only one observer.
static TURN: Mutex<()> = Mutex::new(());

/// Returns the failures of `function` that were reported while `action` ran.
fn reported(function: Function, action: impl FnOnce()) -> Vec<String> {
    let _turn = TURN.lock();
    let errors = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&errors);
    set_drop_observer(Some(Arc::new(move |error| {
        // Concurrent tests may drop handles too; they fail with other codes.
        if error.function() == Some(function)
            && error.code() == Some(CUresult::CUDA_ERROR_OPERATING_SYSTEM)
        {
            sink.lock().push(error.to_string());
        }
    })));
    action();
    set_drop_observer(None);
    let errors = errors.lock();
    errors.clone()
}

fn two_devices() -> Config {
    Config::new().with_devices(2)
}

/// Drops the result of `make` while `function` fails, and returns the reports.
fn drop_while_failing<T>(
    function: Function,
    make: impl FnOnce(&Driver) -> curium_driver::Result<T>,
) -> Vec<String> {
    let simulator = Simulator::new(two_devices()).expect("failed to create a simulator");
    let driver = simulator
        .driver::<Driver>()
        .expect("the simulator initializes");
    let outcome = make(&driver).expect("failed to create the handle");
    simulator.inject(
        Fault::on(function)
            .always()
            .returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM),
    );
    reported(function, || drop(outcome))
}

#[test]
fn failed_drop_is_reported_once() {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    let context = |driver: &Driver| driver.device(0)?.primary_context();
    let stream = |driver: &Driver| context(driver)?.stream();
    let reports = [
        drop_while_failing(Function::cuDevicePrimaryCtxRelease_v2, context),
        drop_while_failing(Function::cuStreamDestroy_v2, stream),
        drop_while_failing(Function::cuEventDestroy_v2, |driver| {
            Event::new(&context(driver)?, EventFlags::empty())
        }),
        drop_while_failing(Function::cuMemFreeAsync, |driver| {
            DeviceBuffer::<u8>::zeroed(&stream(driver)?, 8)
        }),
        drop_while_failing(Function::cuMemFreeHost, |driver| {
            PinnedBuffer::<u8>::zeroed(&context(driver)?, 8, PinnedFlags::empty())
        }),
    ];
    for report in reports {
        assert_eq!(report.len(), 1, "{report:?}");
        assert!(
            report[0].contains("CUDA_ERROR_OPERATING_SYSTEM = 304"),
            "{report:?}"
        );
    }
}

/// A report of a failed drop names the handle and the device.
#[test]
fn failed_drop_names_its_handle() {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    let context = |driver: &Driver| driver.device(1)?.primary_context();
    let stream = |driver: &Driver| context(driver)?.stream();
    let graph = |driver: &Driver| Graph::new(&context(driver)?);
    let on_device = [
        (
            "context 0x",
            drop_while_failing(Function::cuDevicePrimaryCtxRelease_v2, context),
        ),
        (
            "context 0x",
            drop_while_failing(Function::cuCtxDestroy_v2, |driver: &Driver| {
                driver.device(1)?.create_context(ContextOptions::new())
            }),
        ),
        (
            "stream 0x",
            drop_while_failing(Function::cuStreamDestroy_v2, stream),
        ),
        (
            "event 0x",
            drop_while_failing(Function::cuEventDestroy_v2, |driver| {
                Event::new(&context(driver)?, EventFlags::empty())
            }),
        ),
        (
            "8 bytes at 0x",
            drop_while_failing(Function::cuMemFreeAsync, |driver| {
                DeviceBuffer::<u8>::zeroed(&stream(driver)?, 8)
            }),
        ),
        (
            "8 bytes at 0x",
            drop_while_failing(Function::cuMemFree_v2, |driver| {
                UnifiedBuffer::<u8>::zeroed(&stream(driver)?, 8)
            }),
        ),
        (
            "pinned memory 0x",
            drop_while_failing(Function::cuMemFreeHost, |driver| {
                PinnedBuffer::<u8>::zeroed(&context(driver)?, 8, PinnedFlags::empty())
            }),
        ),
        (
            "module 0x",
            drop_while_failing(Function::cuModuleUnload, |driver| {
                Module::from_ptx(&context(driver)?, kernels::FILL)
            }),
        ),
        (
            "graph 0x",
            drop_while_failing(Function::cuGraphDestroy, graph),
        ),
        (
            "executable graph 0x",
            drop_while_failing(Function::cuGraphExecDestroy, |driver| {
                graph(driver)?.instantiate()
            }),
        ),
    ];
    for (handle, report) in on_device {
        assert_eq!(report.len(), 1, "{handle}: {report:?}");
        assert!(
            report[0].contains(handle)
                && report[0].contains(" of device 1, CUDA_ERROR_OPERATING_SYSTEM"),
            "{report:?}"
        );
    }
    let report = drop_while_failing(Function::cuLibraryUnload, |driver: &Driver| {
        Library::from_ptx(driver, kernels::FILL)
    });
    assert!(
        report.len() == 1 && report[0].contains("(library 0x"),
        "{report:?}"
    );
}

#[test]
fn failed_context_names_a_device() -> TestResult {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    let simulator = Simulator::new(two_devices())?;
    let driver = simulator.driver::<Driver>()?;
    let device = driver.device(1)?;
    let mut functions = vec![Function::cuDevicePrimaryCtxRetain];
    functions.push(if driver.has(Function::cuCtxCreate_v4) {
        Function::cuCtxCreate_v4
    } else {
        Function::cuCtxCreate_v2
    });
    for function in functions {
        simulator.inject(Fault::on(function).returns(CUresult::CUDA_ERROR_OUT_OF_MEMORY));
        let error = if function == Function::cuDevicePrimaryCtxRetain {
            device
                .primary_context()
                .expect_err("the injected fault occurs")
        } else {
            device
                .create_context(ContextOptions::new())
                .expect_err("the injected fault occurs")
        };
        assert_eq!(error.function(), Some(function));
        assert!(
            error.to_string().contains("context of device 1, "),
            "{error}"
        );
    }
    Ok(())
}

#[test]
fn observer_may_panic_in_a_drop() -> TestResult {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    let _turn = TURN.lock();
    let simulator = Simulator::new(Config::new())?;
    let driver = simulator.driver::<Driver>()?;
    let stream = driver
        .device(0)
        .and_then(|device| device.primary_context()?.stream())?;
    simulator.inject(
        Fault::on(Function::cuStreamDestroy_v2).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM),
    );
    set_drop_observer(Some(Arc::new(|error| {
        assert_ne!(
            error.function(),
            Some(Function::cuStreamDestroy_v2),
            "this panic is part of the test"
        );
    })));
    drop(stream);
    set_drop_observer(None);
    Ok(())
}

/// Panics at each report of a failed drop, and counts them.
struct Panicking(Arc<AtomicUsize>);

impl Subscriber for Panicking {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::ERROR
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
        panic!("this panic is part of the test")
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// A subscriber that panics does not make a drop panic and the observer is still called.
#[test]
fn subscriber_may_panic_in_a_drop() {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    let panics = Arc::new(AtomicUsize::new(0));
    // `tracing` misses the first event of a place in the code that another thread meets at the same
    // time.
    for _ in 0..10 {
        let report = tracing::subscriber::with_default(Panicking(Arc::clone(&panics)), || {
            drop_while_failing(Function::cuEventDestroy_v2, |driver| {
                Event::new(&driver.device(0)?.primary_context()?, EventFlags::empty())
            })
        });
        assert_eq!(report.len(), 1, "{report:?}");
    }
    assert!(
        panics.load(Ordering::Relaxed) > 0,
        "no subscriber has panicked"
    );
}

#[test]
fn late_drop_is_silent() -> TestResult {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    let simulator = Simulator::new(Config::new())?;
    // SAFETY: the simulator implements the driver's functions; after its end they return an error.
    let driver = unsafe { Driver::from_api(simulator.api()) }?;
    let stream = driver
        .device(0)
        .and_then(|device| device.primary_context()?.stream())?;
    let buffer = DeviceBuffer::<u8>::zeroed(&stream, 8)?;
    // Created first, so that no other simulator reuses the slot of this one.
    let _turn = TURN.lock();
    drop(simulator);
    let error = stream.synchronize().expect_err("the driver has ended");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_DEINITIALIZED));
    let ended = Arc::new(Mutex::new(0));
    let count = Arc::clone(&ended);
    set_drop_observer(Some(Arc::new(move |error| {
        if error.code() == Some(CUresult::CUDA_ERROR_DEINITIALIZED) {
            *count.lock() += 1;
        }
    })));
    drop((buffer, stream, driver));
    set_drop_observer(None);
    assert_eq!(*ended.lock(), 0, "unloading the driver is not reported");
    Ok(())
}

#[test]
fn handles_drop_in_any_order() -> TestResult {
    // Every order of four handles that depend on each other.
    for order in 0..24 {
        curium_tests::on_driver(|test| -> TestResult {
            let context = test.context();
            let stream = context.stream()?;
            let event = Event::new(&context, EventFlags::empty())?;
            event.record(&stream)?;
            let buffer = DeviceBuffer::<u8>::zeroed(&stream, 8)?;
            let mut handles: Vec<Box<dyn std::any::Any>> = vec![
                Box::new(context),
                Box::new(stream),
                Box::new(event),
                Box::new(buffer),
            ];
            let mut remainder = order;
            for remaining in (1..=4).rev() {
                drop(handles.remove(remainder % remaining));
                remainder /= remaining;
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// A value of an observer, whose drop registers another observer.
struct Replaces;

impl Drop for Replaces {
    fn drop(&mut self) {
        set_drop_observer(None);
    }
}

#[test]
fn replaced_observer_registers() {
    let _turn = TURN.lock();
    let replaces = Replaces;
    set_drop_observer(Some(Arc::new(move |_| {
        let _ = &replaces;
    })));
    set_drop_observer(None);
}
