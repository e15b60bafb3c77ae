//! Streams: synchronization between streams, and the handles of the default streams.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use curium_driver::AsRawStream as _;
use curium_driver::{Driver, Stream, StreamFlags, StreamOptions};
use curium_memory::DeviceBuffer;
use curium_sys::{CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, CUresult};
use curium_tests::{ContextStack, Gate, TestDriver, TestResult, driver_test};

use super::{INVALID_HANDLE, INVALID_VALUE, OK, in_context, loaded};

const NOT_READY: CUresult = CUresult::CUDA_ERROR_NOT_READY;
/// The time after which a call that does not wait has returned.
const MOMENT: Duration = Duration::from_millis(100);
/// The time that a call that does not wait may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Starts a thread that calls the driver with the test's context current, and passes on whether it
/// has returned.
fn with_call<T>(
    test: &TestDriver,
    call: impl FnOnce(&Driver) -> CUresult + Send,
    body: impl FnOnce(&dyn Fn() -> bool) -> T,
) -> T {
    let has_returned = AtomicBool::new(false);
    let context = test.context();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let stack = ContextStack::push(test.driver(), &[context.as_raw()]);
            assert_eq!(call(test.driver()), OK);
            has_returned.store(true, Ordering::Release);
            stack.clear();
        });
        body(&|| has_returned.load(Ordering::Acquire))
    })
}

/// Asserts that a call waits until a gate is opened.
#[track_caller]
fn assert_waits(test: &TestDriver, gate: Gate, call: impl FnOnce(&Driver) -> CUresult + Send) {
    with_call(test, call, |has_returned| {
        std::thread::sleep(MOMENT);
        let waits = !has_returned();
        gate.open();
        assert!(waits, "the call has not waited");
    });
}

/// Asserts that a call returns while a gate is closed, and then opens the gate.
#[track_caller]
fn assert_returns(test: &TestDriver, gate: Gate, call: impl FnOnce(&Driver) -> CUresult + Send) {
    with_call(test, call, |has_returned| {
        let begin = Instant::now();
        while !has_returned() && begin.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
        let returns = has_returned();
        gate.open();
        assert!(returns, "the call has waited");
    });
}

/// The legacy stream and blocking streams wait for each other and others do not.
#[driver_test]
fn legacy_stream_orders_blocking_streams_only(test: &TestDriver) -> TestResult {
    let options = StreamOptions::new().with_flags(StreamFlags::empty());
    let blocking = || Stream::new(&test.context(), options);
    let first = blocking()?;
    let second = blocking()?;
    let other = test.stream();
    let buffer = DeviceBuffer::<u32>::zeroed(&other, 16)?;
    let address = buffer.as_pointer().as_raw();
    other.synchronize()?;
    in_context(test, |driver| {
        let legacy = ptr::null_mut();
        let gate = Gate::on(&first);
        assert_eq!(
            returned!(driver, cuMemsetD32Async(address, 1, 1, legacy)),
            OK
        );
        assert_eq!(
            returned!(driver, cuMemsetD32Async(address + 4, 2, 1, second.as_raw())),
            OK
        );
        assert_eq!(
            returned!(driver, cuMemsetD32Async(address + 8, 3, 1, other.as_raw())),
            OK
        );
        assert_eq!(
            returned!(driver, cuStreamSynchronize(other.as_raw())),
            OK,
            "it waits for neither"
        );
        assert_eq!(
            returned!(driver, cuStreamQuery(legacy)),
            NOT_READY,
            "it waits for the first"
        );
        assert_eq!(
            returned!(driver, cuStreamQuery(second.as_raw())),
            NOT_READY,
            "it waits for the legacy one"
        );
        gate.open();
        assert_eq!(returned!(driver, cuStreamSynchronize(legacy)), OK);
        assert_eq!(returned!(driver, cuStreamSynchronize(second.as_raw())), OK);
        let gate = Gate::on(&other);
        assert_eq!(
            returned!(driver, cuMemsetD32Async(address, 1, 1, legacy)),
            OK
        );
        assert_eq!(
            returned!(driver, cuStreamSynchronize(legacy)),
            OK,
            "it does not wait for the other"
        );
        gate.open();
    });
    assert_eq!(buffer.to_vec()?[..3], [1, 2, 3]);
    Ok(())
}

/// Freeing memory and unloading code wait for the device.
#[driver_test]
fn free_and_unload_wait_for_the_device(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut address = 0;
    let mut host = ptr::null_mut();
    let mut code = (ptr::null_mut(), ptr::null_mut());
    in_context(test, |driver| -> TestResult {
        assert_eq!(returned!(driver, cuMemAlloc_v2(&raw mut address, 64)), OK);
        assert_eq!(returned!(driver, cuMemHostAlloc(&raw mut host, 64, 0)), OK);
        code = loaded(driver)?;
        Ok(())
    })?;
    let host = host.expose_provenance();
    let module = code.0.expose_provenance();
    assert_waits(test, Gate::on(&stream), |driver| {
        returned!(driver, cuMemFree_v2(address))
    });
    assert_waits(test, Gate::on(&stream), |driver| {
        returned!(
            driver,
            cuMemFreeHost(ptr::with_exposed_provenance_mut(host))
        )
    });
    assert_waits(test, Gate::on(&stream), |driver| {
        returned!(
            driver,
            cuModuleUnload(ptr::with_exposed_provenance_mut(module))
        )
    });
    Ok(())
}

