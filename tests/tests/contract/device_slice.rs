//! Slices of buffers, and views: [`DeviceSlice`], [`DeviceView`] and [`DeviceViewMut`].

use curium_driver::AsRawStream as _;
use curium_driver::{Error, Function, LaunchConfig, Library};
use curium_memory::{
    DeviceBox, DeviceBuffer, DeviceSlice, DeviceVec, DeviceView, DeviceViewMut, MappedBuffer,
    StreamOrdered, SyncAlloc, UnifiedBuffer,
};
use curium_sim::{Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{
    Gate, TestDriver, TestResult, begin, driver_test, kernels, on_driver, simulator_test,
};

fn counting(test: &TestDriver, len: u32) -> TestResult<DeviceBuffer<u32>> {
    let values: Vec<u32> = (0..len).collect();
    Ok(DeviceBuffer::from_slice(&test.stream(), &values)?)
}

#[driver_test]
fn buffer_range_is_read_and_written_alone(test: &TestDriver) -> TestResult {
    let mut buffer = counting(test, 8)?;
    assert_eq!(buffer.slice(2..5)?.to_vec()?, [2, 3, 4]);
    assert_eq!(buffer.slice(6..)?.to_vec()?, [6, 7]);
    assert_eq!(buffer.slice(..=1)?.to_vec()?, [0, 1]);
    buffer
        .slice_mut(2..4)
        .and_then(|mut part| part.copy_from_slice(&[20, 30]))?;
    assert_eq!(buffer.to_vec()?, [0, 1, 20, 30, 4, 5, 6, 7]);
    Ok(())
}

#[driver_test]
fn range_beyond_a_buffer_is_an_error_with_the_lengths(test: &TestDriver) -> TestResult {
    let mut buffer = counting(test, 8)?;
    #[expect(
        clippy::reversed_empty_ranges,
        reason = "it is one of the refused ranges"
    )]
    let backwards = 3..2;
    for (error, text) in [
        (
            buffer.slice(4..9).map(drop),
            "range out of bounds (4..9 of 8 elements)",
        ),
        (
            buffer.slice(backwards).map(drop),
            "range out of bounds (3..2 of 8 elements)",
        ),
        (
            buffer.slice(9..).map(drop),
            "range out of bounds (9..8 of 8 elements)",
        ),
        (buffer.slice(..=usize::MAX).map(drop), " of 8 elements)"),
        (
            buffer.slice_mut(8..10).map(drop),
            "range out of bounds (8..10 of 8 elements)",
        ),
        (
            buffer.split_at(9).map(drop),
            "split index out of bounds (9 of 8 elements)",
        ),
        (buffer.chunks(0).map(drop), "zero chunk length"),
    ] {
        let error = error.expect_err("there is no such range");
        assert!(matches!(error, Error::Argument(_)), "{error}");
        assert!(error.to_string().contains(text), "{error}");
    }
    Ok(())
}

#[driver_test]
fn empty_view_is_copied_without_a_call(test: &TestDriver) -> TestResult {
    let mut buffer = counting(test, 4)?;
    let other = counting(test, 4)?;
    for function in [
        Function::cuMemcpyHtoDAsync_v2,
        Function::cuMemcpyDtoDAsync_v2,
        Function::cuMemsetD32Async,
    ] {
        test.assert_calls(function, 0, || -> TestResult<_> {
            let mut nothing = buffer.slice_mut(4..)?;
            assert!(nothing.is_empty());
            nothing.copy_from_slice(&[])?;
            nothing.copy_from_device(&other.slice(2..2)?)?;
            nothing.fill(7)?;
            assert_eq!(nothing.to_vec()?, [0_u32; 0]);
            Ok(())
        })?;
    }
    Ok(())
}

#[driver_test]
fn split_view_is_written_in_both_parts(test: &TestDriver) -> TestResult {
    let mut buffer = counting(test, 6)?;
    let (mut low, mut high) = buffer.split_at_mut(2)?;
    low.fill(1)?;
    high.fill(2)?;
    high.copy_from_device(&DeviceBuffer::from_slice(low.stream(), &[9; 4])?)?;
    assert_eq!(buffer.to_vec()?, [1, 1, 9, 9, 9, 9]);
    Ok(())
}

