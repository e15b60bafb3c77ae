//! Small copies through bounce buffers, for which the host does not wait.

use std::thread;
use std::time::Duration;

use curium_driver::{Function, Graph, LaunchConfig, Library};
use curium_memory::{DeviceBuffer, PinnedBuffer, PinnedFlags, Staging, StagingOptions};
use curium_sim::{Config, Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{
    Gate, TestDriver, TestResult, driver_test, in_own_process, kernels, on_driver, on_simulator,
    simulator_test, stream_work,
};
#[cfg(target_os = "linux")]
use curium_tests::{in_fork, in_new_process};

/// The number of words of a copy.
const LEN: usize = 1000;

/// The number of copies that use a bounce buffer of 512 KiB more than twice.
const COPIES: usize = 300;

fn words(len: usize, seed: u32) -> Vec<u32> {
    (0..len as u32)
        .map(|index| (index ^ seed).wrapping_mul(0x9e37_79b9))
        .collect()
}

/// An upload returns while its stream is blocked, and the caller may then change the source.
#[driver_test]
fn source_may_change_after_an_upload(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, LEN)?;
    let mut source = words(LEN, 1);
    // The first upload allocates a bounce buffer.
    buffer.copy_from_slice(&source)?;
    let gate = Gate::on(&stream);
    source.fill(7);
    buffer.copy_from_slice(&source)?;
    source.fill(8);
    assert!(
        stream_work::is_held_up(&stream),
        "the upload has not waited"
    );
    gate.open();
    assert_eq!(buffer.to_vec()?, [7; LEN]);
    Ok(())
}

/// The caller may also change a source in pinned memory, which the device could read after the
/// upload has returned.
#[driver_test]
fn pinned_source_may_change_after_an_upload(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, LEN)?;
    let mut source =
        PinnedBuffer::from_slice(stream.context(), &words(LEN, 1), PinnedFlags::empty())?;
    // The first upload allocates a bounce buffer.
    buffer.copy_from_slice(&source)?;
    let gate = Gate::on(&stream);
    source.fill(7);
    buffer.copy_from_slice(&source)?;
    source.fill(8);
    assert!(
        stream_work::is_held_up(&stream),
        "the upload has not waited"
    );
    gate.open();
    assert_eq!(buffer.to_vec()?, [7; LEN]);
    Ok(())
}

/// Buffers and single elements are uploaded without a wait, too.
#[driver_test]
fn constructor_and_set_do_not_wait(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    drop(DeviceBuffer::from_slice(&stream, &words(LEN, 2))?);
    let (mut buffer, mut element) =
        test.assert_calls(Function::cuStreamSynchronize, 0, || -> TestResult<_> {
            let buffer = DeviceBuffer::from_slice(&stream, &words(LEN, 3))?;
            Ok((buffer, DeviceBuffer::from_slice(&stream, &[5_u8])?))
        })?;
    test.assert_calls(Function::cuStreamSynchronize, 0, || {
        buffer.set(LEN - 1, 9).and_then(|()| element.set(0, 6))
    })?;
    let mut expected = words(LEN, 3);
    expected[LEN - 1] = 9;
    assert_eq!(buffer.to_vec()?, expected);
    assert_eq!(element.get(0)?, 6);
    Ok(())
}

/// Every length up to the limit, and some beyond it, is copied in both directions.
#[driver_test]
fn copies_of_any_length_are_complete(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let small = 16 << 10;
    let limit = StagingOptions::new().upload_bounce_bytes / 4;
    for len in [
        1,
        2,
        15,
        16,
        17,
        1000,
        small - 1,
        small,
        small + 1,
        limit - 1,
        limit,
        limit + 1,
    ] {
        let source = words(len, len as u32);
        let buffer = DeviceBuffer::from_slice(&stream, &source)?;
        assert!(buffer.to_vec()? == source, "{len} words differ");
    }
    Ok(())
}

/// Bytes in a bounce buffer are reused only when their copy has completed: the host waits if all
/// are in use.
#[driver_test]
fn full_buffer_waits_for_its_oldest_copies(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, COPIES * LEN)?;
    stream.synchronize()?;
    let gate = Gate::on(&stream);
    thread::scope(|scope| -> TestResult {
        scope.spawn(move || {
            thread::sleep(Duration::from_millis(50));
            gate.open();
        });
        for copy in 0..COPIES {
            let mut source = words(LEN, copy as u32);
            let range = copy * LEN..(copy + 1) * LEN;
            buffer.slice_mut(range)?.copy_from_slice(&source)?;
            source.fill(0);
        }
        Ok(())
    })?;
    let copied = buffer.to_vec()?;
    for (copy, part) in copied.chunks(LEN).enumerate() {
        assert!(part == words(LEN, copy as u32), "copy {copy} differs");
    }
    Ok(())
}

