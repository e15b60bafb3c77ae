//! Disjoint borrows of one allocation.

use curium_driver::Function;
use curium_driver::hazard::Accesses;
use curium_memory::copy::copy_scope;
use curium_memory::{DeviceBuffer, PinnedBuffer, PinnedFlags};
use curium_sim::Simulator;
use curium_tests::{TestDriver, TestResult, begin, driver_test, simulator_test};

use super::{streams, waits};

/// Writes of parts on several streams are all waited for once.
#[simulator_test]
fn slice_writes_are_waited_for_once_each(test: &TestDriver, simulator: &Simulator) {
    let [own, left, right, reader] = streams(test);
    let accesses = Accesses::allocated(&own);
    accesses.after_partial_write(&mut begin(&left));
    accesses.after_partial_write(&mut begin(&right));
    accesses.after_read(&mut begin(&left));
    let read = || {
        accesses
            .before_read(&mut begin(&reader))
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
            .before_read(&mut begin(&own))
            .expect("the stream can wait");
    };
    assert_eq!(waits(simulator, read_on_own), 2, "both writes");
}

/// A stream of the last write covers the work it has waited for.
#[simulator_test]
fn last_writer_covers_its_own_waits(test: &TestDriver, simulator: &Simulator) {
    let [own, other, late] = streams(test);
    let mut accesses = Accesses::allocated(&own);
    accesses.after_read(&mut begin(&other));
    accesses.after_partial_write(&mut begin(&other));
    let write = |accesses: &Accesses, stream| {
        accesses
            .before_write(&mut begin(stream))
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
    accesses.after_write(&mut begin(&own));
    assert_eq!(
        waits(simulator, || write(&accesses, &late)),
        1,
        "the stream of the write"
    );
}

#[simulator_test]
fn part_written_after_a_wait_is_waited_for_again(test: &TestDriver, simulator: &Simulator) {
    let [own, other] = streams(test);
    let accesses = Accesses::allocated(&own);
    let write = || {
        accesses
            .before_write(&mut begin(&own))
            .expect("the stream can wait");
    };
    accesses.after_partial_write(&mut begin(&other));
    assert_eq!(waits(simulator, write), 1);
    accesses.after_partial_write(&mut begin(&other));
    assert_eq!(
        waits(simulator, write),
        1,
        "the second write was enqueued after the first wait"
    );
    accesses.after_read(&mut begin(&other));
    assert_eq!(waits(simulator, write), 1, "so did the read");
}

/// A write on another stream waits for a download of a scope.
#[driver_test]
fn write_waits_for_a_scoped_download(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let other = test.stream();
    let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, 64)?;
    let mut seen = PinnedBuffer::from_slice(&test.context(), &[0_u32; 64], PinnedFlags::empty())?;
    // The other stream has waited for the first from here on.
    buffer.on_mut(&other).fill(3)?;
    copy_scope(&stream, |scope| {
        scope.download(&buffer, &mut seen)?;
        test.assert_calls(Function::cuStreamWaitEvent, 1, || {
            buffer.on_mut(&other).fill(9)
        })
    })?;
    assert_eq!(&*seen, [3; 64]);
    Ok(())
}
