//! Managed memory of several devices, and batched prefetches of which one fails.

use std::sync::OnceLock;

use curium_driver::{AttachMode, Driver, Function, Graph, LaunchConfig, Library};
use curium_memory::{MemoryLocation, UnifiedBuffer, unified};
use curium_sim::{Config, Fault, Simulator};
use curium_sys::{Api, CUdevice, CUdevice_attribute, CUresult, CudaVersion};
use curium_tests::{
    Gate, TestDriver, TestResult, driver_test, kernels, on_simulator, simulator_test,
};

/// A range of an enqueued prefetch is in use after another failed.
#[simulator_test(Config::new().with_driver_version(CudaVersion::new(12, 8)))]
fn enqueued_prefetch_range_stays_in_use(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let first_stream = test.stream();
    let second_stream = test.stream();
    let stream = test.stream();
    let first = UnifiedBuffer::<u8>::zeroed(&first_stream, 4096)?;
    let second = UnifiedBuffer::<u8>::zeroed(&second_stream, 4096)?;
    let fault = Fault::on(Function::cuMemPrefetchAsync_v2).call(2);
    simulator.inject(fault.returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM));
    let ranges = [
        (first.view(), MemoryLocation::Host),
        (second.view(), MemoryLocation::Host),
    ];
    unified::prefetch(&stream, &ranges).expect_err("the second prefetch fails");
    // Each waits for its own stream, and the first for the stream that uses it.
    test.assert_calls(Function::cuStreamSynchronize, 1, || drop(second));
    test.assert_calls(Function::cuStreamSynchronize, 2, || drop(first));
    Ok(())
}

/// The simulator's own function, called by [`not_concurrent_on_device_1`].
static DEVICE_ATTRIBUTE: OnceLock<Api> = OnceLock::new();

/// `cuDeviceGetAttribute` of a system whose second device does not support concurrent managed
/// access.
unsafe extern "C" fn not_concurrent_on_device_1(
    value: *mut i32,
    attribute: CUdevice_attribute,
    device: CUdevice,
) -> CUresult {
    let api = DEVICE_ATTRIBUTE.get().expect("the test sets it");
    let function = api.cuDeviceGetAttribute.expect("the simulator has it");
    // SAFETY: the caller's arguments are passed on.
    let code = unsafe { function(value, attribute, device) };
    if attribute == CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS && device == 1
    {
        // SAFETY: the caller passes an address that is valid for writes.
        unsafe { value.write(0) };
    }
    code
}

/// The host may use managed memory only if every device allows it.
#[simulator_test(Config::new().with_devices(2))]
fn host_view_requires_every_device(_: &TestDriver, simulator: &Simulator) -> TestResult {
    let mut api = simulator.api();
    DEVICE_ATTRIBUTE
        .set(simulator.api())
        .map_err(drop)
        .expect("one test sets it");
    api.cuDeviceGetAttribute = Some(not_concurrent_on_device_1);
    // SAFETY: the functions are the simulator's, which outlives the driver, and one that returns
    // values a driver may return.
    let driver = unsafe { Driver::from_api(api) }?;
    let stream = driver
        .device(0)
        .and_then(|device| device.primary_context()?.stream())?;
    let mut buffer = UnifiedBuffer::<u32>::zeroed(&stream, 4)?;
    let error = buffer
        .host_view()
        .map(drop)
        .expect_err("the other device may work");
    assert!(
        error.to_string().contains("no concurrent managed access"),
        "{error}"
    );
    buffer.host_view_mut()?.fill(0);
    assert_eq!(buffer.to_vec()?, [0; 4]);
    Ok(())
}

/// Runs `test` on a device without concurrent managed access, as on Windows.
fn without_concurrent_access(
    test: impl FnOnce(&TestDriver, &Simulator) -> TestResult,
) -> TestResult {
    on_simulator(Config::new().with_concurrent_managed_access(false), test)
}

/// `host_view_mut` attaches the buffer to the host without concurrent access.
#[driver_test(without_concurrent_access)]
fn host_view_mut_attaches_the_buffer(test: &TestDriver, _: &Simulator) -> TestResult {
    let stream = test.stream();
    let other = test.stream();
    let mut buffer = UnifiedBuffer::<u32>::zeroed(&stream, 4)?;
    let gate = Gate::on(&other);
    test.assert_calls(Function::cuStreamAttachMemAsync, 2, || -> TestResult<_> {
        let mut view = buffer.host_view_mut()?;
        view[1] = 7;
        Ok(())
    })?;
    buffer.slice_mut(2..)?.fill(5)?;
    assert_eq!(buffer.host_view_mut()?[..], [0, 7, 5, 5]);
    buffer.on_mut(&other).fill(9)?;
    gate.open();
    assert_eq!(buffer.to_vec()?, [9; 4]);
    Ok(())
}

