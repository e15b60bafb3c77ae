//! Copies of large slices through pinned staging buffers.

use std::sync::Arc;
use std::thread;

use curium_driver::{Context, Error, Function, Graph, observe_calls};
use curium_memory::{DeviceBuffer, PinnedBuffer, PinnedFlags, Staging, StagingOptions};
use curium_sim::{Config, Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{
    During, TestDriver, TestResult, driver_test, on_simulator, simulator_test, stream_work,
};
use parking_lot::Mutex;

/// The size of the staging buffers of these tests in bytes, so small that a copy uses each slot
/// several times.
const BUFFER: usize = 32 << 10;

/// The number of words in a staged copy, not a multiple of a slot.
const LEN: usize = 50_021;

fn stage_small_copies(context: &Context) {
    let options = StagingOptions::new()
        .with_threads(4)
        .with_buffer_bytes(BUFFER)
        .with_threshold(BUFFER);
    Staging::set_options(context, options).expect("the options are valid");
    assert_eq!(Staging::options(context), options);
}

fn words(len: usize, seed: u32) -> Vec<u32> {
    (0..len as u32)
        .map(|index| (index ^ seed).wrapping_mul(0x9e37_79b9))
        .collect()
}

#[driver_test]
fn staged_copies_are_complete_at_every_length(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    stage_small_copies(stream.context());
    let words_of_buffer = BUFFER / 4;
    let lengths = [-1, 0, 1].map(|more| words_of_buffer.strict_add_signed(more));
    for len in
        lengths
            .into_iter()
            .chain([words_of_buffer / 8 * 9 + 7, 3 * words_of_buffer + 1, LEN])
    {
        let source = words(len, 0);
        let buffer = DeviceBuffer::from_slice(&stream, &source)?;
        assert!(buffer.to_vec()? == source, "{len} words differ");
    }
    assert_eq!(Staging::byte_len(stream.context()), BUFFER);
    Ok(())
}

/// Small copies pass through a bounce buffer, and copies of pinned memory use the driver's own
/// copy.
#[driver_test]
fn small_and_pinned_copies_are_not_staged(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    stage_small_copies(stream.context());
    let small = words(BUFFER / 8, 1);
    let pinned = PinnedBuffer::from_slice(stream.context(), &words(LEN, 1), PinnedFlags::empty())?;
    let buffer = DeviceBuffer::from_slice(&stream, &small)?;
    assert_eq!(buffer.to_vec()?, small);
    test.assert_calls(Function::cuMemcpyHtoDAsync_v2, 1, || -> TestResult<_> {
        Ok(DeviceBuffer::from_slice(&stream, &pinned)?)
    })?;
    assert_eq!(Staging::byte_len(stream.context()), 0);
    Ok(())
}

#[driver_test]
fn staging_with_one_thread_is_off(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let options = StagingOptions::new().with_threads(1).with_threshold(1);
    Staging::set_options(stream.context(), options)?;
    let source = words(LEN, 2);
    let buffer = DeviceBuffer::from_slice(&stream, &source)?;
    assert!(buffer.to_vec()? == source);
    assert_eq!(Staging::byte_len(stream.context()), 0);
    Ok(())
}

#[driver_test]
fn staging_buffer_without_bytes_is_an_error(test: &TestDriver) {
    let context = test.context();
    let before = Staging::options(&context);
    let error =
        Staging::set_options(&context, before.with_buffer_bytes(0)).expect_err("the size is zero");
    assert!(error.to_string().contains("zero buffer size"), "{error}");
    assert_eq!(Staging::options(&context), before);
}

/// A staged copy during the capture of another thread is complete and does not affect it.
#[driver_test]
fn staged_copy_does_not_affect_other_captures(test: &TestDriver) -> TestResult {
    let context = test.context();
    let stream = context.stream()?;
    stage_small_copies(&context);
    let source = words(LEN, 6);
    let mut target = DeviceBuffer::<u32>::zeroed(&stream, 4)?;
    let graph = Graph::capture(&context, |scope| {
        target.on_mut(scope).fill(5)?;
        let copied = thread::scope(|threads| {
            threads
                .spawn(|| DeviceBuffer::from_slice(&context.stream()?, &source)?.to_vec())
                .join()
                .expect("the thread ends")
        });
        assert!(copied? == source);
        Ok(())
    });
    assert_eq!(
        Staging::byte_len(&context),
        BUFFER,
        "the copies were staged"
    );
    let mut executable = graph.and_then(|graph| graph.instantiate())?;
    executable.launch(&stream)?;
    assert_eq!(target.to_vec()?, [5; 4]);
    Ok(())
}

/// A large slice in a capture is kept by the graph and not staged.
#[driver_test]
fn captured_slice_is_kept_and_not_staged(test: &TestDriver) -> TestResult {
    let context = test.context();
    let stream = context.stream()?;
    stage_small_copies(&context);
    let mut target = DeviceBuffer::<u32>::zeroed(&stream, LEN)?;
    let pinned = Staging::byte_len(&context);
    let mut source = words(LEN, 7);
    let graph = Graph::capture(&context, |scope| {
        let scratch = DeviceBuffer::from_slice(scope, &source)?;
        target.on_mut(scope).copy_from_device(&scratch)
    });
    assert_eq!(Staging::byte_len(&context), pinned, "nothing was staged");
    source.fill(0);
    let mut executable = graph.and_then(|graph| graph.instantiate())?;
    executable.launch(&stream)?;
    assert!(target.to_vec()? == words(LEN, 7));
    Ok(())
}

/// A staged copy comes after pending work of other streams.
#[test]
fn staged_copy_waits() -> TestResult {
    for seed in 0..8 {
        on_simulator(Config::new().with_seed(seed), |test, _| -> TestResult {
            let context = test.context();
            let stream = context.stream()?;
            let other = context.stream()?;
            stage_small_copies(&context);
            let mut buffer = DeviceBuffer::from_slice(&stream, &words(LEN, 3))?;
            stream_work::fill(&other, &mut buffer, 7)?;
            assert!(
                buffer.to_vec()? == vec![7; LEN],
                "the fill was not observed"
            );
            let mut target = DeviceBuffer::zeroed(&other, LEN)?;
            stream_work::copy(&other, &mut target, &buffer)?;
            buffer.copy_from_slice(&words(LEN, 4))?;
            assert!(
                target.to_vec()? == vec![7; LEN],
                "the write ran before the reader"
            );
            assert!(buffer.to_vec()? == words(LEN, 4));
            Ok(())
        })?;
    }
    Ok(())
}

#[driver_test]
fn threads_that_copy_at_once_use_two_staging_buffers(test: &TestDriver) {
    let context = test.context();
    stage_small_copies(&context);
    thread::scope(|scope| {
        for seed in 0..4 {
            let context = &context;
            scope.spawn(move || {
                let stream = context.stream().expect("failed to create a stream");
                for round in 0..4 {
                    let source = words(LEN, seed * 16 + round);
                    let buffer =
                        DeviceBuffer::from_slice(&stream, &source).expect("allocation failed");
                    assert!(buffer.to_vec().expect("read failed") == source);
                }
            });
        }
    });
    assert!([BUFFER, 2 * BUFFER].contains(&Staging::byte_len(&context)));
}

/// A staging buffer is as long as the longest copy so far up to the size in the options.
#[driver_test]
fn staging_buffer_grows_up_to_its_limit(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let options = StagingOptions::new()
        .with_threads(4)
        .with_buffer_bytes(4 * BUFFER)
        .with_threshold(BUFFER);
    Staging::set_options(stream.context(), options)?;
    let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, 2 * BUFFER)?;
    // The sizes of the copies, and of the staging buffer after each, in multiples of `BUFFER`.
    let steps = [(1, 1), (2, 2), (1, 2), (3, 4), (1, 4), (8, 4)];
    for (copied, expected) in
        steps.map(|(copied, expected)| (copied * BUFFER / 4, expected * BUFFER))
    {
        let source = words(copied, copied as u32);
        buffer
            .slice_mut(..copied)
            .and_then(|mut part| part.copy_from_slice(&source))?;
        assert_eq!(
            Staging::byte_len(stream.context()),
            expected,
            "after {copied} words"
        );
        assert!(buffer.slice(..copied)?.to_vec()? == source);
        assert_eq!(
            Staging::byte_len(stream.context()),
            expected,
            "after {copied} words"
        );
    }
    test.assert_calls(Function::cuMemFreeHost, 1, || {
        Staging::trim(stream.context());
    });
    Ok(())
}

