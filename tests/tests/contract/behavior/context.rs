//! Contexts: the current context, the calls that need one, and destroyed contexts.

use std::ffi::c_void;
use std::ptr;
use std::sync::mpsc;

use curium_driver::{Driver, Event, EventFlags};
use curium_memory::DeviceBuffer;
use curium_sim::Config;
use curium_sys::{CUcontext, CUresult};
use curium_tests::{CreatedContext, in_own_process, kernels, on_driver, on_simulator, uses_cuda};

use super::{
    DESTROYED, INVALID_CONTEXT, INVALID_HANDLE, INVALID_VALUE, OK, current, in_context,
    in_created_context, loaded,
};

fn set_current(driver: &Driver, context: CUcontext) -> CUresult {
    returned!(driver, cuCtxSetCurrent(context))
}

#[test]
fn set_current_replaces_the_top_create_pushes_and_destroy_pops() {
    on_driver(|test| {
        let (driver, device) = (test.driver(), test.device().as_raw());
        let (mut first, mut second, mut popped) =
            (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
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
    });
}

#[test]
fn calls_without_a_stream_need_a_current_context() {
    on_driver(|test| {
        let buffer =
            DeviceBuffer::from_slice(&test.stream(), &[1_u32; 4]).expect("memory suffices");
        let (driver, at) = (test.driver(), buffer.as_pointer().as_raw());
        let (mut address, mut host, mut number, mut bytes) =
            (0, ptr::null_mut::<c_void>(), 0, [0; 2]);
        let (mut stream, mut event, mut module) =
            (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        let image = std::ffi::CString::new(kernels::FILL).expect("PTX has no NUL");
        let refused = [
            returned!(driver, cuMemAlloc_v2(&raw mut address, 16)),
            returned!(driver, cuMemAllocHost_v2(&raw mut host, 16)),
            returned!(driver, cuMemHostAlloc(&raw mut host, 16, 0)),
            returned!(driver, cuMemAllocManaged(&raw mut address, 16, 1)),
            returned!(driver, cuMemcpyHtoD_v2(at, (&raw const number).cast(), 4)),
            returned!(driver, cuMemcpy(at, at + 8, 4)),
            returned!(driver, cuMemsetD32_v2(at, 0, 1)),
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
    });
}

#[test]
fn calls_that_name_a_stream_an_event_or_memory_need_no_current_context() {
    on_driver(|test| {
        let stream = test.stream();
        let buffer = DeviceBuffer::from_slice(&stream, &[1_u32; 4]).expect("memory suffices");
        let event =
            Event::new(stream.context(), EventFlags::empty()).expect("an event can be created");
        event.record(&stream).expect("an event can be recorded");
        let (driver, at, raw, event) = (
            test.driver(),
            buffer.as_pointer().as_raw(),
            stream.as_raw(),
            event.as_raw(),
        );
        let (mut address, mut owner) = (0, ptr::null_mut());
        let accepted = [
            returned!(driver, cuMemsetD8Async(at, 1, 4, raw)),
            returned!(driver, cuMemcpyDtoDAsync_v2(at, at + 8, 4, raw)),
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
    });
}

#[test]
fn primary_context_ends_with_its_last_release_and_is_revived_by_the_next_retention() {
    let name = "behavior::context::primary_context_ends_with_its_last_release_and_is_revived_by_the_next_retention";
    in_own_process(name, || {
        on_driver(|test| {
            let (driver, device) = (test.driver(), test.device().as_raw());
            let (mut first, mut second) = (ptr::null_mut(), ptr::null_mut());
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

#[test]
fn context_destroyed_elsewhere_stays_current_and_is_unusable() {
    on_driver(|test| {
        let (driver, context) = (test.driver(), CreatedContext::new(&test.device()));
        let raw = context.as_raw().expose_provenance();
        let (is_current, (destroyed, is_destroyed)) = (mpsc::channel(), mpsc::channel());
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
    });
}

#[test]
fn objects_of_a_destroyed_context_are_refused_each_with_its_code() {
    let name = "behavior::context::objects_of_a_destroyed_context_are_refused_each_with_its_code";
    in_own_process(name, || {
        on_driver(|test| {
            let stream = test.stream();
            let (mut event, mut address) = (ptr::null_mut(), 0);
            let mut code = (ptr::null_mut(), ptr::null_mut());
            in_created_context(test, |driver, _| {
                assert_eq!(returned!(driver, cuEventCreate(&raw mut event, 0)), OK);
                assert_eq!(returned!(driver, cuMemAlloc_v2(&raw mut address, 64)), OK);
                code = loaded(driver);
            });
            in_context(test, |driver| {
                let (module, function) = code;
                let (mut place, mut found) = ([address, 1, 0], ptr::null_mut());
                let [data, value, count] = &mut place;
                let mut arguments = [
                    (&raw mut *data).cast(),
                    (&raw mut *value).cast(),
                    (&raw mut *count).cast(),
                ];
                let arguments = arguments.as_mut_ptr();
                // A real driver returns either code, as it may have reused the memory of the object.
                let either = [DESTROYED, INVALID_HANDLE];
                assert!(either.contains(&returned!(driver, cuEventQuery(event))));
                let looked_up = returned!(
                    driver,
                    cuModuleGetFunction(&raw mut found, module, c"fill".as_ptr())
                );
                assert!(either.contains(&looked_up), "{looked_up:?}");
                let (raw, none) = (stream.as_raw(), ptr::null_mut());
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
        });
    });
}

#[test]
fn stream_of_another_context_is_waited_for_and_its_events_have_no_time_here() {
    on_driver(|test| {
        let stream = test.stream();
        let event =
            Event::new(stream.context(), EventFlags::empty()).expect("an event can be created");
        event.record(&stream).expect("an event can be recorded");
        in_created_context(test, |driver, _| {
            let (mut own, mut time) = (ptr::null_mut(), 0.0_f32);
            assert_eq!(returned!(driver, cuEventCreate(&raw mut own, 0)), OK);
            assert_eq!(returned!(driver, cuEventRecord(own, ptr::null_mut())), OK);
            assert_eq!(returned!(driver, cuEventSynchronize(own)), OK);
            assert_eq!(returned!(driver, cuStreamSynchronize(stream.as_raw())), OK);
            let between = returned!(
                driver,
                cuEventElapsedTime(&raw mut time, event.as_raw(), own)
            );
            assert_eq!(between, INVALID_HANDLE);
            assert_eq!(returned!(driver, cuEventDestroy_v2(own)), OK);
        });
    });
}

/// Only the return codes are checked: a real driver executes the fill later, in a context that may not have access to
/// the memory, which corrupts the context and thus the process.
#[test]
fn memory_of_another_context_is_freed_and_a_fill_of_it_is_accepted() {
    let name = "behavior::context::memory_of_another_context_is_freed_and_a_fill_of_it_is_accepted";
    in_own_process(name, || {
        on_driver(|test| {
            let (own, mut freed, mut filled) = (test.context(), 0, 0);
            in_created_context(test, |driver, other| {
                assert_eq!(returned!(driver, cuMemAlloc_v2(&raw mut freed, 64)), OK);
                assert_eq!(returned!(driver, cuMemAlloc_v2(&raw mut filled, 64)), OK);
                assert_eq!(set_current(driver, own.as_raw()), OK);
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

#[test]
fn context_or_stream_destroyed_twice_has_a_code_where_the_driver_survives_it() {
    on_simulator(Config::new(), |test, _| {
        let (driver, device) = (test.driver(), test.device().as_raw());
        let (mut context, mut stream) = (ptr::null_mut(), ptr::null_mut());
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
    });
}
