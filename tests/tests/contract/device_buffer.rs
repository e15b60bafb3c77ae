//! [`DeviceBuffer`]: allocation, copies and deallocation.

use curium_driver::{Error, Event, EventFlags, Function};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, Fault};
use curium_sys::CUresult;
use curium_tests::{Gate, on_driver, on_simulator, stream_work};

#[test]
fn buffer_from_slice_holds_the_slice() {
    on_driver(|test| {
        let stream = test.stream();
        for len in [1_u32, 2, 255, 4096, if cfg!(miri) { 5000 } else { 100_003 }] {
            let source: Vec<u32> = (0..len)
                .map(|index| index.wrapping_mul(0x9e37_79b9))
                .collect();
            let buffer = DeviceBuffer::from_slice(&stream, &source).expect("memory suffices");
            assert_eq!(
                (buffer.len(), buffer.byte_len()),
                (source.len(), source.len() * 4)
            );
            assert!(!buffer.is_empty());
            assert_eq!(buffer.to_vec().expect("the buffer can be read"), source);
        }
    });
}

#[test]
fn buffer_holds_any_element_size() {
    on_driver(|test| {
        let stream = test.stream();
        let bytes = DeviceBuffer::from_slice(&stream, &[1_u8, 2, 3]).expect("memory suffices");
        assert_eq!(bytes.to_vec().expect("the buffer can be read"), [1, 2, 3]);
        let doubles = DeviceBuffer::from_slice(&stream, &[0.5_f64, -0.0, f64::MIN_POSITIVE])
            .expect("memory suffices");
        assert_eq!(
            doubles.to_vec().expect("the buffer can be read"),
            [0.5, -0.0, f64::MIN_POSITIVE]
        );
        let triples = DeviceBuffer::from_slice(&stream, &[[1_u16, 2, 3], [4, 5, 6]])
            .expect("memory suffices");
        assert_eq!(
            triples.to_vec().expect("the buffer can be read"),
            [[1, 2, 3], [4, 5, 6]]
        );
        assert_eq!(triples.byte_len(), 12);
    });
}

#[test]
fn zeroed_buffer_is_zero_where_other_bytes_were() {
    on_driver(|test| {
        let stream = test.stream();
        drop(DeviceBuffer::from_slice(&stream, &[0xff_u8; 1000]).expect("memory suffices"));
        let buffer = DeviceBuffer::<u8>::zeroed(&stream, 1000).expect("memory suffices");
        assert_eq!(buffer.to_vec().expect("the buffer can be read"), [0; 1000]);
    });
}

#[test]
fn fresh_memory_is_not_zero() {
    on_simulator(Config::new(), |test, _| {
        let buffer = DeviceBuffer::<u64>::uninit(&test.stream(), 64).expect("memory suffices");
        let bytes = buffer.to_vec().expect("the buffer can be read");
        assert!(
            bytes.iter().any(|word| *word != 0),
            "uninitialized memory does not read as zeros"
        );
    });
}

#[test]
fn buffer_is_overwritten_by_copies_to_it() {
    on_driver(|test| {
        let stream = test.stream();
        let mut buffer =
            DeviceBuffer::from_slice(&stream, &[1_i32, 2, 3]).expect("memory suffices");
        buffer
            .copy_from_slice(&[4, 5, 6])
            .expect("the lengths are equal");
        let mut target = [0; 3];
        buffer
            .copy_to_slice(&mut target)
            .expect("the lengths are equal");
        assert_eq!(target, [4, 5, 6]);
    });
}

#[test]
fn buffer_copied_from_a_buffer_of_another_stream_holds_its_elements() {
    on_driver(|test| {
        let (first, second) = (test.stream(), test.stream());
        let source = DeviceBuffer::from_slice(&first, &[7_u64; 1000]).expect("memory suffices");
        let mut target = DeviceBuffer::zeroed(&second, 1000).expect("memory suffices");
        target
            .copy_from_device(&source)
            .expect("the lengths are equal");
        drop(source);
        assert_eq!(target.stream(), &second);
        assert_eq!(target.to_vec().expect("the buffer can be read"), [7; 1000]);
    });
}