/// A host view needs an attachment without concurrent access.
#[driver_test(without_concurrent_access)]
fn host_view_requires_an_attachment(test: &TestDriver, _: &Simulator) -> TestResult {
    let stream = test.stream();
    let other = test.stream();
    let mut buffer = UnifiedBuffer::from_slice(&stream, &[3_u32; 4])?;
    fn refused(buffer: &UnifiedBuffer<u32>) {
        let error = buffer
            .host_view()
            .map(drop)
            .expect_err("kernels may read the buffer meanwhile");
        assert!(error.function().is_none(), "{error}");
        assert!(
            ["`host_view_mut`", "`AttachMode::Host`"]
                .iter()
                .all(|way| error.to_string().contains(way)),
            "{error}"
        );
    }

    stream.synchronize()?;
    refused(&buffer);
    // SAFETY: no device accesses the buffer until it is attached to all streams.
    unsafe { buffer.attach(&other, AttachMode::Host) }?;
    test.assert_calls(Function::cuStreamAttachMemAsync, 0, || -> TestResult<_> {
        assert_eq!(buffer.host_view()?[..], [3; 4]);
        buffer.host_view_mut()?.fill(4);
        Ok(())
    })?;
    // SAFETY: only this stream accesses the buffer, and it is idle while the views exist.
    unsafe { buffer.attach(&other, AttachMode::Stream) }?;
    buffer.on_mut(&other).fill(6)?;
    assert_eq!(buffer.host_view()?[..], [6; 4]);
    assert_eq!(buffer.host_view_mut()?[..], [6; 4]);
    // SAFETY: every stream may access it from here on.
    unsafe { buffer.attach(&other, AttachMode::Global) }?;
    refused(&buffer);
    Ok(())
}

/// A host view of leased memory is attached and returned to the graph.
#[driver_test(without_concurrent_access)]
fn leased_host_view_is_returned_to_the_graph(test: &TestDriver, _: &Simulator) -> TestResult {
    let stream = test.stream();
    let mut buffer = UnifiedBuffer::<u32>::zeroed(&stream, 4)?;
    let graph = Graph::capture(&test.context(), |scope| buffer.on_mut(scope).fill(8))?;
    let mut graph = graph.instantiate()?;
    {
        let _view = buffer.host_view_mut()?;
        graph
            .launch(&stream)
            .expect_err("the host accesses the memory");
    }
    graph.launch(&stream)?;
    assert_eq!(buffer.host_view_mut()?[..], [8; 4]);
    Ok(())
}

/// A host view that cannot be attached or waited for does not change the buffer.
#[driver_test(without_concurrent_access)]
fn failed_host_view_keeps_the_buffer(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let mut buffer = UnifiedBuffer::from_slice(&stream, &[1_u32; 4])?;
    for (function, attached) in [
        (Function::cuStreamAttachMemAsync, 1),
        (Function::cuStreamSynchronize, 2),
    ] {
        simulator.inject(
            Fault::on(function)
                .call(1)
                .returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM),
        );
        let error = test.assert_calls(Function::cuStreamAttachMemAsync, attached, || {
            buffer
                .host_view_mut()
                .map(drop)
                .expect_err("the call fails")
        });
        assert_eq!(error.function(), Some(function), "{error}");
        simulator.clear_faults();
        assert_eq!(buffer.host_view_mut()?[..], [1; 4]);
    }
    Ok(())
}

/// Forgets a view of `buffer`, which leaves it attached to the host.
fn forget_view(test: &TestDriver, buffer: &mut UnifiedBuffer<u32>) {
    test.assert_calls(Function::cuStreamAttachMemAsync, 1, || {
        std::mem::forget(buffer.host_view_mut().expect("nothing uses the buffer"));
    });
}

