//! Buffers on several streams: all required waits are inserted, and no others.

pub(crate) mod accesses;
mod parts;

use curium_driver::{Event, EventFlags, Function, Stream};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, Simulator};
use curium_tests::stream_work::{copy, copy_without_waiting, fill, is_held_up};
use curium_tests::{Gate, TestDriver, looks_for_races, on_driver, on_simulator};

const LEN: usize = if cfg!(miri) { 8 } else { 256 };

/// The number of schedules to try; Miri is too slow for many.
const SEEDS: u64 = if cfg!(miri) { 2 } else { 60 };

fn streams<const N: usize>(test: &TestDriver) -> [Stream; N] {
    std::array::from_fn(|_| test.stream())
}

fn buffer(stream: &Stream, value: u32) -> DeviceBuffer<u32> {
    DeviceBuffer::from_slice(stream, &[value; LEN]).expect("memory suffices")
}

fn values(buffer: &DeviceBuffer<u32>) -> Vec<u32> {
    buffer.to_vec().expect("the buffer can be read")
}

/// A small seeded random number generator.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

#[test]
fn use_on_one_stream_makes_no_event_and_no_context_call() {
    on_simulator(Config::new(), |test, simulator| {
        let stream = test.stream();
        let watched = [
            Function::cuEventCreate,
            Function::cuEventRecord,
            Function::cuStreamWaitEvent,
            Function::cuCtxGetCurrent,
            Function::cuCtxSetCurrent,
            Function::cuCtxPushCurrent_v2,
            Function::cuCtxPopCurrent_v2,
        ];
        let before = watched.map(|function| simulator.calls(function));
        let mut first = buffer(&stream, 1);
        let mut second = DeviceBuffer::zeroed(&stream, LEN).expect("memory suffices");
        second
            .copy_from_device(&first)
            .expect("the lengths are equal");
        copy(&stream, &mut first, &second).expect("the buffer can be copied");
        fill(&stream, &mut second, 2).expect("the buffer can be filled");
        assert_eq!(
            (values(&first), values(&second)),
            (vec![1; LEN], vec![2; LEN])
        );
        drop((first, second));
        let after = watched.map(|function| simulator.calls(function));
        assert_eq!(before, after, "calls of {watched:?}");
    });
}

#[test]
fn reader_on_another_stream_waits_for_the_writer() {
    on_driver(|test| {
        let [first, second] = streams(test);
        let (mut source, mut target) = (buffer(&first, 1), buffer(&second, 0));
        let gate = Gate::on(&first);
        fill(&first, &mut source, 2).expect("the buffer can be filled");
        target
            .copy_from_device(&source)
            .expect("the lengths are equal");
        assert!(is_held_up(&second), "the reader did not wait");
        gate.open();
        assert_eq!(values(&target), [2; LEN]);
    });
}

#[test]
fn writer_waits_for_every_reader_on_every_stream() {
    for slow in 0..3 {
        on_driver(|test| {
            let [owner, writer] = streams(test);
            let readers: [Stream; 3] = streams(test);
            let mut source = buffer(&owner, 1);
            let mut targets = readers.each_ref().map(|reader| buffer(reader, 0));
            let gate = Gate::on(&readers[slow]);
            for (reader, target) in readers.iter().zip(&mut targets) {
                copy(reader, target, &source).expect("the buffer can be copied");
            }
            fill(&writer, &mut source, 2).expect("the buffer can be filled");
            assert!(
                is_held_up(&writer),
                "the writer did not wait for reader {slow} of 3"
            );
            gate.open();
            assert_eq!(
                targets.each_ref().map(values),
                [vec![1; LEN], vec![1; LEN], vec![1; LEN]]
            );
            assert_eq!(values(&source), [2; LEN]);
        });
    }
}

#[test]
fn writer_waits_for_an_earlier_reader_though_a_later_one_is_done() {
    on_driver(|test| {
        let [owner, early, late, writer] = streams(test);
        let mut source = buffer(&owner, 1);
        let (mut first, mut second) = (buffer(&early, 0), buffer(&late, 0));
        let gate = Gate::on(&early);
        copy(&early, &mut first, &source).expect("the buffer can be copied");
        copy(&late, &mut second, &source).expect("the buffer can be copied");
        late.synchronize()
            .expect("the late reader waits for no other stream");
        fill(&writer, &mut source, 2).expect("the buffer can be filled");
        assert!(
            is_held_up(&writer),
            "the record of the early reader was removed"
        );
        gate.open();
        assert_eq!(
            (values(&first), values(&second)),
            (vec![1; LEN], vec![1; LEN])
        );
    });
}

