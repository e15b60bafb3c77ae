//! Copies of large slices through pinned staging buffers.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use curium_driver::{Context, Error, Function, Graph, observe_calls};
use curium_memory::{
    DeviceBuffer, DeviceSlice, PinnedBuffer, PinnedFlags, Staging, StagingOptions,
};
use curium_sim::{Config, Fault};
use curium_sys::CUresult;
use curium_tests::{During, on_driver, on_simulator, stream_work};

/// The size of the staging buffers of these tests in bytes, so small that a copy uses each slot several times.
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

#[test]
fn staged_copies_of_every_length_are_whole() {
    on_driver(|test| {
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
            let buffer = DeviceBuffer::from_slice(&stream, &source).expect("memory suffices");
            assert!(
                buffer.to_vec().expect("the buffer can be read") == source,
                "{len} words differ"
            );
        }
        assert_eq!(Staging::byte_len(stream.context()), BUFFER);
    });
}

#[test]
fn small_copies_and_copies_of_pinned_memory_are_the_drivers() {
    on_driver(|test| {
        let stream = test.stream();
        stage_small_copies(stream.context());
        let small = words(BUFFER / 8, 1);
        let pinned =
            PinnedBuffer::from_slice(stream.context(), &words(LEN, 1), PinnedFlags::empty())
                .expect("memory");
        test.assert_calls(Function::cuMemHostAlloc, 0, || {
            let buffer = DeviceBuffer::from_slice(&stream, &small).expect("memory suffices");
            assert_eq!(buffer.to_vec().expect("the buffer can be read"), small);
        });
        test.assert_calls(Function::cuMemcpyHtoDAsync_v2, 1, || {
            DeviceBuffer::from_slice(&stream, &pinned).expect("memory suffices")
        });
        assert_eq!(Staging::byte_len(stream.context()), 0);
    });
}

#[test]
fn staging_with_one_thread_is_off() {
    on_driver(|test| {
        let stream = test.stream();
        let options = StagingOptions::new().with_threads(1).with_threshold(1);
        Staging::set_options(stream.context(), options).expect("the options are valid");
        let source = words(LEN, 2);
        let buffer = DeviceBuffer::from_slice(&stream, &source).expect("memory suffices");
        assert!(buffer.to_vec().expect("the buffer can be read") == source);
        assert_eq!(Staging::byte_len(stream.context()), 0);
    });
}

#[test]
fn staging_buffer_without_bytes_is_an_error() {
    on_driver(|test| {
        let context = test.context();
        let before = Staging::options(&context);
        let error = Staging::set_options(&context, before.with_buffer_bytes(0))
            .expect_err("the size is zero");
        assert!(error.to_string().contains("zero buffer size"), "{error}");
        assert_eq!(Staging::options(&context), before);
    });
}

#[test]
fn staged_copy_during_the_capture_of_another_thread_is_complete_and_does_not_affect_it() {
    on_driver(|test| {
        let context = test.context();
        let stream = context.stream().expect("a stream can be created");
        stage_small_copies(&context);
        let source = words(LEN, 6);
        let mut target = DeviceBuffer::<u32>::zeroed(&stream, 4).expect("memory suffices");
        let graph = Graph::capture(&context, |scope| {
            target.as_slice_mut().fill_on(scope, 5)?;
            let copied = thread::scope(|threads| {
                let copy = || DeviceBuffer::from_slice(&context.stream()?, &source)?.to_vec();
                threads.spawn(copy).join().expect("the thread ends")
            });
            assert!(copied.expect("the copies are not part of the capture") == source);
            Ok(())
        });
        assert_eq!(
            Staging::byte_len(&context),
            BUFFER,
            "the copies were staged"
        );
        let mut executable = graph
            .and_then(|graph| graph.instantiate())
            .expect("nothing ended the capture");
        executable
            .launch(&stream)
            .expect("the graph can be launched");
        assert_eq!(target.to_vec().expect("the buffer can be read"), [5; 4]);
    });
}

#[test]
fn large_slice_in_a_capture_is_kept_by_the_graph_and_not_staged() {
    on_driver(|test| {
        let context = test.context();
        let stream = context.stream().expect("a stream can be created");
        stage_small_copies(&context);
        let mut target = DeviceBuffer::<u32>::zeroed(&stream, LEN).expect("memory suffices");
        let (pinned, mut source) = (Staging::byte_len(&context), words(LEN, 7));
        let graph = Graph::capture(&context, |scope| {
            let scratch = DeviceBuffer::from_slice(scope, &source)?;
            target.as_slice_mut().copy_from_device_on(scope, &scratch)
        });
        assert_eq!(Staging::byte_len(&context), pinned, "nothing was staged");
        source.fill(0);
        let mut executable = graph
            .and_then(|graph| graph.instantiate())
            .expect("the copy is a node");
        executable
            .launch(&stream)
            .expect("the graph can be launched");
        assert!(target.to_vec().expect("the buffer can be read") == words(LEN, 7));
    });
}