/// Allocations and synchronous copies do not wait for other streams.
#[driver_test]
fn allocations_and_sync_copies_ignore_other_streams(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let buffer = DeviceBuffer::<u32>::zeroed(&stream, 16)?;
    let device_address = buffer.as_pointer().as_raw();
    stream.synchronize()?;
    let mut address = 0;
    assert_returns(test, Gate::on(&stream), |driver| {
        returned!(driver, cuMemAlloc_v2(&raw mut address, 64))
    });
    in_context(test, |driver| {
        assert_eq!(returned!(driver, cuMemFree_v2(address)), OK);
    });
    assert_returns(test, Gate::on(&stream), |driver| {
        let host = [7_u32; 4];
        returned!(
            driver,
            cuMemcpyHtoD_v2(device_address, host.as_ptr().cast(), 16)
        )
    });
    assert_returns(test, Gate::on(&stream), |driver| {
        returned!(driver, cuMemsetD8_v2(device_address + 16, 1, 16))
    });
    assert_returns(test, Gate::on(&stream), |driver| {
        let mut other = ptr::null_mut();
        assert_eq!(returned!(driver, cuStreamCreate(&raw mut other, 1)), OK);
        returned!(driver, cuStreamDestroy_v2(other))
    });
    // The fill was enqueued in the default stream, for which the buffer's stream does not wait.
    test.context().synchronize()?;
    assert_eq!(buffer.to_vec()?[3..5], [7, 0x0101_0101]);
    Ok(())
}

/// Copies of pageable memory wait unless they are small uploads.
#[driver_test]
fn pageable_copies_wait_except_small_uploads(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let buffer = DeviceBuffer::<u8>::zeroed(&stream, 4 << 20)?;
    let address = buffer.as_pointer().as_raw();
    let raw = stream.as_raw().expose_provenance();
    stream.synchronize()?;
    let stream_of = |raw| ptr::with_exposed_provenance_mut(raw);
    let mut host = vec![3_u8; 4 << 20];
    let small: [u8; 64] = [5; 64];
    assert_returns(test, Gate::on(&stream), |driver| {
        returned!(
            driver,
            cuMemcpyHtoDAsync_v2(address, small.as_ptr().cast(), 64, stream_of(raw))
        )
    });
    assert_waits(test, Gate::on(&stream), |driver| {
        returned!(
            driver,
            cuMemcpyHtoDAsync_v2(address, host.as_ptr().cast(), host.len(), stream_of(raw))
        )
    });
    assert_waits(test, Gate::on(&stream), |driver| {
        returned!(
            driver,
            cuMemcpyDtoHAsync_v2(
                host.as_mut_ptr().cast::<c_void>(),
                address,
                64,
                stream_of(raw)
            )
        )
    });
    stream.synchronize()?;
    Ok(())
}

/// Default streams have one number and are not destroyed.
#[driver_test]
fn default_streams_share_an_id_and_persist(test: &TestDriver) {
    in_context(test, |driver| {
        for stream in [ptr::null_mut(), CU_STREAM_LEGACY, CU_STREAM_PER_THREAD] {
            assert_eq!(
                returned!(driver, cuStreamDestroy_v2(stream)),
                INVALID_HANDLE,
                "{stream:?}"
            );
        }
        let number = |stream| {
            let mut number = 0;
            assert_eq!(
                returned!(driver, cuStreamGetId(stream, &raw mut number)),
                OK
            );
            number
        };
        assert_eq!(number(ptr::null_mut()), number(CU_STREAM_LEGACY));
        assert_ne!(number(ptr::null_mut()), number(CU_STREAM_PER_THREAD));
    });
}

/// A priority is clamped without an error and unknown flags are refused.
#[driver_test]
fn priority_is_clamped_and_unknown_flags_fail(test: &TestDriver) {
    in_context(test, |driver| {
        let mut least = 1;
        let mut greatest = 1;
        assert_eq!(
            returned!(
                driver,
                cuCtxGetStreamPriorityRange(&raw mut least, &raw mut greatest)
            ),
            OK
        );
        assert_eq!((least, greatest), (0, -5));
        let mut stream = ptr::null_mut();
        assert_eq!(
            returned!(driver, cuStreamCreate(&raw mut stream, 0x40)),
            INVALID_VALUE
        );
        for (asked, found) in [(100, least), (-100, greatest)] {
            let mut priority = 7;
            assert_eq!(
                returned!(
                    driver,
                    cuStreamCreateWithPriority(&raw mut stream, 1, asked)
                ),
                OK
            );
            assert_eq!(
                returned!(driver, cuStreamGetPriority(stream, &raw mut priority)),
                OK
            );
            assert_eq!(priority, found, "of {asked}");
            assert_eq!(returned!(driver, cuStreamDestroy_v2(stream)), OK);
        }
    });
}
