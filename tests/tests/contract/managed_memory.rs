//! Managed memory of several devices, and batched prefetches of which one fails.

use std::sync::OnceLock;

use curium_driver::{AttachMode, Driver, Function, Graph, LaunchConfig, Library};
use curium_memory::{MemoryLocation, UnifiedBuffer, unified};
use curium_sim::{Config, Fault};
use curium_sys::{Api, CUdevice, CUdevice_attribute, CUresult, CudaVersion};
use curium_tests::{Gate, TestDriver, kernels, on_simulator};

#[test]
fn range_of_an_enqueued_prefetch_is_in_use_after_another_failed() {
    on_simulator(
        Config::new().with_driver_version(CudaVersion::new(12, 8)),
        |test, simulator| {
            let (first_stream, second_stream, stream) =
                (test.stream(), test.stream(), test.stream());
            let first = UnifiedBuffer::<u8>::zeroed(&first_stream, 4096).expect("memory suffices");
            let second =
                UnifiedBuffer::<u8>::zeroed(&second_stream, 4096).expect("memory suffices");
            let fault = Fault::on(Function::cuMemPrefetchAsync_v2).call(2);
            simulator.inject(fault.returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM));
            let ranges = [
                (first.as_slice(), MemoryLocation::Host),
                (second.as_slice(), MemoryLocation::Host),
            ];
            unified::prefetch(&stream, &ranges).expect_err("the second prefetch fails");
            // Each waits for its own stream, and the first for the stream that uses it.
            test.assert_calls(Function::cuStreamSynchronize, 1, || drop(second));
            test.assert_calls(Function::cuStreamSynchronize, 2, || drop(first));
        },
    );
}

/// The simulator's own function, called by [`not_concurrent_on_device_1`].
static DEVICE_ATTRIBUTE: OnceLock<Api> = OnceLock::new();

/// `cuDeviceGetAttribute` of a system whose second device does not support concurrent managed access.
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

#[test]
fn host_may_use_managed_memory_only_if_every_device_allows_it() {
    on_simulator(Config::new().with_devices(2), |_, simulator| {
        let mut api = simulator.api();
        DEVICE_ATTRIBUTE
            .set(simulator.api())
            .map_err(drop)
            .expect("one test sets it");
        api.cuDeviceGetAttribute = Some(not_concurrent_on_device_1);
        // SAFETY: the functions are the simulator's, which outlives the driver, and one that returns values a driver
        // may return.
        let driver = unsafe { Driver::from_api(api) }.expect("the simulator initializes");
        let stream = driver
            .device(0)
            .and_then(|device| device.primary_context()?.stream())
            .expect("there is a device");
        let mut buffer = UnifiedBuffer::<u32>::zeroed(&stream, 4).expect("memory suffices");
        let error = buffer
            .host_view()
            .map(drop)
            .expect_err("the other device may work");
        assert!(
            error.to_string().contains("no concurrent managed access"),
            "{error}"
        );
        buffer
            .host_view_mut()
            .expect("the buffer is attached to the host")
            .fill(0);
        assert_eq!(
            buffer.as_slice().to_vec().expect("the buffer can be read"),
            [0; 4]
        );
    });
}

/// Runs `test` on a device without concurrent managed access, as on Windows.
fn without_concurrent_access(test: impl FnOnce(&TestDriver, &curium_sim::Simulator)) {
    on_simulator(
        Config::new().with_concurrent_managed_access(false),
        |driver, simulator| test(driver, simulator),
    );
}

#[test]
fn host_view_mut_attaches_buffer_to_the_host_without_concurrent_access() {
    without_concurrent_access(|test, _| {
        let (stream, other) = (test.stream(), test.stream());
        let mut buffer = UnifiedBuffer::<u32>::zeroed(&stream, 4).expect("memory suffices");
        let gate = Gate::on(&other);
        test.assert_calls(Function::cuStreamAttachMemAsync, 2, || {
            let mut view = buffer
                .host_view_mut()
                .expect("work on other memory does not conflict");
            view[1] = 7;
        });
        buffer
            .as_slice_mut()
            .slice(2..)
            .expect("it fits")
            .fill(5)
            .expect("memory can be filled");
        assert_eq!(
            buffer.host_view_mut().expect("the work ends")[..],
            [0, 7, 5, 5]
        );
        buffer
            .as_slice_mut()
            .fill_on(&other, 9)
            .expect("memory can be filled");
        gate.open();
        assert_eq!(buffer.as_slice().to_vec().expect("the work ends"), [9; 4]);
    });
}