/// Trimming returns the pinned memory and the next copy takes it again.
#[driver_test]
fn trim_frees_the_staging_buffers(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    stage_small_copies(stream.context());
    let mut buffer = DeviceBuffer::from_slice(&stream, &words(LEN, 5))?;
    assert!(Staging::byte_len(stream.context()) > 0);
    test.assert_calls(Function::cuMemFreeHost, 1, || {
        Staging::trim(stream.context());
    });
    assert_eq!(Staging::byte_len(stream.context()), 0);
    buffer.copy_from_slice(&words(LEN, 6))?;
    assert!(Staging::byte_len(stream.context()) > 0);
    Ok(())
}

/// Staging buffers end before the context that is closed.
#[simulator_test]
fn staging_buffers_end_before_their_context(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let context = test.context();
    stage_small_copies(&context);
    let stream = context.stream()?;
    drop(DeviceBuffer::from_slice(&stream, &words(LEN, 7))?);
    stream.synchronize()?;
    drop(stream);
    context.close()?;
    assert!(
        simulator.live_handles().is_empty(),
        "left: {}",
        simulator.live_handles()
    );
    Ok(())
}

#[simulator_test]
fn copy_without_pinned_memory_is_the_drivers(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let stream = test.stream();
    stage_small_copies(stream.context());
    simulator
        .inject(Fault::on(Function::cuMemHostAlloc).returns(CUresult::CUDA_ERROR_OUT_OF_MEMORY));
    let source = words(LEN, 8);
    let buffer = DeviceBuffer::from_slice(&stream, &source)?;
    simulator.clear_faults();
    assert_eq!(Staging::byte_len(stream.context()), 0);
    assert!(buffer.to_vec()? == source);
    Ok(())
}