#[driver_test]
fn chunks_cover_the_view_and_the_last_may_be_shorter(test: &TestDriver) -> TestResult {
    let mut buffer = counting(test, 7)?;
    let parts = buffer.chunks(3)?;
    assert_eq!(parts.len(), 3);
    assert_eq!(parts.map(|part| part.len()).collect::<Vec<_>>(), [3, 3, 1]);
    for (index, mut part) in buffer.chunks_mut(3)?.enumerate() {
        part.fill(index as u32)?;
    }
    assert_eq!(buffer.to_vec()?, [0, 0, 0, 1, 1, 1, 2]);
    Ok(())
}

#[driver_test]
fn slice_is_copied_within_its_buffer(test: &TestDriver) -> TestResult {
    let mut buffer = counting(test, 6)?;
    let (low, mut high) = buffer.split_at_mut(3)?;
    high.copy_from_device(&low)?;
    assert_eq!(buffer.to_vec()?, [0, 1, 2, 0, 1, 2]);
    Ok(())
}

/// Parts written on two streams by two threads are both waited for.
#[driver_test]
fn slices_written_by_two_threads_are_waited_for(test: &TestDriver) -> TestResult {
    let first = test.stream();
    let second = test.stream();
    for round in 0..20_u32 {
        let mut buffer = counting(test, 64)?;
        let (mut low, mut high) = buffer.split_at_mut(32)?;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                low.on_mut(&first).fill(round).expect("fill failed");
            });
            scope.spawn(|| {
                high.on_mut(&second).fill(round + 1).expect("fill failed");
            });
        });
        let values = buffer.to_vec()?;
        assert_eq!(values, [vec![round; 32], vec![round + 1; 32]].concat());
    }
    Ok(())
}

/// Binds both parts before either access is recorded, as two threads may.
#[test]
fn access_keeps_other_slices() -> TestResult {
    use curium_driver::{Argument, call};
    on_driver(|test| -> TestResult {
        let first = test.stream();
        let second = test.stream();
        let mut buffer = counting(test, 64)?;
        let gate = Gate::on(&first);
        let (mut low, mut high) = buffer.split_at_mut(32)?;
        // SAFETY: both launches are recorded below, and the parts are not used in between.
        let low_address = unsafe { Argument::<&mut [u32]>::bind(&mut low, &mut begin(&first)) }?;
        // SAFETY: both launches are recorded below, and the parts are not used in between.
        let high_address = unsafe { Argument::<&mut [u32]>::bind(&mut high, &mut begin(&second)) }?;
        for (stream, address) in [(&first, low_address), (&second, high_address)] {
            // SAFETY: the part is live with this many words, and its stream has waited for its
            // earlier accesses.
            unsafe {
                call!(
                    stream.driver(),
                    cuMemsetD32Async(address, 7, 32, stream.as_raw())
                )
            }?;
        }
        // SAFETY: the part was bound to this stream above and has not been used since.
        unsafe { Argument::<&mut [u32]>::launched(&mut low, &mut begin(&first)) };
        // SAFETY: the part was bound to this stream above and has not been used since.
        unsafe { Argument::<&mut [u32]>::launched(&mut high, &mut begin(&second)) };
        let reader = test.stream();
        let mut copy = DeviceBuffer::<u32>::zeroed(&reader, 64)?;
        copy.on_mut(&reader).copy_from_device(&buffer)?;
        assert!(
            curium_tests::stream_work::is_held_up(&reader),
            "the reader waits for the first part"
        );
        gate.open();
        assert_eq!(copy.to_vec()?, [7; 64]);
        Ok(())
    })?;
    Ok(())
}

