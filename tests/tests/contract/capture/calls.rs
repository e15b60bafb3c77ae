//! The calls that a global capture forbids on its thread, and those it allows.

use std::ffi::CString;
use std::ptr;

use curium_driver::AsRawStream as _;
use curium_driver::{Driver, Event, EventFlags, Result, call};
use curium_memory::DeviceBuffer;
use curium_sys::{CUmodule, CUpointer_attribute, CUresult, CUstreamCaptureMode_enum as Mode};
use curium_tests::{ContextStack, TestDriver, TestResult, driver_test, kernels};

use super::rules::assert_offence;
use super::{begin, code, destroy, end};

const GLOBAL: curium_sys::CUstreamCaptureMode = Mode::CU_STREAM_CAPTURE_MODE_GLOBAL;

fn loaded(driver: &Driver) -> Result<CUmodule> {
    let image = CString::new(kernels::FILL).expect("PTX has no NUL");
    let mut module = ptr::null_mut();
    // SAFETY: the image is PTX that ends with a NUL, and the address is valid for writes of a
    // module handle.
    unsafe {
        call!(
            driver,
            cuModuleLoadData(&raw mut module, image.as_ptr().cast())
        )
    }?;
    Ok(module)
}

fn unload(driver: &Driver, module: CUmodule) -> Result<()> {
    // SAFETY: the module is live, and none of its kernels runs.
    unsafe { call!(driver, cuModuleUnload(module)) }
}

/// Runs `body` with the primary context current.
fn in_context<R>(test: &TestDriver, body: impl FnOnce(&Driver) -> R) -> R {
    let context = test.context();
    let scope = ContextStack::push(test.driver(), &[context.as_raw()]);
    let outcome = body(test.driver());
    scope.assert_unchanged("the body");
    outcome
}

/// Calls that wait or change memory and code invalidate a global capture.
#[driver_test]
fn blocking_calls_invalidate_a_global_capture(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let other = test.stream();
    let unrelated = Event::new(&test.context(), EventFlags::empty())?;
    unrelated.record(&other)?;
    other.synchronize()?;
    in_context(test, |driver| -> TestResult {
        let module = loaded(driver)?;
        let mut address = 0;
        let mut host = ptr::null_mut();
        // SAFETY: the address is valid for writes.
        unsafe { call!(driver, cuMemAlloc_v2(&raw mut address, 64)) }?;
        let unsupported = CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        let offends = |offence: &mut dyn FnMut() -> Result<()>| -> TestResult<_> {
            assert_offence(&stream, GLOBAL, unsupported, offence)?;
            Ok(())
        };
        // SAFETY: the stream is live.
        offends(&mut || unsafe { call!(driver, cuStreamSynchronize(other.as_raw())) })?;
        // SAFETY: the stream is live.
        offends(&mut || unsafe { call!(driver, cuStreamQuery(other.as_raw())) })?;
        // SAFETY: a context is current.
        offends(&mut || unsafe { call!(driver, cuCtxSynchronize()) })?;
        // SAFETY: the event is live.
        offends(&mut || unsafe { call!(driver, cuEventQuery(unrelated.as_raw())) })?;
        // SAFETY: the memory is live and not in use; it stays allocated, because the driver rejects
        // the call.
        offends(&mut || unsafe { call!(driver, cuMemFree_v2(address)) })?;
        // SAFETY: the address is valid for writes.
        offends(&mut || unsafe { call!(driver, cuMemHostAlloc(&raw mut host, 64, 0)) })?;
        offends(&mut || unload(driver, module))?;
        // SAFETY: the memory is live and not in use.
        unsafe { call!(driver, cuMemFree_v2(address)) }?;
        unload(driver, module)?;
        Ok(())
    })?;
    Ok(())
}