#[test]
fn staged_copy_comes_after_pending_work_of_other_streams() {
    for seed in 0..8 {
        on_simulator(Config::new().with_seed(seed), |test, _| {
            let context = test.context();
            let (stream, other) = (
                context.stream().expect("a stream"),
                context.stream().expect("a stream"),
            );
            stage_small_copies(&context);
            let mut buffer =
                DeviceBuffer::from_slice(&stream, &words(LEN, 3)).expect("memory suffices");
            stream_work::fill(&other, &mut buffer, 7).expect("the buffer can be filled");
            assert!(
                buffer.to_vec().expect("the buffer can be read") == vec![7; LEN],
                "the fill was not observed"
            );
            let mut target = DeviceBuffer::zeroed(&other, LEN).expect("memory suffices");
            stream_work::copy(&other, &mut target, &buffer).expect("the buffer can be copied");
            buffer
                .copy_from_slice(&words(LEN, 4))
                .expect("the buffer can be written");
            assert!(
                target.to_vec().expect("the buffer can be read") == vec![7; LEN],
                "the write ran before the reader"
            );
            assert!(buffer.to_vec().expect("the buffer can be read") == words(LEN, 4));
        });
    }
}

#[test]
fn threads_that_copy_at_once_use_two_staging_buffers() {
    on_driver(|test| {
        let context = test.context();
        stage_small_copies(&context);
        thread::scope(|scope| {
            for seed in 0..4 {
                let context = &context;
                scope.spawn(move || {
                    let stream = context.stream().expect("a stream can be created");
                    for round in 0..4 {
                        let source = words(LEN, seed * 16 + round);
                        let buffer =
                            DeviceBuffer::from_slice(&stream, &source).expect("memory suffices");
                        assert!(buffer.to_vec().expect("the buffer can be read") == source);
                    }
                });
            }
        });
        assert!([BUFFER, 2 * BUFFER].contains(&Staging::byte_len(&context)));
    });
}

#[test]
fn staging_buffer_is_as_long_as_the_longest_copy_so_far_up_to_the_size_in_the_options() {
    on_driver(|test| {
        let stream = test.stream();
        let options = StagingOptions::new()
            .with_threads(4)
            .with_buffer_bytes(4 * BUFFER)
            .with_threshold(BUFFER);
        Staging::set_options(stream.context(), options).expect("the options are valid");
        let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, 2 * BUFFER).expect("memory suffices");
        // The sizes of the copies, and of the staging buffer after each, in multiples of `BUFFER`.
        let steps = [(1, 1), (2, 2), (1, 2), (3, 4), (1, 4), (8, 4)];
        for (copied, expected) in
            steps.map(|(copied, expected)| (copied * BUFFER / 4, expected * BUFFER))
        {
            let source = words(copied, copied as u32);
            buffer
                .slice_mut(..copied)
                .and_then(|mut part| part.copy_from_slice(&source))
                .expect("the part exists");
            assert_eq!(
                Staging::byte_len(stream.context()),
                expected,
                "after {copied} words"
            );
            assert!(
                buffer
                    .slice(..copied)
                    .and_then(DeviceSlice::to_vec)
                    .expect("the part exists")
                    == source
            );
            assert_eq!(
                Staging::byte_len(stream.context()),
                expected,
                "after {copied} words"
            );
        }
        test.assert_calls(Function::cuMemFreeHost, 1, || {
            Staging::trim(stream.context());
        });
    });
}

#[test]
fn trim_gives_the_pinned_memory_back_and_the_next_copy_takes_it_again() {
    on_driver(|test| {
        let stream = test.stream();
        stage_small_copies(stream.context());
        let mut buffer =
            DeviceBuffer::from_slice(&stream, &words(LEN, 5)).expect("memory suffices");
        assert!(Staging::byte_len(stream.context()) > 0);
        test.assert_calls(Function::cuMemFreeHost, 1, || {
            Staging::trim(stream.context());
        });
        assert_eq!(Staging::byte_len(stream.context()), 0);
        buffer
            .copy_from_slice(&words(LEN, 6))
            .expect("the buffer can be written");
        assert!(Staging::byte_len(stream.context()) > 0);
    });
}

#[test]
fn staging_buffers_end_before_the_context_that_is_closed() {
    on_simulator(Config::new(), |test, simulator| {
        let context = test.context();
        stage_small_copies(&context);
        let stream = context.stream().expect("a stream can be created");
        drop(DeviceBuffer::from_slice(&stream, &words(LEN, 7)).expect("memory suffices"));
        stream.synchronize().expect("the work succeeds");
        drop(stream);
        context
            .close()
            .expect("staging does not keep the context alive");
        assert!(
            simulator.live_handles().is_empty(),
            "left: {}",
            simulator.live_handles()
        );
    });
}

#[test]
fn copy_without_pinned_memory_is_the_drivers() {
    on_simulator(Config::new(), |test, simulator| {
        let stream = test.stream();
        stage_small_copies(stream.context());
        simulator.inject(
            Fault::on(Function::cuMemHostAlloc).returns(CUresult::CUDA_ERROR_OUT_OF_MEMORY),
        );
        let source = words(LEN, 8);
        let buffer = DeviceBuffer::from_slice(&stream, &source)
            .expect("the driver copies without pinned memory");
        simulator.clear_faults();
        assert_eq!(Staging::byte_len(stream.context()), 0);
        assert!(buffer.to_vec().expect("the buffer can be read") == source);
    });
}