#[driver_test]
fn view_is_cast_to_another_element_type(test: &TestDriver) -> TestResult {
    let mut buffer = DeviceBuffer::from_slice(&test.stream(), &[0x0403_0201_u32, 0x0807_0605])?;
    let bytes: DeviceView<'_, u8> = buffer.cast()?;
    assert_eq!(bytes.to_vec()?, [1, 2, 3, 4, 5, 6, 7, 8]);
    let mut halves: DeviceViewMut<'_, u16> = buffer.cast_mut()?;
    halves.fill(0xabcd)?;
    assert_eq!(buffer.to_vec()?, [0xabcd_abcd; 2]);
    let wide: DeviceView<'_, u64> = buffer.cast()?;
    assert_eq!(wide.len(), 1);
    Ok(())
}

/// A view that does not fit another type is an error with the sizes.
#[driver_test]
fn failed_cast_reports_the_sizes(test: &TestDriver) -> TestResult {
    let mut buffer = DeviceBuffer::<u8>::zeroed(&test.stream(), 10)?;
    let error = buffer.cast::<u32>().expect_err("10 is not a multiple of 4");
    assert!(
        error
            .to_string()
            .contains("size mismatch (10 bytes are not a multiple of the 4 bytes of u32)"),
        "{error}"
    );
    let error = buffer
        .slice(1..9)
        .and_then(|part| part.cast::<u32>().map(drop))
        .expect_err("the address is odd");
    assert!(
        error.to_string().contains("u32 requires alignment 4"),
        "{error}"
    );
    let error = buffer
        .slice_mut(2..6)
        .and_then(|mut part| part.cast_mut::<u32>().map(drop))
        .expect_err("not aligned");
    assert!(
        error.to_string().contains("u32 requires alignment 4"),
        "{error}"
    );
    Ok(())
}

/// A kernel reads one part and writes another of one buffer.
#[driver_test]
#[cfg_attr(miri, ignore = "Miri is too slow for kernels")]
fn kernel_uses_two_slices_from_one_buffer(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let library = Library::from_ptx(test.driver(), kernels::SAXPY)?;
    let saxpy = library.kernel::<(f32, &[f32], &mut [f32], u32)>("saxpy")?;
    let mut buffer = DeviceBuffer::from_slice(&stream, &[1.0_f32, 2.0, 10.0, 20.0])?;
    let (x, mut y) = buffer.split_at_mut(2)?;
    let config = LaunchConfig::for_elements(2);
    // SAFETY: the kernel reads two elements of `x` and writes two of `y`.
    unsafe { saxpy.launch(&stream, config, (3.0, &x, &mut y, 2)) }?;
    // SAFETY: as above; the two views do not overlap.
    unsafe { saxpy.launch(&test.stream(), config, (1.0, x.view(), y, 2)) }?;
    assert_eq!(buffer.to_vec()?, [1.0, 2.0, 14.0, 28.0]);
    Ok(())
}

#[test]
fn fill_sets_every_element_size() -> TestResult {
    fn check<T: bytemuck_traits::Element>(test: &TestDriver, before: T, value: T) -> TestResult {
        let mut buffer = DeviceBuffer::from_slice(&test.stream(), &[before; 9])?;
        buffer
            .slice_mut(1..8)
            .and_then(|mut part| part.fill(value))?;
        let mut expected = [value; 9];
        (expected[0], expected[8]) = (before, before);
        assert_eq!(buffer.to_vec()?, expected);
        Ok(())
    }
    on_driver(|test| -> TestResult {
        check(test, 1_u8, 2)?;
        check(test, 1_u16, 0x0203)?;
        check(test, 1_u32, 0x0203_0405)?;
        check(test, 1_u64, 0x0203_0405_0607_0809)?;
        check(test, 1_u64, 0x0203_0405_0203_0405)?;
        check(test, 1.0_f64, 0.1)?;
        check(test, [1_u8; 3], [2, 3, 4])?;
        check(test, [1_u16; 3], [2, 3, 4])?;
        check(test, [1_u32; 5], [2, 3, 4, 5, 6])?;
        Ok(())
    })?;
    Ok(())
}