#[test]
fn zero_length_is_an_error_before_the_driver_is_called() {
    on_driver(|test| {
        let stream = test.stream();
        test.assert_calls(Function::cuMemAllocAsync, 0, || {
            for error in [
                DeviceBuffer::<u32>::uninit(&stream, 0).expect_err("no length"),
                DeviceBuffer::<u32>::zeroed(&stream, 0).expect_err("no length"),
                DeviceBuffer::<u32>::from_slice(&stream, &[]).expect_err("no length"),
            ] {
                assert!(matches!(error, Error::Argument(_)), "{error}");
                assert!(error.to_string().ends_with(": zero length"), "{error}");
                assert!(error.to_string().starts_with("DeviceBuffer::"), "{error}");
            }
        });
    });
}

#[test]
fn elements_without_bytes_are_an_error() {
    on_driver(|test| {
        let error = DeviceBuffer::<[u32; 0]>::zeroed(&test.stream(), 4)
            .expect_err("there is nothing to allocate");
        assert!(matches!(error, Error::Argument(_)), "{error}");
    });
}

#[test]
fn size_beyond_the_address_space_is_an_error_before_the_driver_is_called() {
    on_driver(|test| {
        let stream = test.stream();
        test.assert_calls(Function::cuMemAllocAsync, 0, || {
            for len in [usize::MAX, usize::MAX / 8 + 1, isize::MAX as usize / 8 + 1] {
                let error =
                    DeviceBuffer::<u64>::uninit(&stream, len).expect_err("no memory is that large");
                assert!(matches!(error, Error::Argument(_)), "{error}");
                assert!(
                    error
                        .to_string()
                        .contains(&format!("{len} elements of 8 bytes")),
                    "{error}"
                );
            }
        });
    });
}

#[test]
fn different_lengths_are_an_error_that_names_both() {
    on_driver(|test| {
        let stream = test.stream();
        let mut buffer = DeviceBuffer::from_slice(&stream, &[1_u8, 2, 3]).expect("memory suffices");
        let longer = DeviceBuffer::from_slice(&stream, &[9_u8; 4]).expect("memory suffices");
        for error in [
            buffer.copy_from_slice(&[1, 2]).expect_err("too short"),
            buffer.copy_from_slice(&[]).expect_err("empty"),
            buffer.copy_to_slice(&mut [0; 4]).expect_err("too long"),
            buffer.copy_from_device(&longer).expect_err("too long"),
        ] {
            assert!(matches!(error, Error::Argument(_)), "{error}");
            assert!(
                error
                    .to_string()
                    .contains("the buffer has 3 elements, the other operand has"),
                "{error}"
            );
        }
        assert_eq!(buffer.to_vec().expect("the buffer can be read"), [1, 2, 3]);
    });
}

#[test]
fn out_of_memory_reports_the_requested_and_the_available_bytes() {
    on_simulator(Config::new().with_memory_budget(1 << 24), |test, _| {
        let stream = test.stream();
        let held = DeviceBuffer::<u8>::zeroed(&stream, 1 << 20).expect("memory suffices");
        let error =
            DeviceBuffer::<u8>::uninit(&stream, 1 << 24).expect_err("the budget is too small");
        assert!(error.is_out_of_memory(), "{error}");
        assert!(!error.is_sticky());
        assert_eq!(error.function(), Some(Function::cuMemAllocAsync));
        let free = stream
            .context()
            .memory_info()
            .expect("a context reports memory")
            .free;
        let text = error.to_string();
        assert!(text.contains("16777216 bytes"), "{text}");
        assert!(
            text.contains(&format!("{free} of 16777216 bytes of the device free")),
            "{text}"
        );
        drop(held);
        DeviceBuffer::<u8>::uninit(&stream, 1 << 20)
            .expect("an out-of-memory error does not invalidate the context");
    });
}

