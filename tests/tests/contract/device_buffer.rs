//! [`DeviceBuffer`]: allocation, copies and deallocation.

use curium_driver::{Error, Event, EventFlags, Function};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{
    Gate, TestDriver, TestResult, driver_test, resume_panic, simulator_test, stream_work,
};

#[driver_test]
fn buffer_from_slice_holds_the_slice(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    for len in [1_u32, 2, 255, 4096, if cfg!(miri) { 5000 } else { 100_003 }] {
        let source: Vec<u32> = (0..len)
            .map(|index| index.wrapping_mul(0x9e37_79b9))
            .collect();
        let buffer = DeviceBuffer::from_slice(&stream, &source)?;
        assert_eq!(
            (buffer.len(), buffer.byte_len()),
            (source.len(), source.len() * 4)
        );
        assert!(!buffer.is_empty());
        assert_eq!(buffer.to_vec()?, source);
    }
    Ok(())
}

#[driver_test]
fn buffer_holds_any_element_size(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let bytes = DeviceBuffer::from_slice(&stream, &[1_u8, 2, 3])?;
    assert_eq!(bytes.to_vec()?, [1, 2, 3]);
    let doubles = DeviceBuffer::from_slice(&stream, &[0.5_f64, -0.0, f64::MIN_POSITIVE])?;
    assert_eq!(doubles.to_vec()?, [0.5, -0.0, f64::MIN_POSITIVE]);
    let triples = DeviceBuffer::from_slice(&stream, &[[1_u16, 2, 3], [4, 5, 6]])?;
    assert_eq!(triples.to_vec()?, [[1, 2, 3], [4, 5, 6]]);
    assert_eq!(triples.byte_len(), 12);
    Ok(())
}

#[driver_test]
fn zeroed_buffer_is_zero_where_other_bytes_were(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    drop(DeviceBuffer::from_slice(&stream, &[0xff_u8; 1000])?);
    let buffer = DeviceBuffer::<u8>::zeroed(&stream, 1000)?;
    assert_eq!(buffer.to_vec()?, [0; 1000]);
    Ok(())
}

#[simulator_test]
fn fresh_memory_is_not_zero(test: &TestDriver, _: &Simulator) -> TestResult {
    let buffer = DeviceBuffer::<u64>::uninit(&test.stream(), 64)?;
    let bytes = buffer.to_vec()?;
    assert!(
        bytes.iter().any(|word| *word != 0),
        "uninitialized memory does not read as zeros"
    );
    Ok(())
}

#[driver_test]
fn buffer_is_overwritten_by_copies_to_it(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut buffer = DeviceBuffer::from_slice(&stream, &[1_i32, 2, 3])?;
    buffer.copy_from_slice(&[4, 5, 6])?;
    let mut target = [0; 3];
    buffer.copy_to_slice(&mut target)?;
    assert_eq!(target, [4, 5, 6]);
    Ok(())
}

/// A buffer copied from a buffer of another stream holds its elements.
#[driver_test]
fn copy_across_streams_holds_the_elements(test: &TestDriver) -> TestResult {
    let first = test.stream();
    let second = test.stream();
    let source = DeviceBuffer::from_slice(&first, &[7_u64; 1000])?;
    let mut target = DeviceBuffer::zeroed(&second, 1000)?;
    target.copy_from_device(&source)?;
    drop(source);
    assert_eq!(target.stream(), &second);
    assert_eq!(target.to_vec()?, [7; 1000]);
    Ok(())
}

/// A zero length is an error before any driver call.
#[driver_test]
fn zero_length_makes_no_driver_call(test: &TestDriver) {
    let stream = test.stream();
    test.assert_calls(Function::cuMemAllocAsync, 0, || {
        for error in [
            DeviceBuffer::<u32>::uninit(&stream, 0).expect_err("no length"),
            DeviceBuffer::<u32>::zeroed(&stream, 0).expect_err("no length"),
            DeviceBuffer::<u32>::from_slice(&stream, &[]).expect_err("no length"),
        ] {
            assert!(matches!(error, Error::Argument(_)), "{error}");
            assert!(error.to_string().contains(": zero length; "), "{error}");
            assert!(error.to_string().starts_with("DeviceBuffer::"), "{error}");
        }
    });
}

