//! Contexts: the current context, the calls that need one, and destroyed contexts.

use std::ffi::c_void;
use std::ptr;
use std::sync::mpsc;

use curium_driver::AsRawStream as _;
use curium_driver::{Driver, Event, EventFlags};
use curium_memory::DeviceBuffer;
use curium_sim::Simulator;
use curium_sys::{CUcontext, CUresult};
use curium_tests::{
    CreatedContext, TestDriver, TestResult, driver_test, in_own_process, kernels, on_driver,
    simulator_test, uses_cuda,
};

use super::{
    DESTROYED, INVALID_CONTEXT, INVALID_HANDLE, INVALID_VALUE, OK, current, in_context,
    in_created_context, loaded,
};

fn set_current(driver: &Driver, context: CUcontext) -> CUresult {
    returned!(driver, cuCtxSetCurrent(context))
}

/// Set current replaces the top create pushes and destroy pops.
#[driver_test]
fn set_create_and_destroy_change_the_stack(test: &TestDriver) {
    let driver = test.driver();
    let device = test.device().as_raw();
    let mut first = ptr::null_mut();
    let mut second = ptr::null_mut();
    let mut popped = ptr::null_mut();
    assert_eq!(
        returned!(driver, cuCtxCreate_v2(&raw mut first, 0, device)),
        OK
    );
    assert_eq!(current(driver), first);
    assert_eq!(
        returned!(driver, cuCtxCreate_v2(&raw mut second, 0, device)),
        OK
    );
    assert_eq!(current(driver), second);
    assert_eq!(set_current(driver, first), OK);
    assert_eq!(returned!(driver, cuCtxPopCurrent_v2(&raw mut popped)), OK);
    assert_eq!(
        (popped, current(driver)),
        (first, first),
        "the first is current again"
    );
    assert_eq!(returned!(driver, cuCtxDestroy_v2(second)), OK);
    assert_eq!(current(driver), first);
    assert_eq!(returned!(driver, cuCtxDestroy_v2(first)), OK);
    assert!(current(driver).is_null());
}

#[driver_test]
fn calls_without_a_stream_need_a_current_context(test: &TestDriver) -> TestResult {
    let buffer = DeviceBuffer::from_slice(&test.stream(), &[1_u32; 4])?;
    let driver = test.driver();
    let device_address = buffer.as_pointer().as_raw();
    let mut address = 0;
    let mut host = ptr::null_mut::<c_void>();
    let mut number = 0;
    let mut bytes = [0; 2];
    let mut stream = ptr::null_mut();
    let mut event = ptr::null_mut();
    let mut module = ptr::null_mut();
    let image = std::ffi::CString::new(kernels::FILL)?;
    let refused = [
        returned!(driver, cuMemAlloc_v2(&raw mut address, 16)),
        returned!(driver, cuMemAllocHost_v2(&raw mut host, 16)),
        returned!(driver, cuMemHostAlloc(&raw mut host, 16, 0)),
        returned!(driver, cuMemAllocManaged(&raw mut address, 16, 1)),
        returned!(
            driver,
            cuMemcpyHtoD_v2(device_address, (&raw const number).cast(), 4)
        ),
        returned!(driver, cuMemcpy(device_address, device_address + 8, 4)),
        returned!(driver, cuMemsetD32_v2(device_address, 0, 1)),
        returned!(driver, cuStreamCreate(&raw mut stream, 1)),
        returned!(driver, cuEventCreate(&raw mut event, 0)),
        returned!(
            driver,
            cuModuleLoadData(&raw mut module, image.as_ptr().cast())
        ),
        returned!(driver, cuCtxSynchronize()),
        returned!(driver, cuCtxGetDevice(&raw mut number)),
        returned!(
            driver,
            cuMemGetInfo_v2(&raw mut bytes[0], &raw mut bytes[1])
        ),
    ];
    assert_eq!(refused, [INVALID_CONTEXT; 13]);
    Ok(())
}

