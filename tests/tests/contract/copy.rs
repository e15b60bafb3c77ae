//! Copies with owned or borrowed host memory, batches, pitched and layered copies, and peer copies.

use std::panic::{AssertUnwindSafe, catch_unwind};

use curium_driver::AsRawStream as _;
use curium_driver::{Error, Function, Stream, call};
use curium_memory::copy::{self, CopyBatch, CopyOptions};
use curium_memory::{
    DeviceBuffer, DeviceSlice, Extent, HostPitchedSlice, HostPitchedSliceMut, MemoryLocation,
    PinnedBuffer, PinnedFlags, Pitch, PitchedBuffer, SyncAlloc,
};
use curium_sim::{Config, Fault, Simulator};
use curium_sys::{CUresult, CUstreamCaptureMode, CudaVersion};
use curium_tests::{
    Gate, TestDriver, TestResult, begin, driver_test, on_driver, on_simulator, resume_panic,
    simulator_test, skip,
};

const LEN: usize = 1000;

fn pinned(test: &TestDriver, value: u32) -> TestResult<PinnedBuffer<u32>> {
    Ok(PinnedBuffer::from_slice(
        &test.context(),
        &[value; LEN],
        PinnedFlags::empty(),
    )?)
}

fn buffer(stream: &Stream, value: u32) -> DeviceBuffer<u32> {
    DeviceBuffer::filled(stream, LEN, value).expect("it fits")
}

fn values(buffer: &DeviceBuffer<u32>) -> Vec<u32> {
    buffer.to_vec().expect("read failed")
}

/// A pinned buffer is returned by an upload and a download.
#[driver_test]
fn pinned_copies_return_the_buffer(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let other = test.stream();
    let mut target = buffer(&stream, 0);
    let pending =
        copy::upload(&stream, pinned(test, 5)?, &mut target).map_err(|returned| returned.error);
    let source = pending?.wait()?;
    assert_eq!(&*source, &[5; LEN]);
    let pending =
        copy::download(&other, &target, pinned(test, 0)?).map_err(|returned| returned.error);
    let result = pending?.wait()?;
    assert_eq!(&*result, &[5; LEN]);
    Ok(())
}

/// A pending copy does not block the host and its drop waits.
#[driver_test]
fn pending_copy_waits_on_drop_only(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut target = buffer(&stream, 0);
    let gate = Gate::on(&stream);
    let pending =
        copy::upload(&stream, pinned(test, 5)?, &mut target).map_err(|returned| returned.error)?;
    assert!(!pending.is_finished()?);
    let dropped = std::thread::spawn(move || drop(pending));
    std::thread::sleep(std::time::Duration::from_millis(5));
    assert!(!dropped.is_finished(), "the drop did not wait");
    gate.open();
    resume_panic(dropped.join());
    assert_eq!(values(&target), [5; LEN]);
    Ok(())
}

#[driver_test]
fn pending_copy_can_be_awaited(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let source = buffer(&stream, 8);
    let gate = Gate::on(&stream);
    let pending =
        copy::download(&stream, &source, pinned(test, 0)?).map_err(|returned| returned.error)?;
    let opener = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(5));
        gate.open();
    });
    let result = pollster::block_on(pending)?;
    resume_panic(opener.join());
    assert_eq!(&*result, &[8; LEN]);
    Ok(())
}

/// A copy that does not begin gives the pinned buffer back.
#[simulator_test]
fn failed_copy_returns_the_pinned_buffer(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let mut target = DeviceBuffer::<u32>::zeroed(&stream, 3)?;
    let (source, error) = copy::upload(&stream, pinned(test, 5)?, &mut target)
        .map(drop)
        .expect_err("other lengths")
        .into_parts();
    assert!(
        error
            .to_string()
            .contains("1000 elements, the other operand has 3"),
        "{error}"
    );
    let mut target = buffer(&stream, 0);
    for function in [Function::cuMemcpyHtoDAsync_v2, Function::cuEventRecord] {
        simulator.inject(Fault::on(function).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM));
        let (source, error) = copy::upload(&stream, pinned(test, 5)?, &mut target)
            .map(drop)
            .expect_err("it fails")
            .into_parts();
        assert_eq!((error.function(), source[0]), (Some(function), 5));
    }
    assert_eq!(source.len(), LEN);
    Ok(())
}