#[driver_test]
fn elements_without_bytes_are_an_error(test: &TestDriver) {
    let error = DeviceBuffer::<[u32; 0]>::zeroed(&test.stream(), 4)
        .expect_err("there is nothing to allocate");
    assert!(matches!(error, Error::Argument(_)), "{error}");
}

/// A size beyond the address space is an error before any driver call.
#[driver_test]
fn huge_size_makes_no_driver_call(test: &TestDriver) {
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
}

#[driver_test]
fn different_lengths_are_an_error_that_names_both(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut buffer = DeviceBuffer::from_slice(&stream, &[1_u8, 2, 3])?;
    let longer = DeviceBuffer::from_slice(&stream, &[9_u8; 4])?;
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
    assert_eq!(buffer.to_vec()?, [1, 2, 3]);
    Ok(())
}

/// An out-of-memory error reports the requested and the available bytes.
#[simulator_test(Config::new().with_memory_budget(1 << 24))]
fn out_of_memory_reports_both_sizes(test: &TestDriver, _: &Simulator) -> TestResult {
    let stream = test.stream();
    let held = DeviceBuffer::<u8>::zeroed(&stream, 1 << 20)?;
    let error = DeviceBuffer::<u8>::uninit(&stream, 1 << 24).expect_err("the budget is too small");
    assert!(error.is_out_of_memory(), "{error}");
    assert!(!error.is_sticky());
    assert_eq!(error.function(), Some(Function::cuMemAllocAsync));
    let free = stream.context().memory_info()?.free;
    let text = error.to_string();
    assert!(text.contains("16777216 bytes"), "{text}");
    assert!(
        text.contains(&format!("{free} of 16777216 bytes of the device free")),
        "{text}"
    );
    drop(held);
    DeviceBuffer::<u8>::uninit(&stream, 1 << 20)?;
    Ok(())
}

/// An out-of-memory error on a real device is an error and no more.
#[driver_test]
fn out_of_memory_is_not_sticky(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let total = test.device().total_memory()?;
    let error = DeviceBuffer::<u8>::uninit(&stream, total * 2)
        .expect_err("no device holds twice its memory");
    assert!(error.is_out_of_memory(), "{error}");
    let buffer = DeviceBuffer::from_slice(&stream, &[1_u8])?;
    assert_eq!(buffer.to_vec()?, [1]);
    Ok(())
}

#[driver_test]
fn buffer_is_freed_once_by_drop_and_by_close(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let dropped = DeviceBuffer::<u8>::zeroed(&stream, 8)?;
    let closed = DeviceBuffer::<u8>::zeroed(&stream, 8)?;
    test.assert_calls(Function::cuMemFreeAsync, 1, || drop(dropped));
    test.assert_calls(Function::cuMemFreeAsync, 1, || -> TestResult<_> {
        closed.close()?;
        Ok(())
    })?;
    Ok(())
}

/// A buffer that the driver does not free is returned by close.
#[simulator_test]
fn close_returns_an_unfreed_buffer(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let buffer = DeviceBuffer::from_slice(&test.stream(), &[5_u8; 3])?;
    simulator
        .inject(Fault::on(Function::cuMemFreeAsync).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM));
    let (buffer, error) = buffer
        .close()
        .expect_err("the injected fault occurs")
        .into_parts();
    assert_eq!(error.function(), Some(Function::cuMemFreeAsync));
    assert_eq!(buffer.to_vec()?, [5; 3]);
    Ok(())
}

#[simulator_test]
fn buffer_is_freed_when_filling_it_fails(test: &TestDriver, simulator: &Simulator) -> TestResult {
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
    stream.synchronize()?;
    assert_eq!(simulator.live_handles().device_allocations, 0);
    Ok(())
}

#[driver_test]
fn copy_to_the_host_waits_for_the_work_before_it(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, 8)?;
    let gate = Gate::on(&stream);
    stream_work::fill(&stream, &mut buffer, 3)?;
    let values = std::thread::scope(|scope| {
        let reader = scope.spawn(|| buffer.to_vec().expect("read failed"));
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(!reader.is_finished(), "the copy did not wait");
        gate.open();
        resume_panic(reader.join())
    });
    assert_eq!(values, [3; 8]);
    Ok(())
}