/// Calls that name a stream an event or memory need no current context.
#[driver_test]
fn calls_with_handles_need_no_current_context(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let buffer = DeviceBuffer::from_slice(&stream, &[1_u32; 4])?;
    let event = Event::new(stream.context(), EventFlags::empty())?;
    event.record(&stream)?;
    let driver = test.driver();
    let device_address = buffer.as_pointer().as_raw();
    let raw = stream.as_raw();
    let event = event.as_raw();
    let mut address = 0;
    let mut owner = ptr::null_mut();
    let accepted = [
        returned!(driver, cuMemsetD8Async(device_address, 1, 4, raw)),
        returned!(
            driver,
            cuMemcpyDtoDAsync_v2(device_address, device_address + 8, 4, raw)
        ),
        returned!(driver, cuMemAllocAsync(&raw mut address, 16, raw)),
        returned!(driver, cuMemFreeAsync(address, raw)),
        returned!(driver, cuEventRecord(event, raw)),
        returned!(driver, cuStreamWaitEvent(raw, event, 0)),
        returned!(driver, cuStreamSynchronize(raw)),
        returned!(driver, cuStreamQuery(raw)),
        returned!(driver, cuEventQuery(event)),
        returned!(driver, cuStreamGetCtx(raw, &raw mut owner)),
    ];
    assert_eq!(accepted, [OK; 10]);
    assert_eq!(owner, stream.context().as_raw());
    Ok(())
}

/// A primary context ends with its last release and is revived by the next retention.
#[test]
fn primary_context_is_revived_by_retention() {
    in_own_process(|| {
        on_driver(|test| {
            let driver = test.driver();
            let device = test.device().as_raw();
            let mut first = ptr::null_mut();
            let mut second = ptr::null_mut();
            assert_eq!(
                returned!(driver, cuDevicePrimaryCtxRetain(&raw mut first, device)),
                OK
            );
            assert_eq!(
                returned!(driver, cuDevicePrimaryCtxRetain(&raw mut second, device)),
                OK
            );
            assert_eq!(first, second);
            assert_eq!(
                returned!(driver, cuCtxDestroy_v2(first)),
                INVALID_CONTEXT,
                "it is not destroyed"
            );
            assert_eq!(set_current(driver, first), OK);
            assert_eq!(returned!(driver, cuDevicePrimaryCtxRelease_v2(device)), OK);
            assert_eq!(returned!(driver, cuCtxSynchronize()), OK);
            assert_eq!(returned!(driver, cuDevicePrimaryCtxRelease_v2(device)), OK);
            assert_eq!(returned!(driver, cuCtxSynchronize()), DESTROYED);
            assert_eq!(current(driver), first, "it stays current");
            assert_eq!(
                returned!(driver, cuDevicePrimaryCtxRelease_v2(device)),
                INVALID_CONTEXT
            );
            assert_eq!(
                returned!(driver, cuDevicePrimaryCtxRetain(&raw mut second, device)),
                OK
            );
            assert_eq!((first, returned!(driver, cuCtxSynchronize())), (second, OK));
            assert_eq!(returned!(driver, cuDevicePrimaryCtxReset_v2(device)), OK);
            assert_eq!(returned!(driver, cuCtxSynchronize()), DESTROYED);
            assert_eq!(
                returned!(driver, cuDevicePrimaryCtxRetain(&raw mut second, device)),
                OK
            );
            assert_eq!((first, returned!(driver, cuCtxSynchronize())), (second, OK));
            assert_eq!(returned!(driver, cuDevicePrimaryCtxRelease_v2(device)), OK);
            assert_eq!(set_current(driver, ptr::null_mut()), OK);
        });
    });
}

/// A context destroyed elsewhere stays current and is unusable.
#[driver_test]
fn destroyed_context_stays_current_but_unusable(test: &TestDriver) {
    let driver = test.driver();
    let context = CreatedContext::new(&test.device());
    let raw = context.as_raw().expose_provenance();
    let is_current = mpsc::channel();
    let (destroyed, is_destroyed) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let raw: CUcontext = ptr::with_exposed_provenance_mut(raw);
            assert_eq!(set_current(driver, raw), OK);
            is_current.0.send(()).expect("the test waits");
            is_destroyed.recv().expect("the test destroys it");
            let mut address = 0;
            assert_eq!(returned!(driver, cuCtxSynchronize()), DESTROYED);
            assert_eq!(
                returned!(driver, cuMemAlloc_v2(&raw mut address, 16)),
                DESTROYED
            );
            assert_eq!(current(driver), raw);
        });
        is_current.1.recv().expect("the thread makes it current");
        drop(context);
        destroyed.send(()).expect("the thread waits");
    });
}