#[test]
fn out_of_memory_on_a_real_device_is_an_error_and_no_more() {
    on_driver(|test| {
        let stream = test.stream();
        let total = test.device().total_memory().expect("a device has memory");
        let error = DeviceBuffer::<u8>::uninit(&stream, total * 2)
            .expect_err("no device holds twice its memory");
        assert!(error.is_out_of_memory(), "{error}");
        let buffer = DeviceBuffer::from_slice(&stream, &[1_u8])
            .expect("an out-of-memory error does not invalidate the context");
        assert_eq!(buffer.to_vec().expect("the buffer can be read"), [1]);
    });
}

#[test]
fn buffer_is_freed_once_by_drop_and_by_close() {
    on_driver(|test| {
        let stream = test.stream();
        let (dropped, closed) = (
            DeviceBuffer::<u8>::zeroed(&stream, 8).expect("memory suffices"),
            DeviceBuffer::<u8>::zeroed(&stream, 8).expect("memory suffices"),
        );
        test.assert_calls(Function::cuMemFreeAsync, 1, || drop(dropped));
        test.assert_calls(Function::cuMemFreeAsync, 1, || {
            closed.close().expect("the driver frees the buffer");
        });
    });
}

#[test]
fn buffer_that_the_driver_does_not_free_is_given_back_by_close() {
    on_simulator(Config::new(), |test, simulator| {
        let buffer = DeviceBuffer::from_slice(&test.stream(), &[5_u8; 3]).expect("memory suffices");
        simulator.inject(
            Fault::on(Function::cuMemFreeAsync).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM),
        );
        let (buffer, error) = buffer
            .close()
            .expect_err("the injected fault occurs")
            .into_parts();
        assert_eq!(error.function(), Some(Function::cuMemFreeAsync));
        assert_eq!(buffer.to_vec().expect("the buffer is still there"), [5; 3]);
    });
}

#[test]
fn buffer_is_freed_when_filling_it_fails() {
    on_simulator(Config::new(), |test, simulator| {
        let stream = test.stream();
        for function in [Function::cuMemcpyHtoDAsync_v2, Function::cuMemsetD8Async] {
            simulator.inject(
                Fault::on(function)
                    .always()
                    .returns(CUresult::CUDA_ERROR_INVALID_VALUE),
            );
        }
        let error = DeviceBuffer::from_slice(&stream, &[1_u32; 4]).expect_err("the copy fails");
        assert_eq!(error.function(), Some(Function::cuMemcpyHtoDAsync_v2));
        assert!(error.to_string().contains("16 bytes"), "{error}");
        let error = DeviceBuffer::<u32>::zeroed(&stream, 4).expect_err("the memset fails");
        assert_eq!(error.function(), Some(Function::cuMemsetD8Async));
        simulator.clear_faults();
        stream.synchronize().expect("the stream works");
        assert_eq!(simulator.live_handles().device_allocations, 0);
    });
}

#[test]
fn copy_to_the_host_waits_for_the_work_before_it() {
    on_driver(|test| {
        let stream = test.stream();
        let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, 8).expect("memory suffices");
        let gate = Gate::on(&stream);
        stream_work::fill(&stream, &mut buffer, 3).expect("the buffer can be filled");
        let values = std::thread::scope(|scope| {
            let reader = scope.spawn(|| buffer.to_vec().expect("the buffer can be read"));
            std::thread::sleep(std::time::Duration::from_millis(2));
            assert!(!reader.is_finished(), "the copy did not wait");
            gate.open();
            reader.join().expect("the reader does not panic")
        });
        assert_eq!(values, [3; 8]);
    });
}

#[test]
fn freeing_does_not_block_the_host() {
    on_driver(|test| {
        let stream = test.stream();
        let done = Event::new(stream.context(), EventFlags::DISABLE_TIMING)
            .expect("an event can be created");
        let buffer = DeviceBuffer::<u32>::zeroed(&stream, 8).expect("memory suffices");
        let gate = Gate::on(&stream);
        drop(buffer);
        done.record(&stream).expect("an event can be recorded");
        assert!(!done.is_finished().expect("an event can be queried"));
        gate.open();
        stream.synchronize().expect("the stream works");
    });
}