#[test]
fn writer_waits_for_each_reading_stream_once() {
    on_simulator(Config::new(), |test, simulator| {
        let [owner, writer] = streams(test);
        let readers: [Stream; 3] = streams(test);
        let mut source = buffer(&owner, 1);
        let mut targets = readers.each_ref().map(|reader| buffer(reader, 0));
        for _ in 0..4 {
            for (reader, target) in readers.iter().zip(&mut targets) {
                copy(reader, target, &source).expect("the buffer can be copied");
            }
        }
        let waits = simulator.calls(Function::cuStreamWaitEvent);
        fill(&writer, &mut source, 2).expect("the buffer can be filled");
        // The three readers, and the owner's stream with the last write.
        assert_eq!(simulator.calls(Function::cuStreamWaitEvent) - waits, 4);
        fill(&writer, &mut source, 3).expect("the buffer can be filled");
        assert_eq!(
            simulator.calls(Function::cuStreamWaitEvent) - waits,
            4,
            "the second write needs no wait"
        );
    });
}

#[test]
fn readers_do_not_wait_for_each_other() {
    on_driver(|test| {
        let [owner, slow, quick] = streams(test);
        let source = buffer(&owner, 1);
        let (mut first, mut second) = (buffer(&slow, 0), buffer(&quick, 0));
        let gate = Gate::on(&slow);
        copy(&slow, &mut first, &source).expect("the buffer can be copied");
        copy(&quick, &mut second, &source).expect("the buffer can be copied");
        quick
            .synchronize()
            .expect("the quick reader waits for no other stream");
        assert!(is_held_up(&slow));
        gate.open();
        slow.synchronize().expect("the stream works");
    });
}

#[test]
fn stream_that_has_waited_does_not_wait_again() {
    on_simulator(Config::new(), |test, simulator| {
        let [owner, reader] = streams(test);
        let (source, mut target) = (buffer(&owner, 1), buffer(&reader, 0));
        let waits = || simulator.calls(Function::cuStreamWaitEvent);
        let before = waits();
        copy(&reader, &mut target, &source).expect("the buffer can be copied");
        assert_eq!(waits() - before, 1);
        for _ in 0..10 {
            copy(&reader, &mut target, &source).expect("the buffer can be copied");
        }
        assert_eq!(waits() - before, 1);
    });
}

#[test]
fn free_waits_for_every_reader() {
    on_driver(|test| {
        let [owner, quick, slow] = streams(test);
        let source = buffer(&owner, 1);
        let (mut first, mut second) = (buffer(&quick, 0), buffer(&slow, 0));
        let gate = Gate::on(&slow);
        copy(&slow, &mut second, &source).expect("the buffer can be copied");
        copy(&quick, &mut first, &source).expect("the buffer can be copied");
        drop(source);
        assert!(
            is_held_up(&owner),
            "the memory was freed before a reader ran"
        );
        gate.open();
        owner.synchronize().expect("the stream works");
        assert_eq!(
            (values(&first), values(&second)),
            (vec![1; LEN], vec![1; LEN])
        );
    });
}

#[test]
fn memory_freed_while_a_reader_is_pending_is_not_reused_before_the_read() {
    on_driver(|test| {
        let [owner, reader] = streams(test);
        let (source, mut target) = (buffer(&owner, 1), buffer(&reader, 0));
        let gate = Gate::on(&reader);
        copy(&reader, &mut target, &source).expect("the buffer can be copied");
        drop(source);
        let mut next = DeviceBuffer::<u32>::uninit(&owner, LEN).expect("memory suffices");
        fill(&owner, &mut next, 2).expect("the buffer can be filled");
        gate.open();
        assert_eq!(
            (values(&target), values(&next)),
            (vec![1; LEN], vec![2; LEN])
        );
    });
}

#[test]
fn free_waits_for_a_writer_on_another_stream() {
    on_driver(|test| {
        let [owner, writer] = streams(test);
        let mut target = buffer(&owner, 1);
        let gate = Gate::on(&writer);
        fill(&writer, &mut target, 2).expect("the buffer can be filled");
        drop(target);
        assert!(
            is_held_up(&owner),
            "the memory was freed before a writer ran"
        );
        gate.open();
        owner.synchronize().expect("the stream works");
    });
}

#[test]
fn buffer_keeps_the_streams_that_use_it() {
    on_driver(|test| {
        let owner = test.stream();
        let mut target = buffer(&owner, 1);
        let writer = test.stream();
        fill(&writer, &mut target, 2).expect("the buffer can be filled");
        drop(writer);
        assert_eq!(values(&target), [2; LEN]);
    });
}

#[test]
fn free_waits_on_the_host_where_the_stream_cannot_wait() {
    on_simulator(Config::new(), |test, simulator| {
        let [owner, reader] = streams(test);
        let (source, mut target) = (buffer(&owner, 1), buffer(&reader, 0));
        copy(&reader, &mut target, &source).expect("the buffer can be copied");
        let fault = curium_sim::Fault::on(Function::cuEventRecord).always();
        simulator.inject(fault.returns(curium_sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY));
        source.close().expect("the host can wait");
        simulator.clear_faults();
        assert_eq!(values(&target), [1; LEN]);
    });
}

#[test]
fn buffer_is_read_by_many_threads_at_once() {
    on_driver(|test| {
        let owner = test.stream();
        let mut source = buffer(&owner, 1);
        for value in 2..6 {
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        let stream = test.stream();
                        let mut target = buffer(&stream, 0);
                        copy(&stream, &mut target, &source).expect("the buffer can be copied");
                        assert_eq!(values(&target), vec![value - 1; LEN]);
                    });
                }
            });
            fill(&test.stream(), &mut source, value).expect("the buffer can be filled");
        }
    });
}