/// Next operation of a device ends the attachment of a view that was forgotten.
#[driver_test(without_concurrent_access)]
fn device_operation_ends_a_forgotten_attachment(test: &TestDriver, _: &Simulator) -> TestResult {
    let stream = test.stream();
    let other = test.stream();
    let library = Library::from_ptx(test.driver(), kernels::FILL)?;
    let fill = library.kernel::<(&mut [u32], u32, u32)>("fill")?;
    let mut buffer = UnifiedBuffer::<u32>::zeroed(&stream, 4)?;
    let mut copy = UnifiedBuffer::<u32>::zeroed(&stream, 4)?;
    for stream in [&stream, &other] {
        // Once, and not again.
        forget_view(test, &mut buffer);
        test.assert_calls(Function::cuStreamAttachMemAsync, 1, || -> TestResult<_> {
            // SAFETY: the kernel writes as many elements as its argument, which the buffer has.
            unsafe { fill.launch(stream, LaunchConfig::for_elements(4), (&mut buffer, 3, 4)) }?;
            buffer.on_mut(stream).fill(5)?;
            Ok(())
        })?;
        forget_view(test, &mut buffer);
        test.assert_calls(Function::cuStreamAttachMemAsync, 1, || -> TestResult<_> {
            copy.on_mut(stream).copy_from_device(&buffer)?;
            assert_eq!(buffer.to_vec()?, [5; 4]);
            Ok(())
        })?;
    }
    forget_view(test, &mut buffer);
    test.assert_calls(Function::cuStreamAttachMemAsync, 1, || -> TestResult<_> {
        let graph = Graph::capture(&test.context(), |scope| buffer.on_mut(scope).fill(8))?;
        let mut graph = graph.instantiate()?;
        graph.launch(&stream)?;
        Ok(())
    })?;
    assert_eq!(buffer.host_view_mut()?[..], [8; 4]);
    Ok(())
}

/// An attachment that could not end with its view ends before the next operation.
#[driver_test(without_concurrent_access)]
fn failed_detachment_is_retried(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let mut buffer = UnifiedBuffer::<u32>::zeroed(&stream, 4)?;
    let view = buffer.host_view_mut()?;
    let fails = || {
        Fault::on(Function::cuStreamAttachMemAsync).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM)
    };
    simulator.inject(fails());
    drop(view);
    simulator.inject(fails());
    let error = buffer
        .fill(1)
        .expect_err("the buffer is still attached to the host");
    assert_eq!(
        error.function(),
        Some(Function::cuStreamAttachMemAsync),
        "{error}"
    );
    test.assert_calls(Function::cuStreamAttachMemAsync, 1, || -> TestResult<_> {
        buffer.fill(2)?;
        Ok(())
    })?;
    assert_eq!(buffer.to_vec()?, [2; 4]);
    Ok(())
}

/// Managed memory is not prefetched to a device without concurrent access.
#[driver_test(without_concurrent_access)]
fn prefetch_requires_concurrent_access(test: &TestDriver, _: &Simulator) -> TestResult {
    let stream = test.stream();
    let buffer = UnifiedBuffer::<u32>::zeroed(&stream, 4)?;
    let error = buffer
        .prefetch(&stream, .., MemoryLocation::from(&test.device()))
        .expect_err("the device cannot fault");
    assert_eq!(
        error.code(),
        Some(CUresult::CUDA_ERROR_INVALID_DEVICE),
        "{error}"
    );
    buffer.prefetch(&stream, .., MemoryLocation::Host)?;
    Ok(())
}

/// A graph is not launched while its memory is attached to the host for a view that is gone.
#[driver_test(without_concurrent_access)]
fn graph_waits_for_a_forgotten_attachment(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let mut buffer = UnifiedBuffer::<u32>::zeroed(&stream, 4)?;
    let graph = Graph::capture(&test.context(), |scope| buffer.on_mut(scope).fill(8))?;
    let mut graph = graph.instantiate()?;
    for is_forgotten in [false, true] {
        let view = buffer.host_view_mut()?;
        if is_forgotten {
            std::mem::forget(view);
        } else {
            simulator.inject(
                Fault::on(Function::cuStreamAttachMemAsync)
                    .returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM),
            );
            drop(view);
        }
        let error = graph
            .launch(&stream)
            .expect_err("the host may access the memory");
        assert!(error.to_string().contains("the host has a view"), "{error}");
        buffer.host_view_mut()?.fill(1);
        graph.launch(&stream)?;
        assert_eq!(buffer.to_vec()?, [8; 4]);
    }
    drop(graph);
    assert!(
        buffer.host_view_mut().is_ok(),
        "the memory is the owner's alone"
    );
    Ok(())
}