#[simulator_test]
fn wait_that_fails_keeps_the_pinned_buffer(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let mut target = buffer(&stream, 0);
    let pending =
        copy::upload(&stream, pinned(test, 5)?, &mut target).map_err(|returned| returned.error);
    simulator.inject(
        Fault::on(Function::cuEventSynchronize).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM),
    );
    let (pending, error) = pending?
        .wait()
        .map(drop)
        .expect_err("it fails")
        .into_parts();
    assert_eq!(error.function(), Some(Function::cuEventSynchronize));
    assert_eq!(pending.wait()?.len(), LEN);
    Ok(())
}

#[driver_test]
fn scope_waits_for_its_copies_at_its_end(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let source = pinned(test, 4)?;
    let mut result = pinned(test, 0)?;
    let mut target = buffer(&stream, 0);
    test.assert_calls(Function::cuStreamSynchronize, 1, || -> TestResult<_> {
        copy::copy_scope(&stream, |scope| {
            scope.upload(&source, &mut target)?;
            scope.download(&target, &mut result)
        })?;
        Ok(())
    })?;
    assert_eq!(&*result, &[4; LEN]);
    Ok(())
}

/// A scope that panics or fails waits for its copies.
#[test]
fn failing_scope_waits() -> TestResult {
    for fails in [false, true] {
        on_driver(|test| -> TestResult {
            let stream = test.stream();
            let source = buffer(&stream, 4);
            let mut result = pinned(test, 0)?;
            let gate = Gate::on(&stream);
            let opener = std::thread::spawn(move || {
                std::thread::sleep(std::time::Duration::from_millis(10));
                gate.open();
            });
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                copy::copy_scope(&stream, |scope| -> curium_driver::Result<()> {
                    scope.download(&source, &mut result)?;
                    if fails {
                        return scope.download(&source, &mut []);
                    }
                    std::panic::panic_any("this panic is part of the test")
                })
            }));
            assert!(
                outcome.is_err() || outcome.is_ok_and(|result| result.is_err()),
                "the scope failed"
            );
            assert_eq!(&*result, &[4; LEN], "the scope did not wait");
            resume_panic(opener.join());
            Ok(())
        })?;
    }
    Ok(())
}

/// Runs `operation` while `stream` is being captured.
fn captured<T>(stream: &Stream, operation: impl FnOnce() -> T) -> TestResult<T> {
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    // SAFETY: the stream is live, and the capture is ended below.
    unsafe {
        call!(
            stream.driver(),
            cuStreamBeginCapture_v2(stream.as_raw(), mode)
        )
    }?;
    let value = operation();
    let mut graph = std::ptr::null_mut();
    // SAFETY: the stream is live, and `graph` is valid for writes.
    unsafe {
        call!(
            stream.driver(),
            cuStreamEndCapture(stream.as_raw(), &raw mut graph)
        )
    }?;
    // SAFETY: the graph is owned here and not used.
    unsafe { call!(stream.driver(), cuGraphDestroy(graph)) }?;
    Ok(value)
}

/// Copies of memory that a graph would outlive are refused while a stream is captured.
#[test]
fn capture_refuses_short_copies() -> TestResult {
    // The simulator has no graphs yet.
    if !curium_tests::uses_cuda() {
        return skip("needs a GPU");
    }
    on_driver(|test| -> TestResult {
        let stream = test.stream();
        let mut target = buffer(&stream, 0);
        let source = pinned(test, 1)?;
        captured(&stream, || {
            let error = target
                .copy_from_slice(&source)
                .expect_err("it cannot be waited for");
            assert!(
                matches!(error, Error::Argument(_)) && error.to_string().contains("captured"),
                "{error}"
            );
            let scoped = copy::copy_scope(&stream, |scope| scope.upload(&source, &mut target));
            assert!(matches!(
                scoped.expect_err("the slice ends"),
                Error::Argument(_)
            ));
        })?;
        Ok(())
    })?;
    Ok(())
}

