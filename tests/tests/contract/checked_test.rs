//! `curium_sim::test`: a test fails on leaks and on every report of the simulator.
#![cfg(not(miri))]

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};

use curium_driver::{Device, Driver, LaunchConfig, Library, Result};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, Simulator};
use curium_tests::{TestResult, kernels, skip, uses_cuda};

use crate::check::EXCHANGE;

/// Returns the panic message of a failing test of `body`, or `None` on this machine's driver.
fn failure<R>(body: impl FnOnce(Device) -> R) -> TestResult<Option<String>> {
    if uses_cuda() {
        return Ok(None);
    }
    let outcome = catch_unwind(AssertUnwindSafe(|| drop(curium_sim::test(body))));
    let panic = outcome.expect_err("the test fails");
    Ok(Some(
        panic
            .downcast_ref::<String>()
            .ok_or("the panic has no message")?
            .clone(),
    ))
}

/// Asserts that a test of `body` fails with a message that contains all `parts`.
#[track_caller]
fn assert_fails<R>(body: impl FnOnce(Device) -> R, parts: &[&str]) -> TestResult {
    let Some(message) = failure(body)? else {
        return Ok(());
    };
    for part in parts {
        assert!(message.contains(part), "{message} without {part}");
    }
    Ok(())
}

/// A test without errors returns the result of its closure.
#[test]
fn passing_test_returns_a_result() -> TestResult {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    let copied = curium_sim::test(|device: Device| -> Result<Vec<u32>> {
        DeviceBuffer::from_slice(&device.primary_context()?.stream()?, &[1, 2, 3])?.to_vec()
    });
    assert_eq!(copied?, [1, 2, 3]);
    Ok(())
}

/// The thread that completes futures holds the event for a moment longer than the program.
#[test]
fn asynchronous_work_leaks_nothing() -> std::result::Result<(), Box<dyn Error>> {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    for _ in 0..50 {
        let simulator = Simulator::new(Config::new())?;
        let stream = simulator.driver::<Device>()?.primary_context()?.stream()?;
        let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, 1 << 16)?;
        buffer.fill(7)?;
        pollster::block_on(stream.completion())?;
        drop(buffer);
        drop(stream);
        assert_eq!(simulator.leaked_objects().len(), 0);
    }
    Ok(())
}

#[test]
fn leak_names_the_allocation() -> TestResult {
    assert_fails(
        |device: Device| -> Result<()> {
            let stream = device.primary_context()?.stream()?;
            std::mem::forget(DeviceBuffer::<u32>::zeroed(&stream, 25)?);
            stream.synchronize()
        },
        &[
            "seed 0",
            "leak: device allocation",
            "100 bytes",
            "made by cuMemAlloc",
        ],
    )?;
    Ok(())
}

/// Access out of bounds fails the test with kernel thread and line.
#[test]
fn out_of_bounds_access_fails() -> TestResult {
    fn write(device: &Device) -> Result<()> {
        let stream = device.primary_context()?.stream()?;
        let kernel = Library::from_ptx(device, kernels::FAULTS)?
            .kernel::<(&mut [u32], u64, u32)>("write_at")?;
        let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, 25)?;
        // SAFETY: the simulator detects the out-of-bounds write and does not perform it.
        unsafe { kernel.launch(&stream, LaunchConfig::new(1, 1), (&mut buffer, 27, 1)) }
    }

    assert_fails(
        |device| write(&device),
        &[
            "`write_at`",
            "thread (0, 0, 0)",
            "PTX line",
            "100-byte allocation",
        ],
    )?;
    Ok(())
}

/// A uninitialized read fails the test with kernel thread and line.
#[test]
fn uninitialized_read_fails() -> TestResult {
    fn read(device: &Device) -> Result<()> {
        let stream = device.primary_context()?.stream()?;
        let kernel = Library::from_ptx(device, kernels::FAULTS)?
            .kernel::<(&[u32], u64, &mut [u32])>("read_at")?;
        let uninitialized = DeviceBuffer::<u32>::uninit(&stream, 25)?;
        let mut result = DeviceBuffer::<u32>::zeroed(&stream, 1)?;
        // SAFETY: the kernel reads one element in bounds and writes the only one of the result.
        unsafe {
            kernel.launch(
                &stream,
                LaunchConfig::new(1, 1),
                (&uninitialized, 5, &mut result),
            )
        }
    }

    assert_fails(
        |device| read(&device),
        &[
            "`read_at`",
            "thread (0, 0, 0)",
            "PTX line",
            "100-byte allocation",
        ],
    )?;
    Ok(())
}

#[test]
fn race_fails_the_test() -> TestResult {
    fn race(device: &Device) -> Result<()> {
        let stream = device.primary_context()?.stream()?;
        let library = Library::from_ptx(device, &EXCHANGE.replace("BARRIER", ""))?;
        let kernel = library.kernel::<(&mut [u32],)>("exchange")?;
        let mut out = DeviceBuffer::<u32>::zeroed(&stream, 64)?;
        // SAFETY: the kernel writes one word for each of its 64 threads.
        unsafe { kernel.launch(&stream, LaunchConfig::new(1, 64), (&mut out,)) }
    }

    assert_fails(
        |device| race(&device),
        &["race", "`exchange`", "thread (", "PTX line"],
    )?;
    Ok(())
}

#[test]
fn closure_panic_passes_through() {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        curium_sim::test(|_: Driver| panic_any(7_u8))
    }));
    assert_eq!(
        outcome.expect_err("it panics").downcast_ref::<u8>(),
        Some(&7)
    );
}

#[test]
fn driver_keeps_its_simulator() -> TestResult {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    let simulator = Simulator::new(Config::new())?;
    let device: Device = simulator.driver()?;
    drop(simulator);
    let stream = device
        .primary_context()
        .and_then(|context| context.stream())?;
    stream.synchronize()?;
    Ok(())
}