/// A staged copy that fails is an error and the next one succeeds.
#[simulator_test]
fn staged_copy_succeeds_after_a_failure(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    stage_small_copies(stream.context());
    let source = words(LEN, 9);
    let mut buffer = DeviceBuffer::from_slice(&stream, &source)?;
    let functions = [
        Function::cuMemcpyHtoDAsync_v2,
        Function::cuEventRecord,
        Function::cuEventSynchronize,
    ];
    for function in functions {
        simulator.inject(
            Fault::on(function)
                .call(3)
                .returns(CUresult::CUDA_ERROR_UNKNOWN),
        );
        let error = buffer.copy_from_slice(&source).expect_err("a call fails");
        simulator.clear_faults();
        assert_eq!(
            (error.function(), error.code()),
            (Some(function), Some(CUresult::CUDA_ERROR_UNKNOWN))
        );
        buffer.copy_from_slice(&source)?;
    }
    simulator.inject(
        Fault::on(Function::cuMemcpyDtoHAsync_v2)
            .call(2)
            .returns(CUresult::CUDA_ERROR_UNKNOWN),
    );
    let error = buffer.to_vec().expect_err("a call fails");
    simulator.clear_faults();
    assert_eq!(error.function(), Some(Function::cuMemcpyDtoHAsync_v2));
    assert!(buffer.to_vec()? == source);
    Ok(())
}

