//! Buffers on several streams: all required waits are inserted, and no others.

pub(crate) mod accesses;
mod parts;

use curium_driver::{Event, EventFlags, Function, Stream};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, Simulator};
use curium_tests::stream_work::{copy, copy_without_waiting, fill, is_held_up};
use curium_tests::{
    Gate, TestDriver, TestResult, driver_test, looks_for_races, on_driver, on_simulator,
    simulator_test, skip,
};

const LEN: usize = if cfg!(miri) { 8 } else { 256 };

/// The number of schedules to try; Miri is too slow for many.
const SEEDS: u64 = if cfg!(miri) { 2 } else { 60 };

fn streams<const N: usize>(test: &TestDriver) -> [Stream; N] {
    std::array::from_fn(|_| test.stream())
}

fn buffer(stream: &Stream, value: u32) -> DeviceBuffer<u32> {
    DeviceBuffer::from_slice(stream, &[value; LEN]).expect("allocation failed")
}

fn values(buffer: &DeviceBuffer<u32>) -> Vec<u32> {
    buffer.to_vec().expect("read failed")
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

/// Use on one stream makes no event and no context call.
#[simulator_test]
fn single_stream_use_makes_no_event(test: &TestDriver, simulator: &Simulator) -> TestResult {
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
    // The first copy allocates a bounce buffer.
    drop(buffer(&stream, 1));
    let before = watched.map(|function| simulator.calls(function));
    let mut first = buffer(&stream, 1);
    let mut second = DeviceBuffer::zeroed(&stream, LEN)?;
    second.copy_from_device(&first)?;
    copy(&stream, &mut first, &second)?;
    fill(&stream, &mut second, 2)?;
    assert_eq!(
        (values(&first), values(&second)),
        (vec![1; LEN], vec![2; LEN])
    );
    drop((first, second));
    let after = watched.map(|function| simulator.calls(function));
    assert_eq!(before, after, "calls of {watched:?}");
    Ok(())
}

#[driver_test]
fn reader_on_another_stream_waits_for_the_writer(test: &TestDriver) -> TestResult {
    let [first, second] = streams(test);
    let mut source = buffer(&first, 1);
    let mut target = buffer(&second, 0);
    let gate = Gate::on(&first);
    fill(&first, &mut source, 2)?;
    target.copy_from_device(&source)?;
    assert!(is_held_up(&second), "the reader did not wait");
    gate.open();
    assert_eq!(values(&target), [2; LEN]);
    Ok(())
}

/// A writer waits for every reader on every stream.
#[test]
fn writer_waits_for_all_readers() -> TestResult {
    for slow in 0..3 {
        on_driver(|test| -> TestResult {
            let [owner, writer] = streams(test);
            let readers: [Stream; 3] = streams(test);
            let mut source = buffer(&owner, 1);
            let mut targets = readers.each_ref().map(|reader| buffer(reader, 0));
            let gate = Gate::on(&readers[slow]);
            for (reader, target) in readers.iter().zip(&mut targets) {
                copy(reader, target, &source)?;
            }
            fill(&writer, &mut source, 2)?;
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
            Ok(())
        })?;
    }
    Ok(())
}

/// A writer waits for an earlier reader though a later one is done.
#[driver_test]
fn writer_waits_for_every_reader(test: &TestDriver) -> TestResult {
    let [owner, early, late, writer] = streams(test);
    let mut source = buffer(&owner, 1);
    let mut first = buffer(&early, 0);
    let mut second = buffer(&late, 0);
    let gate = Gate::on(&early);
    copy(&early, &mut first, &source)?;
    copy(&late, &mut second, &source)?;
    late.synchronize()?;
    fill(&writer, &mut source, 2)?;
    assert!(
        is_held_up(&writer),
        "the record of the early reader was removed"
    );
    gate.open();
    assert_eq!(
        (values(&first), values(&second)),
        (vec![1; LEN], vec![1; LEN])
    );
    Ok(())
}

#[simulator_test]
fn writer_waits_for_each_reading_stream_once(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let [owner, writer] = streams(test);
    let readers: [Stream; 3] = streams(test);
    let mut source = buffer(&owner, 1);
    let mut targets = readers.each_ref().map(|reader| buffer(reader, 0));
    for _ in 0..4 {
        for (reader, target) in readers.iter().zip(&mut targets) {
            copy(reader, target, &source)?;
        }
    }
    let waits = simulator.calls(Function::cuStreamWaitEvent);
    fill(&writer, &mut source, 2)?;
    // The three readers, and the owner's stream with the last write.
    assert_eq!(simulator.calls(Function::cuStreamWaitEvent) - waits, 4);
    fill(&writer, &mut source, 3)?;
    assert_eq!(
        simulator.calls(Function::cuStreamWaitEvent) - waits,
        4,
        "the second write needs no wait"
    );
    Ok(())
}

#[driver_test]
fn readers_do_not_wait_for_each_other(test: &TestDriver) -> TestResult {
    let [owner, slow, quick] = streams(test);
    let source = buffer(&owner, 1);
    let mut first = buffer(&slow, 0);
    let mut second = buffer(&quick, 0);
    let gate = Gate::on(&slow);
    copy(&slow, &mut first, &source)?;
    copy(&quick, &mut second, &source)?;
    quick.synchronize()?;
    assert!(is_held_up(&slow));
    gate.open();
    slow.synchronize()?;
    Ok(())
}

#[simulator_test]
fn stream_that_has_waited_does_not_wait_again(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let [owner, reader] = streams(test);
    let source = buffer(&owner, 1);
    let mut target = buffer(&reader, 0);
    let waits = || simulator.calls(Function::cuStreamWaitEvent);
    let before = waits();
    copy(&reader, &mut target, &source)?;
    assert_eq!(waits() - before, 1);
    for _ in 0..10 {
        copy(&reader, &mut target, &source)?;
    }
    assert_eq!(waits() - before, 1);
    Ok(())
}

#[driver_test]
fn free_waits_for_every_reader(test: &TestDriver) -> TestResult {
    let [owner, quick, slow] = streams(test);
    let source = buffer(&owner, 1);
    let mut first = buffer(&quick, 0);
    let mut second = buffer(&slow, 0);
    let gate = Gate::on(&slow);
    copy(&slow, &mut second, &source)?;
    copy(&quick, &mut first, &source)?;
    drop(source);
    assert!(
        is_held_up(&owner),
        "the memory was freed before a reader ran"
    );
    gate.open();
    owner.synchronize()?;
    assert_eq!(
        (values(&first), values(&second)),
        (vec![1; LEN], vec![1; LEN])
    );
    Ok(())
}

/// Memory freed while a reader is pending is not reused before the read.
#[driver_test]
fn freed_memory_is_not_reused_before_a_read(test: &TestDriver) -> TestResult {
    let [owner, reader] = streams(test);
    let source = buffer(&owner, 1);
    let mut target = buffer(&reader, 0);
    let gate = Gate::on(&reader);
    copy(&reader, &mut target, &source)?;
    drop(source);
    let mut next = DeviceBuffer::<u32>::uninit(&owner, LEN)?;
    fill(&owner, &mut next, 2)?;
    gate.open();
    assert_eq!(
        (values(&target), values(&next)),
        (vec![1; LEN], vec![2; LEN])
    );
    Ok(())
}

#[driver_test]
fn free_waits_for_a_writer_on_another_stream(test: &TestDriver) -> TestResult {
    let [owner, writer] = streams(test);
    let mut target = buffer(&owner, 1);
    let gate = Gate::on(&writer);
    fill(&writer, &mut target, 2)?;
    drop(target);
    assert!(
        is_held_up(&owner),
        "the memory was freed before a writer ran"
    );
    gate.open();
    owner.synchronize()?;
    Ok(())
}

#[driver_test]
fn buffer_keeps_the_streams_that_use_it(test: &TestDriver) -> TestResult {
    let owner = test.stream();
    let mut target = buffer(&owner, 1);
    let writer = test.stream();
    fill(&writer, &mut target, 2)?;
    drop(writer);
    assert_eq!(values(&target), [2; LEN]);
    Ok(())
}

/// Freeing waits on the host where the stream cannot wait.
#[simulator_test]
fn free_waits_on_the_host_as_a_fallback(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let [owner, reader] = streams(test);
    let source = buffer(&owner, 1);
    let mut target = buffer(&reader, 0);
    copy(&reader, &mut target, &source)?;
    let fault = curium_sim::Fault::on(Function::cuEventRecord).always();
    simulator.inject(fault.returns(curium_sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY));
    source.close()?;
    simulator.clear_faults();
    assert_eq!(values(&target), [1; LEN]);
    Ok(())
}

#[driver_test]
fn buffer_is_read_by_many_threads_at_once(test: &TestDriver) -> TestResult {
    let owner = test.stream();
    let mut source = buffer(&owner, 1);
    for value in 2..6 {
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let stream = test.stream();
                    let mut target = buffer(&stream, 0);
                    copy(&stream, &mut target, &source).expect("copy failed");
                    assert_eq!(values(&target), vec![value - 1; LEN]);
                });
            }
        });
        fill(&test.stream(), &mut source, value)?;
    }
    Ok(())
}

