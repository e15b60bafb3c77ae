//! Disjoint borrows of one allocation.

use curium_driver::Function;
use curium_driver::hazard::Accesses;
use curium_memory::copy::copy_scope;
use curium_memory::{DeviceBuffer, PinnedBuffer, PinnedFlags};
use curium_sim::Config;
use curium_tests::{guard, on_driver, on_simulator};

use super::{streams, waits};

#[test]
fn writes_of_parts_on_several_streams_are_all_waited_for_once() {
    on_simulator(Config::new(), |test, simulator| {
        let [own, left, right, reader] = streams(test);
        let accesses = Accesses::allocated(&own);
        accesses.after_partial_write(&mut guard(&left));
        accesses.after_partial_write(&mut guard(&right));
        accesses.after_read(&mut guard(&left));
        let read = || {
            accesses
                .before_read(&mut guard(&reader))
                .expect("the stream can wait");
        };
        assert_eq!(waits(simulator, read), 3, "the allocation and both writes");
        assert_eq!(
            waits(simulator, read),
            0,
            "every access has been waited for"
        );
        let read_on_own = || {
            accesses
                .before_read(&mut guard(&own))
                .expect("the stream can wait");
        };
        assert_eq!(waits(simulator, read_on_own), 2, "both writes");
    });
}

#[test]
fn stream_of_the_last_write_covers_the_work_it_has_waited_for() {
    on_simulator(Config::new(), |test, simulator| {
        let [own, other, late] = streams(test);
        let mut accesses = Accesses::allocated(&own);
        accesses.after_read(&mut guard(&other));
        accesses.after_partial_write(&mut guard(&other));
        let write = |accesses: &Accesses, stream| {
            accesses
                .before_write(&mut guard(stream))
                .expect("the stream can wait");
        };
        assert_eq!(
            waits(simulator, || write(&accesses, &own)),
            1,
            "the uses on the other stream"
        );
        assert_eq!(
            waits(simulator, || write(&accesses, &own)),
            0,
            "they are forgotten"
        );
        accesses.after_write(&mut guard(&own));
        assert_eq!(
            waits(simulator, || write(&accesses, &late)),
            1,
            "the stream of the write"
        );
    });
}

#[test]
fn part_written_after_a_wait_is_waited_for_again() {
    on_simulator(Config::new(), |test, simulator| {
        let [own, other] = streams(test);
        let accesses = Accesses::allocated(&own);
        let write = || {
            accesses
                .before_write(&mut guard(&own))
                .expect("the stream can wait");
        };
        accesses.after_partial_write(&mut guard(&other));
        assert_eq!(waits(simulator, write), 1);
        accesses.after_partial_write(&mut guard(&other));
        assert_eq!(
            waits(simulator, write),
            1,
            "the second write was enqueued after the first wait"
        );
        accesses.after_read(&mut guard(&other));
        assert_eq!(waits(simulator, write), 1, "so did the read");
    });
}

#[test]
fn write_on_another_stream_waits_for_a_download_of_a_scope() {
    on_driver(|test| {
        let (stream, other) = (test.stream(), test.stream());
        let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, 64).expect("memory suffices");
        let mut seen =
            PinnedBuffer::from_slice(&test.context(), &[0_u32; 64], PinnedFlags::empty())
                .expect("memory");
        // The other stream has waited for the first from here on.
        buffer
            .as_slice_mut()
            .fill_on(&other, 3)
            .expect("the buffer can be filled");
        copy_scope(&stream, |scope| {
            scope.download(&buffer, &mut seen)?;
            test.assert_calls(Function::cuStreamWaitEvent, 1, || {
                buffer.as_slice_mut().fill_on(&other, 9)
            })
        })
        .expect("the copy ends");
        assert_eq!(&*seen, [3; 64]);
    });
}