/// A full buffer waits for the event of its oldest copies only. The driver's own copy would wait
/// for the whole stream.
#[simulator_test]
fn full_buffer_waits_for_no_stream(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, COPIES * LEN)?;
    stream.synchronize()?;
    let gate = Gate::on(&stream);
    let waits = simulator.calls(Function::cuEventSynchronize);
    test.assert_calls(Function::cuStreamSynchronize, 0, || {
        thread::scope(|scope| -> TestResult {
            scope.spawn(move || {
                thread::sleep(Duration::from_millis(50));
                gate.open();
            });
            for copy in 0..COPIES {
                let range = copy * LEN..(copy + 1) * LEN;
                buffer
                    .slice_mut(range)?
                    .copy_from_slice(&words(LEN, copy as u32))?;
            }
            Ok(())
        })
    })?;
    assert!(simulator.calls(Function::cuEventSynchronize) > waits);
    Ok(())
}

/// Many copies in a row, each read back at once or later, in a small buffer.
#[test]
fn buffer_is_reused_in_every_schedule() -> TestResult {
    for seed in 0..16 {
        on_simulator(Config::new().with_seed(seed), |test, _| -> TestResult {
            let stream = test.stream();
            let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, COPIES * LEN)?;
            for copy in 0..COPIES {
                let range = copy * LEN..(copy + 1) * LEN;
                let mut part = buffer.slice_mut(range)?;
                part.copy_from_slice(&words(LEN, copy as u32))?;
                if copy % 50 == seed as usize {
                    assert!(part.to_vec()? == words(LEN, copy as u32));
                }
            }
            for (copy, part) in buffer.to_vec()?.chunks(LEN).enumerate() {
                assert!(part == words(LEN, copy as u32), "copy {copy} differs");
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Work on another stream waits for an upload, and an upload for work on another stream.
#[test]
fn other_streams_are_ordered_with_uploads() -> TestResult {
    for seed in 0..16 {
        on_simulator(Config::new().with_seed(seed), |test, _| -> TestResult {
            let context = test.context();
            let stream = context.stream()?;
            let other = context.stream()?;
            let mut buffer = DeviceBuffer::from_slice(&stream, &words(LEN, 1))?;
            let mut target = DeviceBuffer::zeroed(&other, LEN)?;
            stream_work::copy(&other, &mut target, &buffer)?;
            buffer.copy_from_slice(&words(LEN, 2))?;
            assert!(target.to_vec()? == words(LEN, 1), "the upload came first");
            stream_work::fill(&other, &mut buffer, 3)?;
            assert_eq!(buffer.to_vec()?, [3; LEN]);
            buffer.on_mut(&other).copy_from_slice(&words(LEN, 4))?;
            assert!(buffer.to_vec()? == words(LEN, 4));
            Ok(())
        })?;
    }
    Ok(())
}

/// Threads that copy on one stream at the same time use different buffers.
#[driver_test]
fn threads_share_a_stream(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    thread::scope(|scope| {
        let threads = (0..4).map(|seed| {
            let stream = &stream;
            scope.spawn(move || -> curium_driver::Result<()> {
                for round in 0..50 {
                    let source = words(LEN, seed * 100 + round);
                    let buffer = DeviceBuffer::from_slice(stream, &source)?;
                    assert!(buffer.to_vec()? == source);
                }
                Ok(())
            })
        });
        let threads: Vec<_> = threads.collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().expect("the thread ends"))
    })?;
    Ok(())
}

/// The bounce buffer of a stream that has ended serves the next stream.
#[driver_test]
fn ended_stream_leaves_its_buffer(test: &TestDriver) -> TestResult {
    let context = test.context();
    let upload = |seed| -> TestResult {
        let stream = context.stream()?;
        let buffer = DeviceBuffer::from_slice(&stream, &words(LEN, seed))?;
        assert!(buffer.to_vec()? == words(LEN, seed));
        Ok(())
    };
    upload(0)?;
    test.assert_calls(Function::cuMemHostAlloc, 0, || (1..30).try_for_each(upload))
}

/// A stream may end before its uploads have completed.
#[driver_test]
fn stream_ends_before_its_uploads(test: &TestDriver) -> TestResult {
    let context = test.context();
    let reader = context.stream()?;
    for seed in 0..20 {
        let stream = context.stream()?;
        let buffer = DeviceBuffer::from_slice(&stream, &words(LEN, seed))?;
        let copied = buffer.on(&reader).to_vec()?;
        let unread = DeviceBuffer::from_slice(&stream, &words(LEN, seed))?;
        drop(unread);
        drop(buffer);
        drop(stream);
        assert!(copied == words(LEN, seed));
    }
    Ok(())
}

/// A stream ends while its upload is blocked: the next stream does not overwrite the bytes of the
/// upload.
#[driver_test]
fn pending_upload_of_an_ended_stream_keeps_its_bytes(test: &TestDriver) -> TestResult {
    let context = test.context();
    let owner = context.stream()?;
    let mut target = DeviceBuffer::<u32>::zeroed(&owner, LEN + 1)?;
    let mut other_target = DeviceBuffer::<u32>::zeroed(&owner, LEN)?;
    owner.synchronize()?;
    let ended = context.stream()?;
    let gate = Gate::on(&ended);
    let mut part = target.slice_mut(..LEN)?;
    part.on_mut(&ended).copy_from_slice(&words(LEN, 1))?;
    // After a later write, the memory does not keep the stream.
    target.slice_mut(LEN..)?.fill(3)?;
    test.assert_calls(Function::cuStreamDestroy_v2, 1, || drop(ended));
    let next = context.stream()?;
    other_target.on_mut(&next).copy_from_slice(&words(LEN, 2))?;
    gate.open();
    let copied = target.to_vec()?;
    assert!(copied[..LEN] == words(LEN, 1), "the bytes were reused");
    assert_eq!(copied[LEN], 3);
    assert!(other_target.to_vec()? == words(LEN, 2));
    Ok(())
}

/// A stream ends while its bounce buffer is full of blocked uploads: the next stream does not wait
/// for them.
#[driver_test]
fn full_buffer_of_an_ended_stream_is_not_taken(test: &TestDriver) -> TestResult {
    /// The number of copies that fill a buffer of 512 KiB.
    const FULL: usize = 130;
    let context = test.context();
    let owner = context.stream()?;
    let mut target = DeviceBuffer::<u32>::zeroed(&owner, FULL * LEN + 1)?;
    let mut other_target = DeviceBuffer::<u32>::zeroed(&owner, LEN)?;
    owner.synchronize()?;
    let ended = context.stream()?;
    let gate = Gate::on(&ended);
    for copy in 0..FULL {
        let mut part = target.slice_mut(copy * LEN..(copy + 1) * LEN)?;
        part.on_mut(&ended)
            .copy_from_slice(&words(LEN, copy as u32))?;
    }
    // After a later write, the memory does not keep the stream.
    target.slice_mut(FULL * LEN..)?.fill(3)?;
    test.assert_calls(Function::cuStreamDestroy_v2, 1, || drop(ended));
    let next = context.stream()?;
    thread::scope(|scope| -> TestResult {
        scope.spawn(move || {
            thread::sleep(Duration::from_millis(50));
            gate.open();
        });
        test.assert_calls(Function::cuEventSynchronize, 0, || {
            other_target
                .on_mut(&next)
                .copy_from_slice(&words(LEN, 2000))
        })?;
        Ok(())
    })?;
    assert!(other_target.to_vec()? == words(LEN, 2000));
    for (copy, part) in target.to_vec()?.chunks(LEN).take(FULL).enumerate() {
        assert!(part == words(LEN, copy as u32), "copy {copy} differs");
    }
    Ok(())
}

/// An event covers the last upload of a stream that ends, so that its buffer serves a later stream
/// once it has completed.
#[driver_test]
fn completed_upload_of_an_ended_stream_frees_bytes(test: &TestDriver) -> TestResult {
    let context = test.context();
    let owner = context.stream()?;
    let mut target = DeviceBuffer::<u32>::zeroed(&owner, LEN)?;
    let mut upload = |seed| -> TestResult {
        let stream = context.stream()?;
        target.on_mut(&stream).copy_from_slice(&words(LEN, seed))?;
        drop(stream);
        Ok(context.synchronize()?)
    };
    // The memory keeps the stream of its last write, so there are two buffers.
    upload(0)?;
    upload(1)?;
    test.assert_calls(Function::cuMemHostAlloc, 0, || (2..10).try_for_each(upload))
}

/// More streams than there are bounce buffers copy correctly.
#[driver_test]
fn streams_beyond_the_limit_copy(test: &TestDriver) -> TestResult {
    let context = test.context();
    let mut buffers = Vec::new();
    for seed in 0..140 {
        let stream = context.stream()?;
        buffers.push(DeviceBuffer::from_slice(&stream, &words(LEN, seed))?);
    }
    for (seed, buffer) in buffers.iter().enumerate() {
        assert!(buffer.to_vec()? == words(LEN, seed as u32));
    }
    Ok(())
}

/// A longer copy to pinned memory, for which the host waits anyway, needs no bounce buffer.
#[driver_test]
fn longer_download_to_pinned_memory_is_direct(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let source = words(50_000, 5);
    let buffer = DeviceBuffer::from_slice(&stream, &source)?;
    let mut target = PinnedBuffer::zeroed(stream.context(), 50_000, PinnedFlags::empty())?;
    let other = stream.context().stream()?;
    test.assert_calls(Function::cuMemHostAlloc, 0, || {
        buffer.on(&other).copy_to_slice(&mut target)
    })?;
    assert!(target[..] == source[..]);
    Ok(())
}

/// A limit of 0 disables bounce buffers.
#[driver_test]
fn options_disable_bounce_buffers(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let copy = || -> TestResult {
        let source = words(LEN, 6);
        let buffer = DeviceBuffer::from_slice(&stream, &source)?;
        assert!(buffer.to_vec()? == source);
        Ok(())
    };
    let off = StagingOptions::new()
        .with_upload_bounce_bytes(0)
        .with_download_bounce_bytes(0);
    Staging::set_options(stream.context(), off)?;
    test.assert_calls(Function::cuMemHostAlloc, 0, copy)?;
    Staging::set_options(stream.context(), StagingOptions::new())?;
    test.assert_calls(Function::cuMemHostAlloc, 1, copy)?;
    test.assert_calls(Function::cuMemHostAlloc, 0, copy)
}

/// Trimming frees the buffers of streams that have ended.
#[driver_test]
fn trim_frees_buffers_of_ended_streams(test: &TestDriver) -> TestResult {
    let context = test.context();
    let stream = context.stream()?;
    let buffer = DeviceBuffer::from_slice(&stream, &words(LEN, 6))?;
    test.assert_calls(Function::cuMemFreeHost, 0, || Staging::trim(&context));
    assert!(buffer.to_vec()? == words(LEN, 6));
    drop(buffer);
    stream.synchronize()?;
    drop(stream);
    context.synchronize()?;
    test.assert_calls(Function::cuMemFreeHost, 1, || Staging::trim(&context));
    Ok(())
}

/// An upload during the capture of another thread is complete and does not affect it.
#[driver_test]
fn upload_does_not_affect_other_captures(test: &TestDriver) -> TestResult {
    let context = test.context();
    let stream = context.stream()?;
    let mut target = DeviceBuffer::<u32>::zeroed(&stream, 4)?;
    let graph = Graph::capture(&context, |scope| {
        target.on_mut(scope).fill(5)?;
        thread::scope(|threads| {
            threads
                .spawn(|| -> curium_driver::Result<()> {
                    let stream = context.stream()?;
                    // Enough copies for events and their queries.
                    for seed in 0..COPIES as u32 {
                        let buffer = DeviceBuffer::from_slice(&stream, &words(LEN, seed))?;
                        if seed % 100 == 0 {
                            assert!(buffer.to_vec()? == words(LEN, seed));
                        }
                    }
                    Ok(())
                })
                .join()
                .expect("the thread ends")
        })
    });
    let mut executable = graph.and_then(|graph| graph.instantiate())?;
    executable.launch(&stream)?;
    assert_eq!(target.to_vec()?, [5; 4]);
    Ok(())
}

/// The bounce buffers end before their context, with uploads in progress.
#[simulator_test]
fn bounce_buffers_end_before_their_context(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let context = test.context();
    let stream = context.stream()?;
    let other = context.stream()?;
    drop(DeviceBuffer::from_slice(&stream, &words(LEN, 7))?);
    drop(DeviceBuffer::from_slice(&other, &words(LEN, 8))?);
    drop(stream);
    drop(other);
    context.close()?;
    assert!(
        simulator.live_handles().is_empty(),
        "left: {}",
        simulator.live_handles()
    );
    assert_eq!(test.driver().leaked_memory().bytes, 0);
    Ok(())
}

/// A failed upload reports its call, and its part of the bounce buffer is used again.
#[simulator_test]
fn failed_uploads_do_not_use_up_the_buffer(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let source = words(LEN, 9);
    let mut buffer = DeviceBuffer::from_slice(&stream, &source)?;
    test.assert_calls(Function::cuMemHostAlloc, 0, || -> TestResult {
        for _ in 0..COPIES {
            simulator.inject(
                Fault::on(Function::cuMemcpyHtoDAsync_v2).returns(CUresult::CUDA_ERROR_UNKNOWN),
            );
            let error = buffer.copy_from_slice(&source).expect_err("the call fails");
            simulator.clear_faults();
            assert_eq!(error.function(), Some(Function::cuMemcpyHtoDAsync_v2));
            assert!(error.to_string().contains("4000 bytes"), "{error}");
        }
        test.assert_calls(Function::cuStreamSynchronize, 0, || {
            buffer.copy_from_slice(&words(LEN, 10))
        })?;
        Ok(())
    })?;
    assert!(buffer.to_vec()? == words(LEN, 10));
    Ok(())
}

/// A download that fails, or whose wait fails, is an error, and the next one succeeds.
#[simulator_test]
fn download_succeeds_after_a_failure(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let buffer = DeviceBuffer::from_slice(&stream, &words(LEN, 11))?;
    for function in [
        Function::cuMemcpyDtoHAsync_v2,
        Function::cuStreamSynchronize,
    ] {
        simulator.inject(
            Fault::on(function)
                .call(1)
                .returns(CUresult::CUDA_ERROR_UNKNOWN),
        );
        let error = buffer.to_vec().expect_err("the call fails");
        simulator.clear_faults();
        assert_eq!(error.function(), Some(function));
        assert!(buffer.to_vec()? == words(LEN, 11));
    }
    Ok(())
}

/// Without events, a full bounce buffer is not reused, and the driver's own copy is used.
#[simulator_test]
fn buffer_without_events_is_not_reused(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, COPIES * LEN)?;
    simulator.inject(
        Fault::on(Function::cuEventRecord)
            .always()
            .returns(CUresult::CUDA_ERROR_OUT_OF_MEMORY),
    );
    for copy in 0..COPIES {
        let range = copy * LEN..(copy + 1) * LEN;
        buffer
            .slice_mut(range)?
            .copy_from_slice(&words(LEN, copy as u32))?;
    }
    simulator.clear_faults();
    for (copy, part) in buffer.to_vec()?.chunks(LEN).enumerate() {
        assert!(part == words(LEN, copy as u32), "copy {copy} differs");
    }
    Ok(())
}

#[simulator_test]
fn copies_without_pinned_memory_are_the_drivers(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let stream = test.stream();
    simulator.inject(
        Fault::on(Function::cuMemHostAlloc)
            .always()
            .returns(CUresult::CUDA_ERROR_OUT_OF_MEMORY),
    );
    let source = words(LEN, 12);
    let buffer = DeviceBuffer::from_slice(&stream, &source)?;
    assert!(buffer.to_vec()? == source);
    simulator.clear_faults();
    Ok(())
}

/// When the context is lost, copies are errors.
#[test]
fn copies_in_a_lost_context_are_errors() -> TestResult {
    in_own_process(|| -> TestResult {
        on_driver(|test| -> TestResult {
            let stream = test.stream();
            let library = Library::from_ptx(test.driver(), kernels::FAULTS)?;
            let trap = library.kernel::<(u32,)>("trap")?;
            let mut buffer = DeviceBuffer::from_slice(&stream, &words(LEN, 13))?;
            // SAFETY: the kernel accesses no memory.
            unsafe { trap.launch(&stream, LaunchConfig::new(1, 1), (1,)) }?;
            // The failure may be reported already.
            let _ = buffer.copy_from_slice(&words(LEN, 14));
            let error = buffer.to_vec().expect_err("the kernel has failed");
            assert!(error.is_sticky(), "{error}");
            let error = buffer.copy_from_slice(&words(LEN, 15));
            assert!(error.is_err_and(|error| error.is_sticky()));
            // The simulator can reset the error, after which everything is freed as usual.
            if let Some(simulator) = test.simulator() {
                simulator.reset_errors();
            }
            Ok(())
        })
    })
}

/// The child of a fork gets errors, and drops its copies of the buffers in silence.
#[cfg(target_os = "linux")]
#[test]
fn forked_child_copies_nothing() -> TestResult {
    in_new_process(|| {
        on_driver(|test| -> TestResult {
            let stream = test.stream();
            let mut buffer = DeviceBuffer::from_slice(&stream, &words(LEN, 16))?;
            in_fork(|| {
                let error = buffer.copy_from_slice(&words(LEN, 17));
                error.expect_err("CUDA does not work here");
                drop(buffer);
                drop(stream);
            });
            Ok(())
        })
    })
}
