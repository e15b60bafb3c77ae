//! [`PinnedBuffer`]: page-locked host memory.

use curium_driver::{Error, Function};
use curium_memory::{DeviceBuffer, PinnedBuffer, PinnedFlags};
use curium_sim::{Config, Fault};
use curium_sys::CUresult;
use curium_tests::{on_driver, on_simulator};

#[test]
fn zeroed_pinned_buffer_is_a_slice_of_zeros() {
    on_driver(|test| {
        for flags in [
            PinnedFlags::empty(),
            PinnedFlags::PORTABLE | PinnedFlags::DEVICE_MAP,
        ] {
            let mut buffer =
                PinnedBuffer::<u64>::zeroed(&test.context(), 1000, flags).expect("memory suffices");
            assert_eq!(&*buffer, &[0; 1000]);
            assert_eq!(buffer.byte_len(), 8000);
            buffer[999] = 7;
            assert_eq!(buffer.iter().sum::<u64>(), 7);
        }
    });
}

#[test]
fn pinned_buffer_from_slice_holds_the_slice() {
    on_driver(|test| {
        let buffer = PinnedBuffer::from_slice(&test.context(), &[1_u8, 2, 3], PinnedFlags::empty());
        let buffer = buffer.expect("memory suffices");
        assert_eq!(format!("{buffer:?}"), "[1, 2, 3]");
        buffer
            .context()
            .synchronize()
            .expect("the buffer keeps its context");
    });
}

#[test]
fn write_combined_memory_can_be_written() {
    on_driver(|test| {
        let context = test.context();
        let source = PinnedBuffer::from_slice(&context, &[3_u32; 64], PinnedFlags::WRITE_COMBINED);
        let source = source.expect("memory suffices");
        let stream = context.stream().expect("a stream can be created");
        let buffer = DeviceBuffer::from_slice(&stream, &source).expect("memory suffices");
        assert_eq!(buffer.to_vec().expect("the buffer can be read"), [3; 64]);
    });
}

#[test]
fn device_copies_from_and_to_pinned_memory() {
    on_driver(|test| {
        let context = test.context();
        let stream = context.stream().expect("a stream can be created");
        let source = PinnedBuffer::from_slice(&context, &[9_u16; 500], PinnedFlags::empty())
            .expect("memory suffices");
        let buffer = DeviceBuffer::from_slice(&stream, &source).expect("memory suffices");
        drop(source);
        let mut target = PinnedBuffer::<u16>::zeroed(&context, 500, PinnedFlags::empty())
            .expect("memory suffices");
        buffer
            .copy_to_slice(&mut target)
            .expect("the lengths are equal");
        assert_eq!(&*target, &[9; 500]);
    });
}

#[test]
fn zero_or_huge_length_is_an_error_before_the_driver_is_called() {
    on_driver(|test| {
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
    });
}

#[test]
fn failed_allocation_reports_the_requested_size() {
    on_simulator(Config::new(), |test, simulator| {
        simulator.inject(
            Fault::on(Function::cuMemHostAlloc).returns(CUresult::CUDA_ERROR_OUT_OF_MEMORY),
        );
        let error = PinnedBuffer::<u64>::zeroed(&test.context(), 8, PinnedFlags::empty());
        let error = error.map(drop).expect_err("the injected fault occurs");
        assert!(error.is_out_of_memory());
        assert!(
            error.to_string().contains("64 bytes of pinned memory"),
            "{error}"
        );
    });
}

#[test]
fn unknown_flags_are_an_error() {
    on_driver(|test| {
        let flags = PinnedFlags::from_bits_retain(0x8000_0000);
        let error = PinnedBuffer::<u8>::zeroed(&test.context(), 8, flags)
            .map(drop)
            .expect_err("there is no such flag");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
    });
}

#[test]
fn pinned_buffer_is_freed_once_by_drop_and_by_close() {
    on_driver(|test| {
        let context = test.context();
        let make = || {
            PinnedBuffer::<u8>::zeroed(&context, 8, PinnedFlags::empty()).expect("memory suffices")
        };
        let (dropped, closed) = (make(), make());
        test.assert_calls(Function::cuMemFreeHost, 1, || drop(dropped));
        test.assert_calls(Function::cuMemFreeHost, 1, || {
            closed.close().expect("the driver frees the buffer");
        });
    });
}

#[test]
fn pinned_buffer_that_the_driver_does_not_free_is_given_back_by_close() {
    on_simulator(Config::new(), |test, simulator| {
        let buffer = PinnedBuffer::from_slice(&test.context(), &[5_u8; 3], PinnedFlags::empty());
        let buffer = buffer.expect("memory suffices");
        simulator.inject(
            Fault::on(Function::cuMemFreeHost).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM),
        );
        let (buffer, error) = buffer
            .close()
            .expect_err("the injected fault occurs")
            .into_parts();
        assert_eq!(error.function(), Some(Function::cuMemFreeHost));
        assert_eq!(&*buffer, &[5; 3], "the buffer is still there");
    });
}

#[test]
fn overaligned_elements_are_refused_and_nothing_leaks() {
    #[derive(Clone, Copy)]
    // More than a page, and within the limit of object files on Windows.
    #[repr(C, align(8192))]
    struct Huge([u8; 8192]);

    on_driver(|test| {
        let context = test.context();
        // The driver's memory may or may not have this alignment; the buffer must be valid or the call must return an
        // error.
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

#[test]
fn pinned_buffer_is_written_on_any_thread() {
    on_driver(|test| {
        let buffer = PinnedBuffer::<u32>::zeroed(&test.context(), 4, PinnedFlags::empty());
        let mut buffer = buffer.expect("memory suffices");
        std::thread::scope(|scope| {
            for (index, element) in buffer.iter_mut().enumerate() {
                scope.spawn(move || *element = index as u32);
            }
        });
        let moved = std::thread::spawn(move || buffer.to_vec())
            .join()
            .expect("the thread does not panic");
        assert_eq!(moved, [0, 1, 2, 3]);
    });
}

pub(crate) mod operations {
    use curium_memory::{PinnedBuffer, PinnedFlags};

    use crate::operations::{LEN, Operation, boxed, made};

    pub(crate) const OPERATIONS: &[Operation] = &[
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
}