mod bytemuck_traits {
    //! The bounds that the element types of a test must satisfy.

    use std::fmt::Debug;

    use curium_memory::{AnyBitPattern, NoUninit};

    pub(super) trait Element: NoUninit + AnyBitPattern + PartialEq + Debug {}
    impl<T: NoUninit + AnyBitPattern + PartialEq + Debug> Element for T {}
}

#[driver_test]
fn filled_buffer_holds_the_value(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let buffer = DeviceBuffer::filled(&stream, 100, 1.5_f32)?;
    assert_eq!(buffer.to_vec()?, [1.5; 100]);
    let buffer = DeviceBuffer::filled_in(&stream, 3, 7_u8, SyncAlloc)?;
    assert_eq!(buffer.to_vec()?, [7; 3]);
    Ok(())
}

/// A sync alloc makes four calls beyond those of C if its context is current.
#[simulator_test]
fn sync_alloc_makes_four_additional_calls(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let calls = || {
        Function::all()
            .map(|function| simulator.calls(function))
            .sum::<u64>()
    };
    let allocate = || {
        let before = calls();
        drop(
            DeviceBuffer::<u8, _>::uninit_in(&stream, 1 << 20, SyncAlloc)
                .expect("allocation failed"),
        );
        calls() - before
    };
    // These calls query the current context and whether the stream is idle, and protect the
    // captures of other code.
    assert_eq!(stream.context().scoped(allocate)?, 6);
    // In the other cases the context is pushed and popped.
    assert_eq!(allocate(), 8);
    Ok(())
}

#[driver_test]
fn buffer_in_a_resource_allocates_and_frees_there(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let buffer = test.assert_calls(Function::cuMemAlloc_v2, 1, || -> TestResult<_> {
        Ok(DeviceBuffer::from_slice_in(
            &stream,
            &[1_u32, 2],
            SyncAlloc,
        )?)
    })?;
    let shared = DeviceBuffer::<u32, &SyncAlloc>::zeroed_in(&stream, 2, &SyncAlloc)?;
    let chosen: std::sync::Arc<dyn curium_memory::Resource> = std::sync::Arc::new(StreamOrdered);
    let mut chosen = DeviceBuffer::<u32, _>::uninit_in(&stream, 2, chosen)?;
    chosen.copy_from_device(&buffer)?;
    assert_eq!(chosen.to_vec()?, [1, 2]);
    test.assert_calls(Function::cuMemFree_v2, 2, || -> TestResult<_> {
        drop(shared);
        buffer.close()?;
        Ok(())
    })?;
    Ok(())
}

#[driver_test]
fn buffer_from_its_raw_parts_is_freed_once(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let buffer = counting(test, 4)?;
    let owner = buffer.stream().clone();
    let len = buffer.len();
    let (pointer, resource) =
        test.assert_calls(Function::cuMemFreeAsync, 0, || -> TestResult<_> {
            Ok(buffer.into_raw()?)
        })?;
    // SAFETY: the memory was allocated from this resource with this length, and has no other owner.
    let buffer = unsafe { DeviceBuffer::from_raw(&owner, pointer, len, resource) }?;
    assert_eq!(buffer.to_vec()?, [0, 1, 2, 3]);
    test.assert_calls(Function::cuMemFreeAsync, 1, || drop(buffer));
    // SAFETY: the null pointer is not dereferenced.
    let error = unsafe { DeviceBuffer::<u32>::from_raw(&stream, pointer.cast(), 0, StreamOrdered) };
    assert!(
        error
            .map(drop)
            .expect_err("no length")
            .to_string()
            .contains("zero length")
    );
    Ok(())
}

/// A buffer of `MaybeUninit` elements is initialized once it is written.
#[driver_test]
fn written_buffer_is_initialized(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let elements = DeviceBuffer::<u32>::maybe_uninit_in(&stream, 4, StreamOrdered)?;
    // SAFETY: numbers are valid for every bit pattern.
    let mut buffer = unsafe { elements.assume_init() };
    buffer.fill(3)?;
    assert_eq!(buffer.to_vec()?, [3; 4]);
    Ok(())
}