/// Objects of a destroyed context are refused each with its code.
#[test]
fn destroyed_context_refuses_its_objects() -> TestResult {
    in_own_process(|| -> TestResult {
        on_driver(|test| -> TestResult {
            let stream = test.stream();
            let mut event = ptr::null_mut();
            let mut address = 0;
            let mut code = (ptr::null_mut(), ptr::null_mut());
            in_created_context(test, |driver, _| -> TestResult {
                assert_eq!(returned!(driver, cuEventCreate(&raw mut event, 0)), OK);
                assert_eq!(returned!(driver, cuMemAlloc_v2(&raw mut address, 64)), OK);
                code = loaded(driver)?;
                Ok(())
            })?;
            in_context(test, |driver| {
                let (module, function) = code;
                let mut array = [address, 1, 0];
                let mut current = ptr::null_mut();
                let [data, value, count] = &mut array;
                let mut arguments = [
                    (&raw mut *data).cast(),
                    (&raw mut *value).cast(),
                    (&raw mut *count).cast(),
                ];
                let arguments = arguments.as_mut_ptr();
                // A real driver returns either code, as it may have reused the memory of the
                // object.
                let either = [DESTROYED, INVALID_HANDLE];
                assert!(either.contains(&returned!(driver, cuEventQuery(event))));
                let looked_up = returned!(
                    driver,
                    cuModuleGetFunction(&raw mut current, module, c"fill".as_ptr())
                );
                assert!(either.contains(&looked_up), "{looked_up:?}");
                let raw = stream.as_raw();
                let none = ptr::null_mut();
                let launched = returned!(
                    driver,
                    cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, raw, arguments, none)
                );
                if test.simulator().is_some() {
                    assert_eq!(launched, INVALID_HANDLE);
                } else {
                    assert!(either.contains(&launched), "{launched:?}");
                }
                assert_eq!(returned!(driver, cuMemFree_v2(address)), INVALID_VALUE);
            });
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(())
}

/// A stream of another context is waited for and its events have no time here.
#[driver_test]
fn stream_waits_across_contexts_without_timing(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let event = Event::new(stream.context(), EventFlags::empty())?;
    event.record(&stream)?;
    in_created_context(test, |driver, _| {
        let mut current = ptr::null_mut();
        let mut time = 0.0_f32;
        assert_eq!(returned!(driver, cuEventCreate(&raw mut current, 0)), OK);
        assert_eq!(
            returned!(driver, cuEventRecord(current, ptr::null_mut())),
            OK
        );
        assert_eq!(returned!(driver, cuEventSynchronize(current)), OK);
        assert_eq!(returned!(driver, cuStreamSynchronize(stream.as_raw())), OK);
        let between = returned!(
            driver,
            cuEventElapsedTime(&raw mut time, event.as_raw(), current)
        );
        assert_eq!(between, INVALID_HANDLE);
        assert_eq!(returned!(driver, cuEventDestroy_v2(current)), OK);
    });
    Ok(())
}

/// Memory of another context is freed and a fill of it is accepted.
///
/// Only the return codes are checked: a real driver executes the fill later, in a context that may
/// not have access to the memory, which corrupts the context and thus the process.
#[test]
fn foreign_memory_is_freed_and_filled() {
    in_own_process(|| {
        on_driver(|test| {
            let current = test.context();
            let mut freed = 0;
            let mut filled = 0;
            in_created_context(test, |driver, other| {
                assert_eq!(returned!(driver, cuMemAlloc_v2(&raw mut freed, 64)), OK);
                assert_eq!(returned!(driver, cuMemAlloc_v2(&raw mut filled, 64)), OK);
                assert_eq!(set_current(driver, current.as_raw()), OK);
                assert_eq!(returned!(driver, cuMemFree_v2(freed)), OK);
                assert_eq!(returned!(driver, cuMemsetD8_v2(filled, 1, 64)), OK);
                if uses_cuda() {
                    std::process::exit(0);
                }
                assert_eq!(returned!(driver, cuMemFree_v2(filled)), OK);
                assert_eq!(set_current(driver, other), OK);
            });
        });
    });
}

/// A context or stream destroyed twice has a code where the driver survives it.
#[simulator_test]
fn double_destroy_returns_a_code(test: &TestDriver, _: &Simulator) {
    let driver = test.driver();
    let device = test.device().as_raw();
    let mut context = ptr::null_mut();
    let mut stream = ptr::null_mut();
    assert_eq!(
        returned!(driver, cuCtxCreate_v2(&raw mut context, 0, device)),
        OK
    );
    assert_eq!(returned!(driver, cuStreamCreate(&raw mut stream, 0)), OK);
    assert_eq!(returned!(driver, cuStreamDestroy_v2(stream)), OK);
    assert_eq!(
        returned!(driver, cuStreamDestroy_v2(stream)),
        INVALID_HANDLE
    );
    assert_eq!(returned!(driver, cuCtxDestroy_v2(context)), OK);
    assert_eq!(returned!(driver, cuCtxDestroy_v2(context)), DESTROYED);
    assert!(current(driver).is_null());
}
