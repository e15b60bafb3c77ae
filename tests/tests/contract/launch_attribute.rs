//! Launches with attributes.
#![cfg(not(miri))]

use curium_driver::{
    AccessPolicyWindow, Carveout, Driver, Event, EventFlags, EventTrigger, Function, Kernel,
    LaunchAttributes, LaunchConfig, Library, MemorySyncDomain, MemorySyncDomainMap, Result,
};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, Simulator};
use curium_sys::CUresult;
use curium_tests::{
    TestDriver, TestResult, driver_test, kernels, on_simulator, simulator_test, skip,
};

type Fill = (&'static mut [u32], u32, u32);

fn fill(test: &TestDriver) -> TestResult<Kernel<Fill>> {
    let library = Library::from_ptx(test.driver(), kernels::FILL)?;
    Ok(library.kernel("fill")?)
}

#[driver_test]
fn launch_without_attributes_is_a_plain_launch(test: &TestDriver) -> TestResult {
    let fill = fill(test)?;
    let stream = test.stream();
    let mut buffer = DeviceBuffer::zeroed(&stream, 64)?;
    test.assert_calls(Function::cuLaunchKernel, 1, || {
        let arguments = (&mut buffer, 5, 64);
        // SAFETY: `fill` writes the first 64 words, which the buffer has.
        unsafe {
            fill.launch_with(
                &stream,
                LaunchConfig::for_elements(64),
                &LaunchAttributes::new(),
                arguments,
            )
        }
    })?;
    assert_eq!(buffer.to_vec()?, [5; 64]);
    Ok(())
}

#[driver_test]
fn launch_with_attributes_runs_and_makes_one_call(test: &TestDriver) -> TestResult {
    let fill = fill(test)?;
    let stream = test.stream();
    let mut buffer = DeviceBuffer::zeroed(&stream, 64)?;
    let window = AccessPolicyWindow::persisting(buffer.as_pointer().cast(), 256);
    for (index, attributes) in [
        LaunchAttributes::new().with_cooperative(true),
        LaunchAttributes::new().with_priority(-1),
        LaunchAttributes::new().with_access_policy_window(window),
        LaunchAttributes::new().with_memory_sync_domain(MemorySyncDomain::Remote),
        LaunchAttributes::new().with_memory_sync_domain_map(MemorySyncDomainMap {
            default: 0,
            remote: 1,
        }),
        LaunchAttributes::new().with_carveout(Carveout::MAX_L1),
        LaunchAttributes::new().with_programmatic_stream_serialization(true),
        LaunchAttributes::new()
            .with_cluster(1)
            .with_priority(0)
            .with_cooperative(false),
    ]
    .into_iter()
    .enumerate()
    {
        let value = index as u32 + 1;
        test.assert_calls(Function::cuLaunchKernelEx, 1, || {
            let arguments = (&mut buffer, value, 64);
            // SAFETY: `fill` writes the first 64 words, which the buffer has, and the stream has no
            // other work.
            unsafe {
                fill.launch_with(
                    &stream,
                    LaunchConfig::for_elements(64),
                    &attributes,
                    arguments,
                )
            }
        })
        .unwrap_or_else(|error| panic!("{attributes:?}: {error}"));
        assert_eq!(buffer.to_vec()?, [value; 64], "{attributes:?}");
    }
    Ok(())
}

#[driver_test]
fn launch_events_are_recorded(test: &TestDriver) -> TestResult {
    if test.simulator().is_some() {
        return skip("needs a GPU");
    }
    let fill = fill(test)?;
    let stream = test.stream();
    let event =
        || -> TestResult<_> { Ok(Event::new(stream.context(), EventFlags::DISABLE_TIMING)?) };
    let completion = event()?;
    let programmatic = event()?;
    let mut buffer = DeviceBuffer::zeroed(&stream, 64)?;
    for attributes in [
        LaunchAttributes::new().with_launch_completion_event(&completion),
        LaunchAttributes::new().with_programmatic_event(&programmatic, EventTrigger::BlockStart),
    ] {
        let arguments = (&mut buffer, 5, 64);
        // SAFETY: `fill` writes the first 64 words, which the buffer has, and only the host waits
        // for the events.
        unsafe {
            fill.launch_with(
                &stream,
                LaunchConfig::for_elements(64),
                &attributes,
                arguments,
            )
        }?;
    }
    completion.synchronize()?;
    programmatic.synchronize()?;
    assert_eq!(buffer.to_vec()?, [5; 64]);
    Ok(())
}

#[simulator_test]
fn foreign_driver_event_is_refused(test: &TestDriver, _: &Simulator) -> TestResult {
    let fill = fill(test)?;
    let stream = test.stream();
    let mut buffer = DeviceBuffer::zeroed(&stream, 64)?;
    on_simulator(Config::new(), |other, _| -> TestResult {
        let event = Event::new(&other.context(), EventFlags::DISABLE_TIMING)?;
        let attributes = LaunchAttributes::new().with_launch_completion_event(&event);
        let arguments = (&mut buffer, 5, 64);
        // SAFETY: `fill` writes the first 64 words, which the buffer has.
        let result = unsafe {
            fill.launch_with(
                &stream,
                LaunchConfig::for_elements(64),
                &attributes,
                arguments,
            )
        };
        let error = result.expect_err("the event is invalid in this driver");
        assert!(error.to_string().contains("different drivers"), "{error}");
        Ok(())
    })?;
    Ok(())
}

/// A cooperative launch that fits runs and a larger one is an error with advice.
#[driver_test]
fn oversized_cooperative_launch_is_an_error(test: &TestDriver) -> TestResult {
    let fill = fill(test)?;
    let stream = test.stream();
    let mut buffer = DeviceBuffer::zeroed(&stream, 64)?;
    // SAFETY: `fill` writes the first 64 words, which the buffer has.
    unsafe { fill.launch_cooperative(&stream, LaunchConfig::new(2, 32), (&mut buffer, 5, 64)) }?;
    assert_eq!(buffer.to_vec()?, [5; 64]);
    let config = LaunchConfig::new(1_000_000, 32);
    // SAFETY: `fill` writes the first 64 words, which the buffer has.
    let result = unsafe { fill.launch_cooperative(&stream, config, (&mut buffer, 6, 64)) };
    let error = result.expect_err("no device takes a million blocks at once");
    assert_eq!(
        error.code(),
        Some(CUresult::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE),
        "{error}"
    );
    assert_eq!(error.function(), Some(Function::cuLaunchCooperativeKernel));
    assert!(
        error.to_string().contains("`Kernel::max_active_blocks`"),
        "{error}"
    );
    Ok(())
}

/// A launch with opt in shared memory is an error with a hint.
#[driver_test]
fn opt_in_shared_memory_error_has_a_hint(test: &TestDriver) -> TestResult {
    let fill = fill(test)?;
    let stream = test.stream();
    let mut buffer = DeviceBuffer::zeroed(&stream, 64)?;
    let config = LaunchConfig::for_elements(64).with_shared_bytes(60 * 1024);
    // SAFETY: `fill` writes the first 64 words, which the buffer has.
    let error = unsafe { fill.launch(&stream, config, (&mut buffer, 5, 64)) }
        .expect_err("it is not requested");
    assert!(
        error
            .to_string()
            .contains("`Kernel::set_max_dynamic_shared_bytes`"),
        "{error}"
    );
    fill.set_max_dynamic_shared_bytes(&test.device(), 60 * 1024)?;
    // SAFETY: `fill` writes the first 64 words, which the buffer has.
    unsafe { fill.launch(&stream, config, (&mut buffer, 5, 64)) }?;
    assert_eq!(buffer.to_vec()?, [5; 64]);
    Ok(())
}

/// The attribute belongs to a kernel on a device: the second device has its own.
#[test]
fn opt_in_on_the_second_device() -> Result<()> {
    curium_sim::test_with(Config::new().with_devices(2), |driver: Driver| {
        let device = driver.device(1)?;
        let context = device.primary_context()?;
        let stream = context.stream()?;
        let fill: Kernel<Fill> = Library::from_ptx(&driver, kernels::FILL)?.kernel("fill")?;
        let mut buffer = DeviceBuffer::zeroed(&stream, 64)?;
        fill.set_max_dynamic_shared_bytes(&device, 60 * 1024)?;
        let config = LaunchConfig::for_elements(64).with_shared_bytes(60 * 1024);
        // SAFETY: `fill` writes the first 64 words, which the buffer has.
        unsafe { fill.launch(&stream, config, (&mut buffer, 5, 64)) }?;
        assert!(fill.max_active_blocks(&context, 64, 60 * 1024)? > 0);
        assert_eq!(buffer.to_vec()?, [5; 64]);
        Ok(())
    })
}

pub(crate) mod operations {
    use curium_driver::{LaunchAttributes, LaunchConfig};

    use crate::operations::{LEN, Operation, Operations, made};

    const OPERATIONS: &[Operation] = &[
        ("Kernel::launch_with", |fixture| {
            let config = LaunchConfig::for_elements(LEN);
            let arguments = (&mut fixture.buffer, 6, LEN as u32);
            let attributes = LaunchAttributes::new().with_priority(0);
            // SAFETY: `fill` writes exactly the words of the buffer.
            made(unsafe {
                fixture
                    .fill
                    .launch_with(&fixture.other, config, &attributes, arguments)
            }?)
        }),
        ("Kernel::launch_cooperative", |fixture| {
            let config = LaunchConfig::new(1, 32);
            let arguments = (&mut fixture.buffer, 6, LEN as u32);
            // SAFETY: `fill` writes exactly the words of the buffer.
            made(unsafe {
                fixture
                    .fill
                    .launch_cooperative(&fixture.other, config, arguments)
            }?)
        }),
    ];

    #[cfg(not(miri))]
    inventory::submit! { Operations::Common(OPERATIONS) }
}