fn batch_moves_parts(test: &TestDriver) -> TestResult {
    let first = test.stream();
    let second = test.stream();
    let source = DeviceBuffer::from_slice(&first, &(0..12).collect::<Vec<u32>>())?;
    let mut target = DeviceBuffer::<u32>::zeroed(&second, 12)?;
    let (low, mut high) = target.split_at_mut(6)?;
    let extent = Extent::new_2d(2, 2);
    let pitch = Pitch::from_row_len::<u32>(3);
    let batch = CopyBatch::new().with_options(CopyOptions::new().with_prefer_overlap(true));
    let parts = source.slice(6..).and_then(|part| batch.copy(low, part))?;
    let grids = high
        .pitched_mut(extent, pitch)
        .and_then(|high| parts.copy_pitched(high, source.pitched(extent, pitch)?));
    let batch = grids?;
    assert_eq!(batch.len(), 2);
    batch.enqueue(&second)?;
    assert_eq!(values(&target), [6, 7, 8, 9, 10, 11, 0, 1, 0, 3, 4, 0]);
    Ok(())
}

/// A batch of copies is one call for lines and one for grids.
#[driver_test]
fn copy_batch_is_one_call_per_kind(test: &TestDriver) -> TestResult {
    if !test.driver().has(Function::cuMemcpyBatchAsync_v2) {
        return {
            batch_moves_parts(test)?;
            Ok(())
        };
    }
    test.assert_calls(Function::cuMemcpyBatchAsync_v2, 1, || -> TestResult<_> {
        test.assert_calls(Function::cuMemcpy3DBatchAsync_v2, 1, || -> TestResult<_> {
            batch_moves_parts(test)?;
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(())
}

#[test]
fn batch_on_an_older_driver() -> TestResult {
    for (version, function, calls) in [
        (CudaVersion::new(12, 8), Function::cuMemcpyBatchAsync, 1),
        (CudaVersion::new(12, 6), Function::cuMemcpyAsync, 1),
        (CudaVersion::new(11, 8), Function::cuMemcpy2DAsync_v2, 1),
    ] {
        on_simulator(
            Config::new().with_driver_version(version),
            |test, _| -> TestResult {
                test.assert_calls(function, calls, || batch_moves_parts(test))?;
                Ok(())
            },
        )?;
    }
    Ok(())
}

#[test]
fn options_copy_on_every_driver() -> TestResult {
    for minor in [(13, 2), (13, 0), (12, 0)] {
        on_simulator(
            Config::new().with_driver_version(CudaVersion::new(minor.0, minor.1)),
            |test, _| -> TestResult {
                let stream = test.stream();
                let options = CopyOptions::new().with_prefer_overlap(true);
                let source = buffer(&stream, 6);
                let mut target = buffer(&stream, 0);
                target
                    .on_mut(&stream)
                    .copy_from_device_with(&source, options)?;
                assert_eq!(values(&target), [6; LEN]);
                Ok(())
            },
        )?;
    }
    Ok(())
}

#[test]
fn options_copy_grids_everywhere() {
    for (version, function, calls) in [
        (
            CudaVersion::new(13, 2),
            Function::cuMemcpy3DWithAttributesAsync,
            1,
        ),
        (
            CudaVersion::new(13, 0),
            Function::cuMemcpy3DBatchAsync_v2,
            1,
        ),
        (CudaVersion::new(12, 0), Function::cuMemcpy3DAsync_v2, 1),
    ] {
        on_simulator(Config::new().with_driver_version(version), |test, _| {
            test.assert_calls(function, calls, || grid_with_options(test));
        });
    }
    on_driver(grid_with_options);
}

/// Copies a box with hints and asserts that the elements around it do not change.
fn grid_with_options(test: &TestDriver) {
    let stream = test.stream();
    let source = buffer(&stream, 6);
    let mut target = buffer(&stream, 0);
    let device = MemoryLocation::from(&test.device());
    let options = CopyOptions::new()
        .with_prefer_overlap(true)
        .with_source_location(device);
    let extent = Extent::new_3d(3, 2, 2);
    let pitch = Pitch::from_row_len::<u32>(4).with_layer_rows(3);
    let from = source.pitched(extent, pitch).expect("it fits");
    let mut to = target.pitched_mut(extent, pitch).expect("it fits");
    to.on_mut(&stream)
        .copy_from_with(&from, options)
        .expect("equal extents");
    let expected = |index: usize| {
        if index % 4 < 3 && index / 4 % 3 < 2 && index < 24 {
            6
        } else {
            0
        }
    };
    assert_eq!(
        values(&target),
        (0..LEN).map(expected).collect::<Vec<u32>>()
    );
}

#[driver_test]
fn box_is_copied_from_the_host_on_the_device_and_back(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    // 3 layers of 4 rows of 5 elements, from which a box of 2 layers of 2 rows of 3 elements is
    // copied.
    let whole = Extent::new_3d(5, 4, 3);
    let inner = Extent::new_3d(3, 2, 2);
    let numbers: Vec<u16> = (0..60).collect();
    let source = HostPitchedSlice::new(&numbers, whole, Pitch::tight::<u16>(whole))?;
    let mut device = DeviceBuffer::<u16>::zeroed(&stream, 60)?;
    let mut grid = device.pitched_mut(whole, Pitch::tight::<u16>(whole))?;
    grid.copy_from_host(&source)?;
    let part = grid.as_pitched().region([1, 1, 1], inner)?;
    let mut target = DeviceBuffer::filled(&stream, 40, 999_u16)?;
    let pitch = Pitch::from_row_len::<u16>(4).with_layer_rows(3);
    let mut copied = target.pitched_mut(inner, pitch)?;
    copied.copy_from(&part)?;
    let mut result = [0_u16; 12];
    let mut host = HostPitchedSliceMut::new(&mut result, inner, Pitch::tight::<u16>(inner))?;
    copied.as_pitched().copy_to_host(&mut host)?;
    assert_eq!(result, [26, 27, 28, 31, 32, 33, 46, 47, 48, 51, 52, 53]);
    let all = target.to_vec()?;
    let written = all.iter().filter(|value| **value != 999).count();
    assert_eq!(
        (written, all[3], all[8]),
        (12, 999, 999),
        "the padding between rows is unchanged"
    );
    Ok(())
}

/// Slices have the elements of a grid without its padding, in the order of layers, rows and
/// columns.
#[driver_test]
fn grid_is_copied_from_and_to_slices(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut device = DeviceBuffer::filled(&stream, 40, 999_u16)?;
    let extent = Extent::new_3d(3, 2, 2);
    let pitch = Pitch::from_row_len::<u16>(4).with_layer_rows(3);
    let mut grid = device.pitched_mut(extent, pitch)?;
    let numbers: Vec<u16> = (0..12).collect();
    grid.copy_from_slice(&numbers)?;
    assert_eq!(grid.as_pitched().to_vec()?, numbers);
    let part = grid.as_pitched();
    let part = part.region([1, 0, 1], Extent::new_3d(2, 2, 1))?;
    assert_eq!(part.to_vec()?, [7, 8, 10, 11]);
    let mut target = [0; 4];
    part.copy_to_slice(&mut target)?;
    assert_eq!(target, [7, 8, 10, 11]);
    let all = device.to_vec()?;
    assert_eq!((all[3], all[8], all[12]), (999, 999, 6), "{all:?}");

    // No layers, of more elements than a number can count.
    let extent = Extent::new_3d(1 << 40, 1 << 40, 0);
    let mut nothing = device.pitched_mut(extent, Pitch::from_row_len::<u16>(1 << 40))?;
    nothing.copy_from_slice(&[])?;
    assert!(nothing.as_pitched().to_vec()?.is_empty());
    Ok(())
}

#[driver_test]
fn mismatched_lengths_of_a_grid_are_refused(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut device = DeviceBuffer::<u32>::zeroed(&stream, 12)?;
    let mut grid = device.pitched_mut(Extent::new_2d(2, 3), Pitch::from_row_len::<u32>(4))?;
    let mut rows = PitchedBuffer::<u32>::zeroed(&stream, 2, 3)?;
    // As long as the memory with its padding, and too short.
    for len in [5, 12] {
        let mut host = vec![0; len];
        let refused = [
            (
                "PitchedSliceMut::copy_from_slice",
                grid.copy_from_slice(&host),
            ),
            (
                "PitchedSlice::copy_to_slice",
                grid.as_pitched().copy_to_slice(&mut host),
            ),
            (
                "PitchedBuffer::copy_from_slice",
                rows.copy_from_slice(&host),
            ),
            (
                "PitchedBuffer::copy_to_slice",
                rows.copy_to_slice(&mut host),
            ),
        ];
        for (operation, result) in refused {
            let error = result.expect_err("another length").to_string();
            let expected = format!(
                "{operation}: length mismatch (the buffer has 6 elements, the other operand has {len})"
            );
            assert_eq!(error, expected);
        }
    }
    Ok(())
}

#[driver_test]
fn pitched_buffer_is_copied_from_and_to_slices(test: &TestDriver) -> TestResult {
    let mut rows = PitchedBuffer::<[u8; 3]>::zeroed(&test.stream(), 5, 4)?;
    assert_eq!(rows.extent(), Extent::new_2d(5, 4));
    assert_eq!(rows.to_vec()?, [[0; 3]; 20]);
    let numbers: Vec<[u8; 3]> = (0..20).map(|number| [number; 3]).collect();
    rows.copy_from_slice(&numbers)?;
    assert_eq!(rows.row(3)?.to_vec()?, numbers[15..]);
    let mut target = vec![[0; 3]; 20];
    rows.copy_to_slice(&mut target)?;
    assert_eq!(target, numbers);
    rows.rows_mut()
        .nth(1)
        .ok_or("there are four rows")?
        .fill([99; 3])?;
    let read = rows.to_vec()?;
    assert_eq!(
        read[4..11],
        [&numbers[4..5], &[[99; 3]; 5][..], &numbers[10..11]].concat()
    );
    Ok(())
}

#[driver_test]
fn grid_is_filled_and_nothing_between_its_rows(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut buffer = DeviceBuffer::filled(&stream, 24, 1_u32)?;
    let pitch = Pitch::from_row_len::<u32>(4).with_layer_rows(3);
    let grid = buffer.pitched_mut(Extent::new_3d(3, 2, 2), pitch);
    grid.and_then(|mut grid| grid.fill(7))?;
    let layer = [7, 7, 7, 1, 7, 7, 7, 1, 1, 1, 1, 1];
    assert_eq!(buffer.to_vec()?, [layer, layer].concat());
    Ok(())
}

#[driver_test]
fn grid_beyond_the_limit_is_an_error_with_the_sizes(test: &TestDriver) -> TestResult {
    let buffer = DeviceBuffer::<u32>::zeroed(&test.stream(), 12)?;
    let grid = |extent, pitch| {
        buffer
            .pitched(extent, pitch)
            .map(drop)
            .expect_err("it does not fit")
    };
    let tight = |extent| grid(extent, Pitch::tight::<u32>(extent));
    for (error, text) in [
        (
            tight(Extent::new_2d(4, 4)),
            "4 × 4 × 1 elements take 64 bytes, the memory has 48 bytes",
        ),
        (tight(Extent::new_2d(usize::MAX, 2)), "size overflow ("),
        (
            grid(Extent::new_2d(4, 2), Pitch::from_row_len::<u32>(3)),
            "rows of 16 bytes, pitch of 12 bytes",
        ),
        (
            grid(
                Extent::new_3d(1, 3, 2),
                Pitch::from_row_len::<u32>(1).with_layer_rows(2),
            ),
            "layers of 3 rows, pitch of 2 rows",
        ),
        (
            grid(
                Extent::new_2d(1, 2),
                Pitch {
                    row_bytes: 6,
                    layer_rows: 0,
                },
            ),
            "misaligned pitch (6 bytes)",
        ),
    ] {
        assert!(error.to_string().contains(text), "{error}");
    }
    let grid = buffer.pitched(Extent::new_2d(4, 3), Pitch::from_row_len::<u32>(4))?;
    let error = grid
        .region([2, 0, 0], Extent::new_2d(3, 1))
        .map(drop)
        .expect_err("it is too wide");
    assert!(
        error.to_string().contains("region out of bounds"),
        "{error}"
    );
    Ok(())
}

/// Runs a test on two simulated devices.
fn with_two_devices(
    test: impl FnOnce(&TestDriver, &Simulator, [Stream; 2]) -> TestResult,
) -> TestResult {
    on_simulator(Config::new().with_devices(2), |driver, simulator| {
        let first = driver.device().primary_context()?.stream()?;
        let second = driver.driver().device(1)?.primary_context()?.stream()?;
        test(driver, simulator, [first, second])
    })
}

#[driver_test(with_two_devices)]
fn copy_between_devices_enables_access_and_copies(
    test: &TestDriver,
    _: &Simulator,
    [first, second]: [Stream; 2],
) -> TestResult {
    let source = buffer(&first, 3);
    let mut target = buffer(&second, 0);
    for _ in 0..2 {
        let copied = test.assert_calls(Function::cuMemcpyPeerAsync, 1, || {
            target.copy_from_device(&source)
        });
        copied?;
    }
    assert_eq!(values(&target), [3; LEN]);
    let extent = Extent::new_3d(5, 4, 2);
    let pitch = Pitch::from_row_len::<u32>(6).with_layer_rows(5);
    let mut target = buffer(&second, 0);
    let copied = test.assert_calls(Function::cuMemcpy3DPeerAsync, 1, || {
        let mut target = target.pitched_mut(extent, pitch)?;
        target.copy_from(&source.pitched(extent, pitch)?)
    });
    copied?;
    assert_eq!(
        values(&target).iter().filter(|value| **value == 3).count(),
        40
    );
    Ok(())
}

/// A copy between devices without peer access goes through the host.
#[driver_test(with_two_devices)]
fn copy_without_peer_access_uses_the_host(
    _: &TestDriver,
    simulator: &Simulator,
    [first, second]: [Stream; 2],
) -> TestResult {
    simulator.inject(
        Fault::on(Function::cuCtxEnablePeerAccess)
            .always()
            .returns(CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED),
    );
    let source = buffer(&first, 3);
    let mut target = buffer(&second, 0);
    target.copy_from_device(&source)?;
    assert_eq!(values(&target), [3; LEN]);
    Ok(())
}

/// A kernel argument on another device is given access once.
#[driver_test(with_two_devices)]
fn peer_access_is_enabled_once_for_arguments(
    test: &TestDriver,
    _: &Simulator,
    [first, second]: [Stream; 2],
) -> TestResult {
    use curium_driver::Argument;
    let buffer = DeviceBuffer::from_slice_in(&first, &[1_u32; 4], SyncAlloc)?;
    for calls in [1, 0] {
        test.assert_calls(
            Function::cuCtxEnablePeerAccess,
            calls,
            || -> TestResult<_> {
                // SAFETY: no launch uses it.
                unsafe { Argument::<&[u32]>::bind(&mut &buffer, &mut begin(&second)) }?;
                Ok(())
            },
        )?;
    }
    Ok(())
}

#[simulator_test]
fn copies_between_drivers_are_refused(test: &TestDriver, _: &Simulator) {
    on_simulator(Config::new(), |other, _| {
        let stream = test.stream();
        let foreign = other.stream();
        let source = buffer(&foreign, 1);
        let mut target = buffer(&stream, 0);
        let error = target
            .copy_from_device(&source)
            .expect_err("the drivers differ");
        assert!(matches!(error, Error::Argument(_)), "{error}");
        let view: &DeviceSlice<u32> = &source;
        let error = target
            .on_mut(&foreign)
            .copy_from_device(view)
            .expect_err("the drivers differ");
        assert!(matches!(error, Error::Argument(_)), "{error}");
    });
}

pub(crate) mod operations {
    use curium_driver::Result;
    use curium_memory::copy::{self, CopyBatch, CopyOptions};
    use curium_memory::{
        Extent, HostPitchedSlice, HostPitchedSliceMut, PinnedBuffer, PinnedFlags, Pitch,
        PitchedSlice,
    };

    use crate::array::operations::array;
    use crate::operations::{Fixture, LEN, Operation, Operations, boxed, made};

    const OPERATIONS: &[Operation] = &[
        (
            "CopyBatch::copy_to_array and CopyBatch::copy_from_array",
            |fixture| {
                let array = array(fixture)?;
                let extent = Extent::new_2d(2, 1);
                let pitch = Pitch::from_row_len::<u32>(2);
                let from = fixture.buffer.pitched(extent, pitch)?;
                let to = fixture.target.pitched_mut(extent, pitch)?;
                let batch = CopyBatch::new()
                    .copy_to_array(&array, [0; 3], from)?
                    .copy_from_array(to, &array, [2, 0, 0])?;
                batch.enqueue(&fixture.stream)?;
                made(array)
            },
        ),
        ("PitchedSlice::copy_to_host", |fixture| {
            let mut values = [0; LEN];
            made(square(fixture)?.copy_to_host(&mut HostPitchedSliceMut::new(
                &mut values,
                SQUARE,
                TIGHT,
            )?)?)
        }),
        ("PitchedSliceMut::copy_from", |fixture| {
            let mut target = fixture.target.pitched_mut(SQUARE, TIGHT)?;
            made(target.copy_from(&fixture.buffer.pitched(SQUARE, TIGHT)?)?)
        }),
        ("PitchedSliceMut::copy_from_with", |fixture| {
            let options = CopyOptions::new().with_prefer_overlap(true);
            let mut target = fixture.target.pitched_mut(SQUARE, TIGHT)?;
            made(
                target
                    .on_mut(&fixture.stream)
                    .copy_from_with(&fixture.buffer.pitched(SQUARE, TIGHT)?, options)?,
            )
        }),
        ("PitchedSliceMut::copy_from_host", |fixture| {
            let mut target = fixture.target.pitched_mut(SQUARE, TIGHT)?;
            made(target.copy_from_host(&HostPitchedSlice::new(&[1; LEN], SQUARE, TIGHT)?)?)
        }),
        ("PitchedSliceMut::copy_from_slice", |fixture| {
            let mut target = fixture.target.pitched_mut(SQUARE, TIGHT)?;
            made(target.copy_from_slice(&[1; LEN])?)
        }),
        ("PitchedSlice::copy_to_slice", |fixture| {
            made(square(fixture)?.copy_to_slice(&mut [0; LEN])?)
        }),
        ("PitchedSlice::to_vec", |fixture| {
            made(square(fixture)?.to_vec()?)
        }),
        ("PitchedSliceMut::fill", |fixture| {
            made(fixture.target.pitched_mut(SQUARE, TIGHT)?.fill(4)?)
        }),
        ("pending::upload", |fixture| {
            let pinned = pinned(fixture)?;
            copy::upload(&fixture.other, pinned, &mut fixture.buffer)
                .map_err(|returned| returned.error)
                .map(boxed)
        }),
        ("pending::download", |fixture| {
            let pinned = pinned(fixture)?;
            copy::download(&fixture.other, &fixture.buffer, pinned)
                .map_err(|returned| returned.error)
                .map(boxed)
        }),
        (
            "scope::copy_scope and CopyScope::upload and CopyScope::download",
            |fixture| {
                let source = [1; LEN];
                let mut target = [0; LEN];
                made(copy::copy_scope(&fixture.other, |scope| {
                    scope.upload(&source, &mut fixture.buffer)?;
                    scope.download(&fixture.buffer, &mut target)
                })?)
            },
        ),
        ("CopyBatch::enqueue", |fixture| {
            let (low, mut high) = fixture.target.split_at_mut(LEN / 2)?;
            let extent = Extent::new_2d(2, 2);
            let pitch = Pitch::from_row_len::<u32>(3);
            let batch = CopyBatch::new().copy(low, fixture.buffer.slice(..LEN / 2)?)?;
            let batch = batch.copy_pitched(
                high.pitched_mut(extent, pitch)?,
                fixture.buffer.pitched(extent, pitch)?,
            )?;
            made(batch.enqueue(&fixture.stream)?)
        }),
        ("Pending::wait", |fixture| {
            let pinned = pinned(fixture)?;
            let pending = copy::upload(&fixture.other, pinned, &mut fixture.buffer)?;
            pending.wait().map_err(|returned| returned.error).map(boxed)
        }),
        ("Pending::is_finished", |fixture| {
            let pinned = pinned(fixture)?;
            let pending = copy::upload(&fixture.other, pinned, &mut fixture.buffer)?;
            let finished = pending.is_finished();
            pending.wait()?;
            made(finished?)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }

    fn square(fixture: &Fixture) -> Result<PitchedSlice<'_, u32>> {
        fixture.buffer.pitched(SQUARE, TIGHT)
    }

    const SQUARE: Extent = Extent::new_2d(4, 4);

    const TIGHT: Pitch = Pitch::tight::<u32>(SQUARE);

    fn pinned(fixture: &Fixture) -> Result<PinnedBuffer<u32>> {
        PinnedBuffer::from_slice(&fixture.context, &[5; LEN], PinnedFlags::empty())
    }
}
