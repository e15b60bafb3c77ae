//! [`PinnedBuffer`]: page-locked host memory.

use curium_driver::{Error, Function};
use curium_memory::{DeviceBuffer, PinnedBuffer, PinnedFlags};
use curium_sim::{Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{TestDriver, TestResult, driver_test, on_driver, simulator_test};

#[driver_test]
fn zeroed_pinned_buffer_holds_zeros(test: &TestDriver) -> TestResult {
    for flags in [
        PinnedFlags::empty(),
        PinnedFlags::PORTABLE | PinnedFlags::DEVICE_MAP,
    ] {
        let mut buffer = PinnedBuffer::<u64>::zeroed(&test.context(), 1000, flags)?;
        assert_eq!(&*buffer, &[0; 1000]);
        assert_eq!(buffer.byte_len(), 8000);
        buffer[999] = 7;
        assert_eq!(buffer.iter().sum::<u64>(), 7);
    }
    Ok(())
}

#[driver_test]
fn pinned_buffer_from_slice_holds_the_slice(test: &TestDriver) -> TestResult {
    let buffer = PinnedBuffer::from_slice(&test.context(), &[1_u8, 2, 3], PinnedFlags::empty())?;
    assert_eq!(format!("{buffer:?}"), "[1, 2, 3]");
    buffer.context().synchronize()?;
    Ok(())
}

#[driver_test]
fn write_combined_memory_can_be_written(test: &TestDriver) -> TestResult {
    let context = test.context();
    let source = PinnedBuffer::from_slice(&context, &[3_u32; 64], PinnedFlags::WRITE_COMBINED)?;
    let stream = context.stream()?;
    let buffer = DeviceBuffer::from_slice(&stream, &source)?;
    assert_eq!(buffer.to_vec()?, [3; 64]);
    Ok(())
}

#[driver_test]
fn device_copies_from_and_to_pinned_memory(test: &TestDriver) -> TestResult {
    let context = test.context();
    let stream = context.stream()?;
    let source = PinnedBuffer::from_slice(&context, &[9_u16; 500], PinnedFlags::empty())?;
    let buffer = DeviceBuffer::from_slice(&stream, &source)?;
    drop(source);
    let mut target = PinnedBuffer::<u16>::zeroed(&context, 500, PinnedFlags::empty())?;
    buffer.copy_to_slice(&mut target)?;
    assert_eq!(&*target, &[9; 500]);
    Ok(())
}

/// A zero or huge length is an error before any driver call.
#[driver_test]
fn zero_and_huge_lengths_make_no_driver_call(test: &TestDriver) {
    let context = test.context();
    test.assert_calls(Function::cuMemHostAlloc, 0, || {
        for len in [0, usize::MAX, isize::MAX as usize / 8 + 1] {
            let error = PinnedBuffer::<u64>::zeroed(&context, len, PinnedFlags::empty());
            let error = error.map(drop).expect_err("no such length");
            assert!(matches!(error, Error::Argument(_)), "{error}");
        }
        let error = PinnedBuffer::<u8>::from_slice(&context, &[], PinnedFlags::empty());
        error.map(drop).expect_err("no such length");
    });
}

#[simulator_test]
fn failed_allocation_reports_the_requested_size(test: &TestDriver, simulator: &Simulator) {
    simulator
        .inject(Fault::on(Function::cuMemHostAlloc).returns(CUresult::CUDA_ERROR_OUT_OF_MEMORY));
    let error = PinnedBuffer::<u64>::zeroed(&test.context(), 8, PinnedFlags::empty());
    let error = error.map(drop).expect_err("the injected fault occurs");
    assert!(error.is_out_of_memory());
    assert!(
        error.to_string().contains("64 bytes of pinned memory"),
        "{error}"
    );
}

#[driver_test]
fn unknown_flags_are_an_error(test: &TestDriver) {
    let flags = PinnedFlags::from_bits_retain(0x8000_0000);
    let error = PinnedBuffer::<u8>::zeroed(&test.context(), 8, flags)
        .map(drop)
        .expect_err("there is no such flag");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
}

#[driver_test]
fn pinned_buffer_is_freed_once_by_drop_and_by_close(test: &TestDriver) -> TestResult {
    let context = test.context();
    let make = || -> TestResult<_> {
        Ok(PinnedBuffer::<u8>::zeroed(
            &context,
            8,
            PinnedFlags::empty(),
        )?)
    };
    let dropped = make()?;
    let closed = make()?;
    test.assert_calls(Function::cuMemFreeHost, 1, || drop(dropped));
    test.assert_calls(Function::cuMemFreeHost, 1, || -> TestResult<_> {
        closed.close()?;
        Ok(())
    })?;
    Ok(())
}

/// A pinned buffer that the driver does not free is returned by close.
#[simulator_test]
fn close_returns_an_unfreed_pinned_buffer(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let buffer = PinnedBuffer::from_slice(&test.context(), &[5_u8; 3], PinnedFlags::empty())?;
    simulator
        .inject(Fault::on(Function::cuMemFreeHost).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM));
    let (buffer, error) = buffer
        .close()
        .expect_err("the injected fault occurs")
        .into_parts();
    assert_eq!(error.function(), Some(Function::cuMemFreeHost));
    assert_eq!(&*buffer, &[5; 3], "the buffer is still there");
    Ok(())
}