/// Calls that create or query objects during a capture; returns the module that they loaded.
fn make_and_ask(driver: &Driver, address: u64) -> Result<CUmodule> {
    let mut stream = ptr::null_mut();
    let mut event = ptr::null_mut();
    let mut kind = 0_u32;
    let mut bytes = [0_usize; 2];
    // SAFETY: the address is valid for writes.
    unsafe { call!(driver, cuStreamCreate(&raw mut stream, 1)) }?;
    // SAFETY: the stream was created above.
    unsafe { call!(driver, cuStreamDestroy_v2(stream)) }?;
    // SAFETY: the address is valid for writes.
    unsafe { call!(driver, cuEventCreate(&raw mut event, 0)) }?;
    // SAFETY: the event was created above.
    unsafe { call!(driver, cuEventDestroy_v2(event)) }?;
    let output = (&raw mut kind).cast();
    let attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    // SAFETY: the address is valid for writes of this attribute.
    unsafe { call!(driver, cuPointerGetAttribute(output, attribute, address)) }?;
    let [free, total] = &mut bytes;
    // SAFETY: both addresses are valid for writes.
    unsafe { call!(driver, cuMemGetInfo_v2(&raw mut *free, &raw mut *total)) }?;
    loaded(driver)
}

/// Calls that create and query keep a global capture valid and a stream ordered allocation is its
/// node.
#[driver_test]
fn queries_and_creation_keep_a_capture_valid(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let buffer = DeviceBuffer::<u32>::zeroed(&stream, 4)?;
    stream.synchronize()?;
    in_context(test, |driver| -> TestResult {
        let mut allocated = 0;
        let mut count = 0;
        begin(&stream, GLOBAL)?;
        let outcome = make_and_ask(driver, buffer.as_pointer().as_raw());
        // SAFETY: the address is valid for writes, and the stream is capturing.
        let node = unsafe {
            call!(
                driver,
                cuMemAllocAsync(&raw mut allocated, 64, stream.as_raw())
            )
        };
        // SAFETY: the memory was allocated by the capture.
        let freed = unsafe { call!(driver, cuMemFreeAsync(allocated, stream.as_raw())) };
        let (graph, ended) = end(&stream);
        assert_eq!([code(node), code(freed), code(ended)], [None; 3]);
        // SAFETY: the graph is live, and the count is valid for writes; with null the call returns
        // only the count.
        unsafe {
            call!(
                driver,
                cuGraphGetNodes(graph, ptr::null_mut(), &raw mut count)
            )
        }?;
        assert_eq!(count, 2, "an allocation and its deallocation");
        destroy(&stream, graph)?;
        unload(driver, outcome?)?;
        Ok(())
    })?;
    Ok(())
}

/// An edge is added once and a circle is refused when the graph is instantiated.
#[driver_test]
fn edges_are_unique_and_cycles_fail_to_instantiate(test: &TestDriver) -> TestResult {
    in_context(test, |driver| -> TestResult {
        let mut graph = ptr::null_mut();
        let mut first = ptr::null_mut();
        let mut second = ptr::null_mut();
        let mut executable = ptr::null_mut();
        // SAFETY: the address is valid for writes.
        unsafe { call!(driver, cuGraphCreate(&raw mut graph, 0)) }?;
        for node in [&mut first, &mut second] {
            // SAFETY: the graph is live, and the address is valid for writes.
            let added = unsafe {
                call!(
                    driver,
                    cuGraphAddEmptyNode(&raw mut *node, graph, ptr::null(), 0)
                )
            };
            added?;
        }
        let connect = |mut from, mut to| {
            let from = &raw mut from;
            let to = &raw mut to;
            // SAFETY: both are nodes of the graph.
            code(unsafe { call!(driver, cuGraphAddDependencies(graph, from, to, 1)) })
        };
        assert_eq!(connect(first, second), None);
        assert_eq!(
            connect(first, second),
            Some(CUresult::CUDA_ERROR_INVALID_VALUE),
            "there is one"
        );
        assert_eq!(
            connect(second, first),
            None,
            "a cycle is detected at instantiation"
        );
        // SAFETY: the graph is live, and the address is valid for writes.
        let refused = unsafe {
            call!(
                driver,
                cuGraphInstantiateWithFlags(&raw mut executable, graph, 0)
            )
        };
        assert_eq!(code(refused), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
        // SAFETY: the graph is live, and is not used again.
        unsafe { call!(driver, cuGraphDestroy(graph)) }?;
        Ok(())
    })?;
    Ok(())
}