#[test]
fn host_view_needs_an_attachment_without_concurrent_access() {
    without_concurrent_access(|test, _| {
        let (stream, other) = (test.stream(), test.stream());
        let mut buffer = UnifiedBuffer::from_slice(&stream, &[3_u32; 4]).expect("memory suffices");
        let refused = |buffer: &UnifiedBuffer<u32>| {
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
        };
        stream.synchronize().expect("the work ends");
        refused(&buffer);
        // SAFETY: no device accesses the buffer until it is attached to all streams.
        unsafe { buffer.attach(&other, AttachMode::Host) }.expect("the memory is managed");
        test.assert_calls(Function::cuStreamAttachMemAsync, 0, || {
            assert_eq!(
                buffer.host_view().expect("the host may read it")[..],
                [3; 4]
            );
            buffer
                .host_view_mut()
                .expect("the host may write it")
                .fill(4);
        });
        // SAFETY: only this stream accesses the buffer, and it is idle while the views exist.
        unsafe { buffer.attach(&other, AttachMode::Stream) }.expect("the memory is managed");
        buffer
            .as_slice_mut()
            .fill_on(&other, 6)
            .expect("memory can be filled");
        assert_eq!(
            buffer.host_view().expect("the stream becomes idle")[..],
            [6; 4]
        );
        assert_eq!(
            buffer.host_view_mut().expect("the stream is idle")[..],
            [6; 4]
        );
        // SAFETY: every stream may access it from here on.
        unsafe { buffer.attach(&other, AttachMode::Global) }.expect("the memory is managed");
        refused(&buffer);
    });
}

#[test]
fn host_view_of_leased_memory_is_attached_and_given_back_to_the_graph() {
    without_concurrent_access(|test, _| {
        let stream = test.stream();
        let mut buffer = UnifiedBuffer::<u32>::zeroed(&stream, 4).expect("memory suffices");
        let graph = Graph::capture(&test.context(), |scope| {
            buffer.as_slice_mut().fill_on(scope, 8)
        })
        .expect("it can be captured");
        let mut graph = graph.instantiate().expect("the graph is valid");
        {
            let _view = buffer.host_view_mut().expect("no other view exists");
            graph
                .launch(&stream)
                .expect_err("the host accesses the memory");
        }
        graph.launch(&stream).expect("the view is dropped");
        assert_eq!(buffer.host_view_mut().expect("the work ends")[..], [8; 4]);
    });
}

#[test]
fn host_view_that_cannot_be_attached_or_waited_for_does_not_change_the_buffer() {
    without_concurrent_access(|test, simulator| {
        let stream = test.stream();
        let mut buffer = UnifiedBuffer::from_slice(&stream, &[1_u32; 4]).expect("memory suffices");
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
            assert_eq!(
                buffer.host_view_mut().expect("the next one succeeds")[..],
                [1; 4]
            );
        }
    });
}

/// Forgets a view of `buffer`, which leaves it attached to the host.
fn forget_view(test: &TestDriver, buffer: &mut UnifiedBuffer<u32>) {
    test.assert_calls(Function::cuStreamAttachMemAsync, 1, || {
        std::mem::forget(buffer.host_view_mut().expect("nothing uses the buffer"));
    });
}