/// Errors name the function that was called. Its type is that of the buffer, or `DeviceSlice` for a
/// part.
#[driver_test]
fn errors_name_the_called_function(test: &TestDriver) -> TestResult {
    fn check(owner: &str, slice: &mut DeviceSlice<u32>) -> TestResult {
        let other = slice.stream().clone();
        let errors = [
            ("copy_from_slice", slice.copy_from_slice(&[]).err()),
            ("copy_to_slice", slice.copy_to_slice(&mut []).err()),
            ("get", slice.get(4).err()),
            ("set", slice.on_mut(&other).set(4, 1).err()),
            ("slice", slice.on(&other).slice(5..).err()),
            ("split_at_mut", slice.split_at_mut(5).err()),
            ("chunks", slice.chunks(0).err()),
            ("cast", slice.cast::<[u32; 3]>().err()),
        ];
        for (function, error) in errors {
            let error = error
                .ok_or("an operand that is too large was accepted")?
                .to_string();
            let start = format!("{owner}::{function}: ");
            assert!(error.starts_with(&start), "{start}: {error}");
        }
        let error = slice.slice_mut(..2)?.set(2, 1).err();
        let error = error
            .ok_or("an operand of another length was accepted")?
            .to_string();
        assert!(error.starts_with("DeviceSlice::set: "), "{error}");
        Ok(())
    }
    let stream = test.stream();
    check("DeviceBuffer", &mut DeviceBuffer::zeroed(&stream, 4)?)?;
    check("MappedBuffer", &mut MappedBuffer::zeroed(&stream, 4)?)?;
    check("UnifiedBuffer", &mut UnifiedBuffer::zeroed(&stream, 4)?)?;
    check("DeviceVec", &mut DeviceVec::from_slice(&stream, &[1; 4])?)?;
    let value = DeviceBox::new(&stream, 1_u32)?;
    let error = value.copy_to_slice(&mut []).expect_err("it has one");
    assert!(
        error.to_string().starts_with("DeviceBox::copy_to_slice: "),
        "{error}"
    );
    Ok(())
}

/// Single elements are copied from and to the host.
#[driver_test]
fn single_elements_are_read_and_written(test: &TestDriver) -> TestResult {
    let other = test.stream();
    let mut buffer = counting(test, 4)?;
    buffer.set(1, 10)?;
    buffer.slice_mut(2..)?.on_mut(&other).set(1, 30)?;
    assert_eq!(buffer.get(1)?, 10);
    assert_eq!(buffer.on(&other).get(3)?, 30);
    assert_eq!(buffer.to_vec()?, [0, 10, 2, 30]);
    Ok(())
}

#[driver_test]
fn box_holds_its_value(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut value = DeviceBox::new(&stream, 1.5_f64)?;
    assert_eq!(value.get()?, 1.5);
    value.set(2.5)?;
    assert_eq!(value.to_vec()?, [2.5]);
    assert_eq!(
        DeviceBox::<[u32; 4]>::zeroed(&stream).and_then(|value| value.get())?,
        [0; 4]
    );
    value.close()?;
    Ok(())
}

/// Memory that other code has freed is named by the error.
#[simulator_test]
fn error_names_externally_freed_memory(test: &TestDriver, _: &Simulator) -> TestResult {
    let buffer = DeviceBuffer::from_slice_in(&test.stream(), &[1_u32; 8], SyncAlloc)?;
    let address = buffer.as_pointer().as_raw();
    // SAFETY: the violated precondition is the subject of the test.
    unsafe { curium_driver::call!(test.driver(), cuMemFree_v2(address)) }?;
    for error in [
        buffer.to_vec().map(drop).expect_err("the memory is freed"),
        buffer.close().expect_err("the memory is freed").error,
    ] {
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
        let text = error.to_string();
        assert!(
            text.contains(&format!("no allocation at {address:#x}")),
            "{text}"
        );
        assert!(
            text.contains(&format!("32 bytes at {address:#x}")),
            "{text}"
        );
    }
    Ok(())
}