/// A staged copy whose wait fails waits again before its memory is freed.
#[simulator_test]
fn staged_copy_retries_its_wait(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    stage_small_copies(stream.context());
    let source = words(LEN, 10);
    let mut buffer = DeviceBuffer::from_slice(&stream, &source)?;
    let waits = |copy: &mut dyn FnMut() -> Result<(), Error>| {
        let before = simulator.calls(Function::cuStreamSynchronize);
        let result = copy();
        (
            result,
            simulator.calls(Function::cuStreamSynchronize) - before,
        )
    };
    let (copied, usual) = waits(&mut || buffer.copy_from_slice(&source));
    copied?;
    simulator.inject(
        Fault::on(Function::cuStreamSynchronize)
            .call(1)
            .returns(CUresult::CUDA_ERROR_SYSTEM_NOT_READY),
    );
    let (copied, waited) = waits(&mut || buffer.copy_from_slice(&source));
    simulator.clear_faults();
    assert_eq!(
        copied.expect_err("a wait fails").function(),
        Some(Function::cuStreamSynchronize)
    );
    assert_eq!(waited, usual + 1, "the stream is waited for nevertheless");
    assert!(buffer.to_vec()? == source);
    Ok(())
}

/// A copy fits the staging buffer of options that change while it begins.
#[driver_test]
fn copy_handles_changing_staging_options(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let large = StagingOptions::new()
        .with_threads(4)
        .with_buffer_bytes(1 << 20)
        .with_threshold(BUFFER);
    let source = words(1 << 20, 11);
    let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, source.len())?;
    let with_change = |copy: &mut dyn FnMut() -> Result<(), Error>| -> TestResult<_> {
        Staging::set_options(stream.context(), large)?;
        let context = stream.context().clone();
        // The copy has read the options, and has no staging buffer yet.
        let guard = observe_calls(During::call_of(
            Function::cuPointerGetAttributes,
            move || stage_small_copies(&context),
        ));
        copy()?;
        drop(guard);
        assert_eq!(
            Staging::byte_len(stream.context()),
            BUFFER,
            "the buffer has the new options"
        );
        Ok(())
    };
    with_change(&mut || buffer.copy_from_slice(&source))?;
    let mut copied = vec![0; source.len()];
    with_change(&mut || buffer.copy_to_slice(&mut copied))?;
    assert!(copied == source);
    Ok(())
}

/// A copy that an observer makes during a staged copy uses the driver's own copy.
#[driver_test]
fn observer_copy_is_not_staged(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let other = stream.context().stream()?;
    stage_small_copies(stream.context());
    let source = words(LEN, 12);
    let buffer = DeviceBuffer::from_slice(&stream, &source)?;
    let inner = DeviceBuffer::from_slice(&other, &source)?;
    // Another thread may hold the observer for a moment, but not the buffer.
    let inner = Arc::new(Mutex::new(Some(inner)));
    let copied = Arc::new(Mutex::new(None));
    let action = {
        let inner = Arc::clone(&inner);
        let copied = Arc::clone(&copied);
        // The other threads of the outer copy wait for this one.
        move || {
            let inner = inner.lock();
            *copied.lock() = inner.as_ref().map(|buffer| buffer.to_vec());
        }
    };
    let guard = observe_calls(During::call_of(Function::cuEventSynchronize, action));
    // The other threads may copy everything before the calling thread takes a part.
    for _ in 0..100 {
        assert!(buffer.to_vec()? == source);
        if copied.lock().is_some() {
            break;
        }
    }
    drop(guard);
    drop(inner.lock().take());
    let copied = copied.lock().take();
    let copied = copied.ok_or("the calling thread did not wait for an event")??;
    assert!(copied == source);
    assert_eq!(
        Staging::byte_len(stream.context()),
        BUFFER,
        "the inner copy used no staging buffer"
    );
    Ok(())
}