#[test]
fn next_operation_of_a_device_ends_the_attachment_of_a_view_that_was_forgotten() {
    without_concurrent_access(|test, _| {
        let (stream, other) = (test.stream(), test.stream());
        let library = Library::from_ptx(test.driver(), kernels::FILL)
            .expect("the kernel accesses only its arguments");
        let fill = library
            .kernel::<(&mut [u32], u32, u32)>("fill")
            .expect("the library has the kernel");
        let mut buffer = UnifiedBuffer::<u32>::zeroed(&stream, 4).expect("memory suffices");
        let mut copy = UnifiedBuffer::<u32>::zeroed(&stream, 4).expect("memory suffices");
        for stream in [&stream, &other] {
            // Once, and not again.
            forget_view(test, &mut buffer);
            test.assert_calls(Function::cuStreamAttachMemAsync, 1, || {
                // SAFETY: the kernel writes as many elements as its argument, which the buffer has.
                unsafe { fill.launch(stream, LaunchConfig::for_elements(4), (&mut buffer, 3, 4)) }
                    .expect("it runs");
                buffer
                    .as_slice_mut()
                    .fill_on(stream, 5)
                    .expect("memory can be filled");
            });
            forget_view(test, &mut buffer);
            test.assert_calls(Function::cuStreamAttachMemAsync, 1, || {
                copy.as_slice_mut()
                    .copy_from_device_on(stream, &buffer)
                    .expect("memory can be copied");
                assert_eq!(buffer.as_slice().to_vec().expect("the work ends"), [5; 4]);
            });
        }
        forget_view(test, &mut buffer);
        test.assert_calls(Function::cuStreamAttachMemAsync, 1, || {
            let graph = Graph::capture(&test.context(), |scope| {
                buffer.as_slice_mut().fill_on(scope, 8)
            })
            .expect("it can be captured");
            let mut graph = graph.instantiate().expect("the graph is valid");
            graph.launch(&stream).expect("nothing else uses the buffer");
        });
        assert_eq!(buffer.host_view_mut().expect("the work ends")[..], [8; 4]);
    });
}

#[test]
fn attachment_that_could_not_end_with_its_view_ends_before_the_next_operation() {
    without_concurrent_access(|test, simulator| {
        let stream = test.stream();
        let mut buffer = UnifiedBuffer::<u32>::zeroed(&stream, 4).expect("memory suffices");
        let view = buffer.host_view_mut().expect("nothing uses the buffer");
        let fails = || {
            Fault::on(Function::cuStreamAttachMemAsync)
                .returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM)
        };
        simulator.inject(fails());
        drop(view);
        simulator.inject(fails());
        let error = buffer
            .as_slice_mut()
            .fill(1)
            .expect_err("the buffer is still attached to the host");
        assert_eq!(
            error.function(),
            Some(Function::cuStreamAttachMemAsync),
            "{error}"
        );
        test.assert_calls(Function::cuStreamAttachMemAsync, 1, || {
            buffer.as_slice_mut().fill(2).expect("both calls fail");
        });
        assert_eq!(buffer.as_slice().to_vec().expect("the work ends"), [2; 4]);
    });
}

#[test]
fn managed_memory_is_not_prefetched_to_a_device_without_concurrent_access() {
    without_concurrent_access(|test, _| {
        let stream = test.stream();
        let buffer = UnifiedBuffer::<u32>::zeroed(&stream, 4).expect("memory suffices");
        let error = buffer
            .prefetch(&stream, .., MemoryLocation::from(&test.device()))
            .expect_err("the device cannot fault");
        assert_eq!(
            error.code(),
            Some(CUresult::CUDA_ERROR_INVALID_DEVICE),
            "{error}"
        );
        buffer
            .prefetch(&stream, .., MemoryLocation::Host)
            .expect("the host can");
    });
}

#[test]
fn graph_is_not_launched_while_its_memory_is_attached_to_the_host_for_a_view_that_is_gone() {
    without_concurrent_access(|test, simulator| {
        let stream = test.stream();
        let mut buffer = UnifiedBuffer::<u32>::zeroed(&stream, 4).expect("memory suffices");
        let graph = Graph::capture(&test.context(), |scope| {
            buffer.as_slice_mut().fill_on(scope, 8)
        })
        .expect("it can be captured");
        let mut graph = graph.instantiate().expect("the graph is valid");
        for is_forgotten in [false, true] {
            let view = buffer.host_view_mut().expect("nothing uses the buffer");
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
            buffer
                .host_view_mut()
                .expect("the last view is gone")
                .fill(1);
            graph.launch(&stream).expect("no view exists");
            assert_eq!(buffer.as_slice().to_vec().expect("the work ends"), [8; 4]);
        }
        drop(graph);
        assert!(
            buffer.host_view_mut().is_ok(),
            "the memory is the owner's alone"
        );
    });
}