/// A failed wait is retried before a slice is returned.
#[simulator_test]
fn failed_wait_is_retried_before_return(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let buffer = counting(test, 1024)?;
    let mut target = vec![0; 1024];
    simulator.inject(
        Fault::on(Function::cuStreamSynchronize).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM),
    );
    buffer
        .copy_to_slice(&mut target)
        .expect_err("the wait fails once");
    assert_eq!(
        target,
        (0..1024).collect::<Vec<_>>(),
        "the copy has completed"
    );
    Ok(())
}

pub(crate) mod operations {
    use curium_memory::copy::CopyOptions;
    use curium_memory::{DeviceBox, StreamOrdered};

    use crate::operations::{Operation, Operations, boxed, made, pass};

    const OPERATIONS: &[Operation] = &[
        ("DeviceBox::new", |fixture| {
            made(DeviceBox::new(&fixture.stream, 1_u32)?)
        }),
        ("DeviceBox::new_in", |fixture| {
            made(DeviceBox::new_in(&fixture.stream, 1_u32, StreamOrdered)?)
        }),
        ("DeviceBox::zeroed", |fixture| {
            made(DeviceBox::<u32>::zeroed(&fixture.stream)?)
        }),
        ("DeviceBox::get", |fixture| made(fixture.value.get()?)),
        ("DeviceBox::set", |fixture| made(fixture.value.set(2)?)),
        ("DeviceBox::bind", |fixture| {
            pass::<&[u32]>(&fixture.other, &fixture.value)
        }),
        ("DeviceBox::close", |fixture| {
            DeviceBox::<u32>::zeroed(&fixture.stream)?
                .close()
                .map_err(|returned| returned.error)
                .map(boxed)
        }),
        ("DeviceSlice::copy_to_slice", |fixture| {
            let part = fixture.buffer.slice(1..3)?;
            made(part.on(&fixture.other).copy_to_slice(&mut [0; 2])?)
        }),
        ("DeviceSlice::to_vec", |fixture| {
            made(fixture.buffer.slice(1..3)?.on(&fixture.other).to_vec()?)
        }),
        ("DeviceSlice::bind and DeviceSlice::launched", |fixture| {
            pass::<&[u32]>(&fixture.other, fixture.buffer.as_slice())
        }),
        (
            "DeviceSlice::bind and DeviceSlice::launched, of a view",
            |fixture| pass::<&[u32]>(&fixture.other, fixture.buffer.view()),
        ),
        (
            "DeviceSlice::bind and DeviceSlice::launched, of a mutable view",
            |fixture| pass::<&mut [u32]>(&fixture.other, fixture.buffer.view_mut()),
        ),
        ("DeviceSlice::copy_from_slice", |fixture| {
            let mut part = fixture.buffer.slice_mut(1..3)?;
            made(part.on_mut(&fixture.other).copy_from_slice(&[7, 8])?)
        }),
        ("DeviceSlice::copy_from_device", |fixture| {
            made(fixture.target.copy_from_device(&fixture.unified)?)
        }),
        ("DeviceSlice::copy_from_device_with", |fixture| {
            let options = CopyOptions::new().with_prefer_overlap(true);
            made(
                fixture
                    .target
                    .on_mut(&fixture.stream)
                    .copy_from_device_with(&fixture.buffer, options)?,
            )
        }),
        ("DeviceSlice::fill", |fixture| made(fixture.target.fill(3)?)),
        ("DeviceSlice::get", |fixture| {
            made(fixture.buffer.on(&fixture.other).get(1)?)
        }),
        ("DeviceSlice::set", |fixture| {
            made(fixture.target.on_mut(&fixture.other).set(1, 7)?)
        }),
        ("DeviceSlice::zero", |fixture| made(fixture.target.zero()?)),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }
}