#[test]
fn buffer_outlives_stream_and_context_handles() {
    on_driver(|test| {
        let buffer = DeviceBuffer::from_slice(&test.stream(), &[1_u8, 2]).expect("memory suffices");
        assert_eq!(
            buffer.to_vec().expect("the buffer keeps its stream"),
            [1, 2]
        );
        let text = format!("{buffer:?}");
        assert!(
            text.contains("2 × u8") && text.contains(&format!("{:?}", buffer.as_pointer())),
            "{text}"
        );
    });
}

#[test]
fn pointer_steps_by_elements() {
    on_driver(|test| {
        let buffer = DeviceBuffer::<u32>::zeroed(&test.stream(), 8).expect("memory suffices");
        let pointer = buffer.as_pointer();
        assert_eq!(pointer.wrapping_add(3).as_raw(), pointer.as_raw() + 12);
        assert_eq!(
            pointer.cast::<u8>().wrapping_add(12),
            pointer.wrapping_add(3).cast()
        );
        assert_eq!(
            pointer.wrapping_add(usize::MAX).as_raw(),
            pointer.as_raw() - 4
        );
    });
}

#[test]
fn buffers_are_made_and_dropped_on_any_thread() {
    on_driver(|test| {
        let stream = test.stream();
        let buffers: Vec<_> = std::thread::scope(|scope| {
            let make = |value: u32| {
                DeviceBuffer::from_slice(&stream, &[value; 16]).expect("memory suffices")
            };
            let threads: Vec<_> = (0..4)
                .map(|value| scope.spawn(move || make(value)))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().expect("creating a buffer does not panic"))
                .collect()
        });
        for (value, buffer) in buffers.iter().enumerate() {
            assert_eq!(
                buffer.to_vec().expect("the buffer can be read"),
                [value as u32; 16]
            );
        }
    });
}

#[test]
fn buffer_is_filled_zeroed_and_split() {
    on_driver(|test| {
        let (stream, other) = (test.stream(), test.stream());
        let mut buffer = DeviceBuffer::from_slice(&stream, &[1_u32; 6]).expect("memory suffices");
        let (mut left, mut right) = buffer.split_at_mut(2).expect("2 is within the length");
        left.fill(0x0102_0304).expect("it can be filled");
        right.fill_on(&other, 9).expect("it can be filled");
        assert_eq!(
            buffer.to_vec().expect("it can be read"),
            [0x0102_0304, 0x0102_0304, 9, 9, 9, 9]
        );
        buffer.fill(5).expect("it can be filled");
        assert_eq!(buffer.to_vec().expect("it can be read"), [5; 6]);
        buffer.fill_on(&other, 6).expect("it can be filled");
        assert_eq!(buffer.to_vec().expect("it can be read"), [6; 6]);
        buffer.zero().expect("it can be zeroed");
        assert_eq!(buffer.to_vec().expect("it can be read"), [0; 6]);
        buffer.fill(5).expect("it can be filled");
        buffer.zero_on(&other).expect("it can be zeroed");
        assert_eq!(buffer.to_vec().expect("it can be read"), [0; 6]);
        let error = buffer
            .split_at_mut(7)
            .map(drop)
            .expect_err("7 is too large");
        assert_eq!(
            error.to_string(),
            "DeviceBuffer::split_at_mut: split index out of bounds (7 of 6 elements)"
        );
    });
}

pub(crate) mod operations {
    use curium_memory::{DeviceBuffer, StreamOrdered};
    use curium_tests::stream_work;

    use crate::operations::{LEN, Operation, boxed, made};