#[test]
fn staged_copy_that_fails_is_an_error_and_the_next_one_succeeds() {
    on_simulator(Config::new(), |test, simulator| {
        let stream = test.stream();
        stage_small_copies(stream.context());
        let source = words(LEN, 9);
        let mut buffer = DeviceBuffer::from_slice(&stream, &source).expect("memory suffices");
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
            buffer
                .copy_from_slice(&source)
                .expect("the staging buffer is replaced");
        }
        simulator.inject(
            Fault::on(Function::cuMemcpyDtoHAsync_v2)
                .call(2)
                .returns(CUresult::CUDA_ERROR_UNKNOWN),
        );
        let error = buffer.to_vec().expect_err("a call fails");
        simulator.clear_faults();
        assert_eq!(error.function(), Some(Function::cuMemcpyDtoHAsync_v2));
        assert!(buffer.to_vec().expect("the staging buffer is replaced") == source);
    });
}

#[test]
fn staged_copy_whose_wait_fails_waits_again_before_its_memory_is_freed() {
    on_simulator(Config::new(), |test, simulator| {
        let stream = test.stream();
        stage_small_copies(stream.context());
        let source = words(LEN, 10);
        let mut buffer = DeviceBuffer::from_slice(&stream, &source).expect("memory suffices");
        let waits = |copy: &mut dyn FnMut() -> Result<(), Error>| {
            let before = simulator.calls(Function::cuStreamSynchronize);
            let result = copy();
            (
                result,
                simulator.calls(Function::cuStreamSynchronize) - before,
            )
        };
        let (copied, usual) = waits(&mut || buffer.copy_from_slice(&source));
        copied.expect("nothing fails");
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
        assert!(buffer.to_vec().expect("the buffer can be read") == source);
    });
}

#[test]
fn copy_fits_the_staging_buffer_of_options_that_change_while_it_begins() {
    on_driver(|test| {
        let stream = test.stream();
        let large = StagingOptions::new()
            .with_threads(4)
            .with_buffer_bytes(1 << 20)
            .with_threshold(BUFFER);
        let source = words(1 << 20, 11);
        let mut buffer =
            DeviceBuffer::<u32>::zeroed(&stream, source.len()).expect("memory suffices");
        let with_change = |copy: &mut dyn FnMut() -> Result<(), Error>| {
            Staging::set_options(stream.context(), large).expect("the options are valid");
            let context = stream.context().clone();
            // The copy has read the options, and has no staging buffer yet.
            let guard = observe_calls(During::call_of(
                Function::cuPointerGetAttributes,
                move || stage_small_copies(&context),
            ));
            copy().expect("the lengths are equal");
            drop(guard);
            assert_eq!(
                Staging::byte_len(stream.context()),
                BUFFER,
                "the buffer has the new options"
            );
        };
        with_change(&mut || buffer.copy_from_slice(&source));
        let mut copied = vec![0; source.len()];
        with_change(&mut || buffer.copy_to_slice(&mut copied));
        assert!(copied == source);
    });
}

#[test]
fn copy_that_an_observer_makes_during_a_staged_copy_is_the_drivers() {
    on_driver(|test| {
        let stream = test.stream();
        let other = stream.context().stream().expect("a stream can be created");
        stage_small_copies(stream.context());
        let source = words(LEN, 12);
        let buffer = DeviceBuffer::from_slice(&stream, &source).expect("memory suffices");
        let inner = DeviceBuffer::from_slice(&other, &source).expect("memory suffices");
        // Another thread may hold the observer for a moment, but not the buffer.
        let inner = Arc::new(Mutex::new(Some(inner)));
        let copied = Arc::new(Mutex::new(None));
        let action = {
            let (inner, copied) = (Arc::clone(&inner), Arc::clone(&copied));
            // The other threads of the outer copy wait for this one.
            move || {
                let inner = inner.lock().unwrap_or_else(PoisonError::into_inner);
                *copied.lock().unwrap_or_else(PoisonError::into_inner) =
                    inner.as_ref().map(DeviceBuffer::to_vec);
            }
        };
        let guard = observe_calls(During::call_of(Function::cuEventSynchronize, action));
        // The other threads may copy everything before the calling thread takes a part.
        for _ in 0..100 {
            assert!(buffer.to_vec().expect("the buffer can be read") == source);
            if copied
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .is_some()
            {
                break;
            }
        }
        drop(guard);
        drop(inner.lock().unwrap_or_else(PoisonError::into_inner).take());
        let copied = copied.lock().unwrap_or_else(PoisonError::into_inner).take();
        let copied = copied
            .expect("the calling thread waits for an event")
            .expect("the inner buffer can be read");
        assert!(copied == source);
        assert_eq!(
            Staging::byte_len(stream.context()),
            BUFFER,
            "the inner copy used no staging buffer"
        );
    });
}