/// Runs a random program of copies and fills on a few buffers and streams, and the same program on the host.
fn run_random_program(test: &TestDriver, seed: u64) {
    let mut dice = Dice(seed);
    let streams: [Stream; 4] = streams(test);
    let mut expected: Vec<u32> = (0..5).collect();
    let mut buffers: Vec<_> = expected
        .iter()
        .map(|value| buffer(&streams[dice.below(4)], *value))
        .collect();
    for step in 100..160 {
        let (stream, at, from) = (&streams[dice.below(4)], dice.below(5), dice.below(5));
        match dice.below(4) {
            0 => {
                fill(stream, &mut buffers[at], step).expect("the buffer can be filled");
                expected[at] = step;
            }
            1 => {
                buffers[at] = buffer(stream, step);
                expected[at] = step;
            }
            _ if at != from => {
                let mut target = std::mem::replace(&mut buffers[at], buffer(stream, 0));
                copy(stream, &mut target, &buffers[from]).expect("the buffer can be copied");
                buffers[at] = target;
                expected[at] = expected[from];
            }
            _ => {}
        }
    }
    for (index, (buffer, expected)) in buffers.iter().zip(expected).enumerate() {
        assert_eq!(
            values(buffer),
            vec![expected; LEN],
            "buffer {index} with seed {seed}"
        );
    }
}

#[test]
fn buffers_used_on_several_streams_without_explicit_waits_hold_the_results_of_one_stream() {
    on_driver(|test| (0..SEEDS / 2).for_each(|seed| run_random_program(test, seed)));
    for seed in 0..SEEDS / 2 {
        on_simulator(Config::new().with_seed(seed).with_workers(1), |test, _| {
            run_random_program(test, seed + 1000);
        });
    }
}

/// Returns `true` if an unsynchronized copy on another stream reads the content from before the write.
fn unordered_copy_misses_the_write(test: &TestDriver, _: &Simulator) -> bool {
    let [first, second, third] = streams(test);
    let (mut source, target) = (buffer(&first, 1), buffer(&second, 0));
    let middle = buffer(&third, 0);
    for value in 2..20 {
        fill(&first, &mut source, value).expect("the buffer can be filled");
    }
    // SAFETY: all buffers outlive the work, which is waited for below; the race is the subject of the test.
    unsafe { copy_without_waiting(&third, &middle, &source) }.expect("the buffer can be copied");
    // SAFETY: as above.
    unsafe { copy_without_waiting(&second, &target, &middle) }.expect("the buffer can be copied");
    test.context().synchronize().expect("the context works");
    values(&target) != [19; LEN]
}

/// Proves that the tests of this file can fail: the simulator runs streams in an order that exposes a missing wait.
#[test]
fn missing_wait_between_streams_shows_for_some_seed() {
    if looks_for_races() {
        return;
    }
    let mut wrong = 0;
    for seed in 0..SEEDS {
        on_simulator(Config::new().with_seed(seed), |test, simulator| {
            wrong += u64::from(unordered_copy_misses_the_write(test, simulator));
        });
    }
    assert!(
        wrong > 0 || curium_tests::uses_cuda() || cfg!(miri),
        "none of {SEEDS} schedules exposed the missing wait"
    );
}

#[test]
fn buffer_of_another_device_is_waited_for_as_well() {
    on_simulator(Config::new().with_devices(2), |test, _| {
        let first = test.stream();
        let second = test
            .driver()
            .device(1)
            .and_then(|device| device.primary_context()?.stream());
        let second = second.expect("a stream can be created on the second device");
        let mut source = buffer(&first, 1);
        let gate = Gate::on(&first);
        fill(&first, &mut source, 2).expect("the buffer can be filled");
        let mut target = buffer(&second, 0);
        target
            .copy_from_device(&source)
            .expect("the lengths are equal");
        assert!(is_held_up(&second), "the reader did not wait");
        gate.open();
        assert_eq!(values(&target), [2; LEN]);
    });
}

#[test]
fn event_of_a_sync_point_does_not_block_the_stream_it_is_recorded_on() {
    on_driver(|test| {
        let [owner, reader] = streams(test);
        let (source, mut target) = (buffer(&owner, 1), buffer(&reader, 0));
        let gate = Gate::on(&reader);
        copy(&reader, &mut target, &source).expect("the buffer can be copied");
        let done = Event::new(owner.context(), EventFlags::DISABLE_TIMING)
            .expect("an event can be created");
        done.record(&owner).expect("an event can be recorded");
        done.synchronize()
            .expect("a concurrent read does not block the owner's stream");
        gate.open();
    });
}

/// Returns the number of event waits that `operation` enqueues.
fn waits(simulator: &Simulator, operation: impl FnOnce()) -> u64 {
    let before = simulator.calls(Function::cuStreamWaitEvent);
    operation();
    simulator.calls(Function::cuStreamWaitEvent) - before
}