    pub(crate) const OPERATIONS: &[Operation] = &[
        ("DeviceBuffer::uninit", |fixture| {
            made(DeviceBuffer::<u32>::uninit(&fixture.stream, LEN)?)
        }),
        ("DeviceBuffer::zeroed", |fixture| {
            made(DeviceBuffer::<u32>::zeroed(&fixture.stream, LEN)?)
        }),
        ("DeviceBuffer::from_slice", |fixture| {
            made(DeviceBuffer::from_slice(&fixture.stream, &[3_u32; LEN])?)
        }),
        ("DeviceBuffer::copy_from_slice", |fixture| {
            made(fixture.buffer.copy_from_slice(&[4; LEN])?)
        }),
        ("DeviceBuffer::copy_to_slice", |fixture| {
            made(fixture.buffer.copy_to_slice(&mut [0; LEN])?)
        }),
        ("DeviceBuffer::to_vec", |fixture| {
            made(fixture.buffer.to_vec()?)
        }),
        ("DeviceBuffer::copy_from_device", |fixture| {
            made(fixture.target.copy_from_device(&fixture.buffer)?)
        }),
        ("DeviceBuffer::bind and DeviceBuffer::launched", |fixture| {
            made(stream_work::copy(
                &fixture.stream,
                &mut fixture.target,
                &fixture.buffer,
            )?)
        }),
        ("DeviceBuffer::close", |fixture| {
            let buffer = DeviceBuffer::<u32>::zeroed(&fixture.stream, LEN)?;
            buffer.close().map_err(|returned| returned.error).map(boxed)
        }),
        ("DeviceBuffer::filled", |fixture| {
            made(DeviceBuffer::filled(&fixture.stream, LEN, 3_u32)?)
        }),
        ("DeviceBuffer::uninit_in", |fixture| {
            made(DeviceBuffer::<u32>::uninit_in(
                &fixture.stream,
                LEN,
                StreamOrdered,
            )?)
        }),
        ("DeviceBuffer::zeroed_in", |fixture| {
            made(DeviceBuffer::<u32>::zeroed_in(
                &fixture.stream,
                LEN,
                StreamOrdered,
            )?)
        }),
        ("DeviceBuffer::filled_in", |fixture| {
            made(DeviceBuffer::filled_in(
                &fixture.stream,
                LEN,
                0x0001_0002_0003_u64,
                StreamOrdered,
            )?)
        }),
        ("DeviceBuffer::from_slice_in", |fixture| {
            made(DeviceBuffer::from_slice_in(
                &fixture.stream,
                &[1_u8; LEN],
                StreamOrdered,
            )?)
        }),
        ("DeviceBuffer::maybe_uninit", |fixture| {
            made(DeviceBuffer::<bool>::maybe_uninit(&fixture.stream, LEN)?)
        }),
        ("DeviceBuffer::try_clone", |fixture| {
            made(fixture.buffer.try_clone()?)
        }),
        ("DeviceBuffer::maybe_uninit_in", |fixture| {
            made(DeviceBuffer::<bool>::maybe_uninit_in(
                &fixture.stream,
                LEN,
                StreamOrdered,
            )?)
        }),
        (
            "DeviceBuffer::into_raw and DeviceBuffer::from_raw",
            |fixture| {
                let buffer = DeviceBuffer::<u32>::zeroed(&fixture.stream, LEN)?;
                let (pointer, resource) = buffer.into_raw()?;
                // SAFETY: the memory was allocated from this resource with this length, and has no other owner.
                made(unsafe { DeviceBuffer::from_raw(&fixture.stream, pointer, LEN, resource) }?)
            },
        ),
        ("DeviceBuffer::fill", |fixture| {
            made(fixture.buffer.fill(7)?)
        }),
        ("DeviceBuffer::fill_on", |fixture| {
            made(fixture.buffer.fill_on(&fixture.other, 7)?)
        }),
        ("DeviceBuffer::zero", |fixture| made(fixture.buffer.zero()?)),
        ("DeviceBuffer::zero_on", |fixture| {
            made(fixture.buffer.zero_on(&fixture.other)?)
        }),
        ("DeviceBuffer::copy_from_slice_on", |fixture| {
            made(
                fixture
                    .buffer
                    .copy_from_slice_on(&fixture.other, &[4; LEN])?,
            )
        }),
        ("DeviceBuffer::copy_to_slice_on", |fixture| {
            made(
                fixture
                    .buffer
                    .copy_to_slice_on(&fixture.other, &mut [0; LEN])?,
            )
        }),
        ("DeviceBuffer::to_vec_on", |fixture| {
            made(fixture.buffer.to_vec_on(&fixture.other)?)
        }),
        ("DeviceBuffer::copy_from_device_on", |fixture| {
            made(
                fixture
                    .target
                    .copy_from_device_on(&fixture.stream, &fixture.buffer)?,
            )
        }),
    ];
}