#[test]
fn overaligned_elements_leak_nothing() {
    #[derive(Clone, Copy)]
    // More than a page, and within the limit of object files on Windows.
    #[repr(C, align(8192))]
    struct Huge([u8; 8192]);

    on_driver(|test| {
        let context = test.context();
        // The driver's memory may or may not have this alignment; the buffer must be valid or the
        // call must return an error.
        match PinnedBuffer::from_slice(&context, &[Huge([1; 8192])], PinnedFlags::empty()) {
            Ok(buffer) => assert_eq!(buffer.as_ptr().addr() % 8192, 0),
            Err(error) => assert!(
                error
                    .to_string()
                    .contains("unsupported alignment (8192 bytes)"),
                "{error}"
            ),
        }
    });
}

#[driver_test]
fn pinned_buffer_is_written_on_any_thread(test: &TestDriver) -> TestResult {
    let mut buffer = PinnedBuffer::<u32>::zeroed(&test.context(), 4, PinnedFlags::empty())?;
    std::thread::scope(|scope| {
        for (index, element) in buffer.iter_mut().enumerate() {
            scope.spawn(move || *element = index as u32);
        }
    });
    let moved = std::thread::spawn(move || buffer.to_vec())
        .join()
        .expect("the thread does not panic");
    assert_eq!(moved, [0, 1, 2, 3]);
    Ok(())
}

pub(crate) mod operations {
    use curium_memory::{PinnedBuffer, PinnedFlags};

    use crate::operations::{LEN, Operation, Operations, boxed, made};

    const OPERATIONS: &[Operation] = &[
        ("PinnedBuffer::zeroed", |fixture| {
            made(PinnedBuffer::<u32>::zeroed(
                &fixture.context,
                LEN,
                PinnedFlags::empty(),
            )?)
        }),
        ("PinnedBuffer::from_slice", |fixture| {
            made(PinnedBuffer::from_slice(
                &fixture.context,
                &[5_u32; LEN],
                PinnedFlags::empty(),
            )?)
        }),
        ("PinnedBuffer::close", |fixture| {
            let buffer = PinnedBuffer::<u32>::zeroed(&fixture.context, LEN, PinnedFlags::empty())?;
            buffer.close().map_err(|returned| returned.error).map(boxed)
        }),
        ("PinnedBuffer::filled", |fixture| {
            made(PinnedBuffer::filled(
                &fixture.context,
                LEN,
                7_u32,
                PinnedFlags::empty(),
            )?)
        }),
        #[cfg(target_os = "linux")]
        ("PinnedBuffer::zeroed_on_node", |fixture| {
            let pinned = PinnedBuffer::<u32>::zeroed_on_node(&fixture.context, LEN, 0)?;
            pinned.close().map_err(|returned| returned.error).map(boxed)
        }),
        ("PinnedBuffer::flags", |fixture| {
            made(fixture.values.flags()?)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }
}