#[driver_test]
fn freeing_does_not_block_the_host(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let done = Event::new(stream.context(), EventFlags::DISABLE_TIMING)?;
    let buffer = DeviceBuffer::<u32>::zeroed(&stream, 8)?;
    let gate = Gate::on(&stream);
    drop(buffer);
    done.record(&stream)?;
    assert!(!done.is_finished()?);
    gate.open();
    stream.synchronize()?;
    Ok(())
}

#[driver_test]
fn buffer_outlives_stream_and_context_handles(test: &TestDriver) -> TestResult {
    let buffer = DeviceBuffer::from_slice(&test.stream(), &[1_u8, 2])?;
    assert_eq!(buffer.to_vec()?, [1, 2]);
    let text = format!("{buffer:?}");
    assert!(
        text.contains("2 × u8") && text.contains(&format!("{:?}", buffer.as_pointer())),
        "{text}"
    );
    Ok(())
}

#[driver_test]
fn pointer_steps_by_elements(test: &TestDriver) -> TestResult {
    let buffer = DeviceBuffer::<u32>::zeroed(&test.stream(), 8)?;
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
    Ok(())
}

#[driver_test]
fn buffers_are_made_and_dropped_on_any_thread(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let buffers: Vec<_> = std::thread::scope(|scope| {
        let make = |value: u32| {
            DeviceBuffer::from_slice(&stream, &[value; 16]).expect("allocation failed")
        };
        let threads: Vec<_> = (0..4)
            .map(|value| scope.spawn(move || make(value)))
            .collect();
        threads
            .into_iter()
            .map(|thread| resume_panic(thread.join()))
            .collect()
    });
    for (value, buffer) in buffers.iter().enumerate() {
        assert_eq!(buffer.to_vec()?, [value as u32; 16]);
    }
    Ok(())
}

#[driver_test]
fn buffer_is_filled_zeroed_and_split(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let other = test.stream();
    let mut buffer = DeviceBuffer::from_slice(&stream, &[1_u32; 6])?;
    let (mut left, mut right) = buffer.split_at_mut(2)?;
    left.fill(0x0102_0304)?;
    right.on_mut(&other).fill(9)?;
    assert_eq!(buffer.to_vec()?, [0x0102_0304, 0x0102_0304, 9, 9, 9, 9]);
    buffer.fill(5)?;
    assert_eq!(buffer.to_vec()?, [5; 6]);
    buffer.on_mut(&other).fill(6)?;
    assert_eq!(buffer.to_vec()?, [6; 6]);
    buffer.zero()?;
    assert_eq!(buffer.to_vec()?, [0; 6]);
    buffer.fill(5)?;
    buffer.on_mut(&other).zero()?;
    assert_eq!(buffer.to_vec()?, [0; 6]);
    let error = buffer
        .split_at_mut(7)
        .map(drop)
        .expect_err("7 is too large");
    assert_eq!(
        error.to_string(),
        "DeviceBuffer::split_at_mut: split index out of bounds (7 of 6 elements)"
    );
    Ok(())
}

pub(crate) mod operations {
    use curium_memory::{DeviceBuffer, StreamOrdered};
    use curium_tests::stream_work;

    use crate::operations::{LEN, Operation, Operations, boxed, made};

    const OPERATIONS: &[Operation] = &[
        ("DeviceBuffer::uninit", |fixture| {
            made(DeviceBuffer::<u32>::uninit(&fixture.stream, LEN)?)
        }),
        ("DeviceBuffer::zeroed", |fixture| {
            made(DeviceBuffer::<u32>::zeroed(&fixture.stream, LEN)?)
        }),
        ("DeviceBuffer::from_slice", |fixture| {
            made(DeviceBuffer::from_slice(&fixture.stream, &[3_u32; LEN])?)
        }),
        ("DeviceBuffer::bind", |fixture| {
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
                // SAFETY: the memory was allocated from this resource with this length, and has no
                // other owner.
                made(unsafe { DeviceBuffer::from_raw(&fixture.stream, pointer, LEN, resource) }?)
            },
        ),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }
}