/// Runs a random program of copies and fills on a few buffers and streams, and the same program on
/// the host.
fn run_random_program(test: &TestDriver, seed: u64) {
    let mut dice = Dice(seed);
    let streams: [Stream; 4] = streams(test);
    let mut expected: Vec<u32> = (0..5).collect();
    let mut buffers: Vec<_> = expected
        .iter()
        .map(|value| buffer(&streams[dice.below(4)], *value))
        .collect();
    for step in 100..160 {
        let stream = &streams[dice.below(4)];
        let slot = dice.below(5);
        let from = dice.below(5);
        match dice.below(4) {
            0 => {
                fill(stream, &mut buffers[slot], step).expect("fill failed");
                expected[slot] = step;
            }
            1 => {
                buffers[slot] = buffer(stream, step);
                expected[slot] = step;
            }
            _ if slot != from => {
                let mut target = std::mem::replace(&mut buffers[slot], buffer(stream, 0));
                copy(stream, &mut target, &buffers[from]).expect("copy failed");
                buffers[slot] = target;
                expected[slot] = expected[from];
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

/// Buffers used on several streams without explicit waits hold the results of one stream.
#[test]
fn many_streams_match_one_stream() {
    on_driver(|test| (0..SEEDS / 2).for_each(|seed| run_random_program(test, seed)));
    for seed in 0..SEEDS / 2 {
        on_simulator(Config::new().with_seed(seed).with_workers(1), |test, _| {
            run_random_program(test, seed + 1000);
        });
    }
}

/// Returns `true` if an unsynchronized copy on another stream reads the content from before the
/// write.
fn unordered_copy_misses_the_write(test: &TestDriver, _: &Simulator) -> TestResult<bool> {
    let [first, second, third] = streams(test);
    let mut source = buffer(&first, 1);
    let target = buffer(&second, 0);
    let middle = buffer(&third, 0);
    for value in 2..20 {
        fill(&first, &mut source, value)?;
    }
    // SAFETY: all buffers outlive the work, which is waited for below; the race is the subject of
    // the test.
    unsafe { copy_without_waiting(&third, &middle, &source) }?;
    // SAFETY: all buffers outlive the work, which is waited for below; the race is the subject of
    // the test.
    unsafe { copy_without_waiting(&second, &target, &middle) }?;
    test.context().synchronize()?;
    Ok(values(&target) != [19; LEN])
}

/// Proves that the tests of this file can fail: the simulator runs streams in an order that exposes
/// a missing wait.
#[test]
fn some_seed_shows_a_missing_wait() -> TestResult {
    if looks_for_races() {
        return skip("too slow while the simulator looks for races");
    }
    let mut wrong = 0;
    for seed in 0..SEEDS {
        on_simulator(
            Config::new().with_seed(seed),
            |test, simulator| -> TestResult {
                wrong += u64::from(unordered_copy_misses_the_write(test, simulator)?);
                Ok(())
            },
        )?;
    }
    assert!(
        wrong > 0 || curium_tests::uses_cuda() || cfg!(miri),
        "none of {SEEDS} schedules exposed the missing wait"
    );
    Ok(())
}

#[simulator_test(Config::new().with_devices(2))]
fn peer_buffer_is_waited_for(test: &TestDriver, _: &Simulator) -> TestResult {
    let first = test.stream();
    let second = test
        .driver()
        .device(1)
        .and_then(|device| device.primary_context()?.stream())?;
    let mut source = buffer(&first, 1);
    let gate = Gate::on(&first);
    fill(&first, &mut source, 2)?;
    let mut target = buffer(&second, 0);
    target.copy_from_device(&source)?;
    assert!(is_held_up(&second), "the reader did not wait");
    gate.open();
    assert_eq!(values(&target), [2; LEN]);
    Ok(())
}

/// An event of a sync point does not block the stream it is recorded on.
#[driver_test]
fn sync_point_does_not_block_its_stream(test: &TestDriver) -> TestResult {
    let [owner, reader] = streams(test);
    let source = buffer(&owner, 1);
    let mut target = buffer(&reader, 0);
    let gate = Gate::on(&reader);
    copy(&reader, &mut target, &source)?;
    let done = Event::new(owner.context(), EventFlags::DISABLE_TIMING)?;
    done.record(&owner)?;
    done.synchronize()?;
    gate.open();
    Ok(())
}

/// Returns the number of event waits that `operation` enqueues.
fn waits(simulator: &Simulator, operation: impl FnOnce()) -> u64 {
    let before = simulator.calls(Function::cuStreamWaitEvent);
    operation();
    simulator.calls(Function::cuStreamWaitEvent) - before
}
