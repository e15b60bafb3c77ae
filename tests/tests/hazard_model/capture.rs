//! Hazard tracking and captures: an event that only one of the two sides captures would invalidate the capture.

use curium_driver::Stream;
use curium_driver::hazard::Accesses;
use curium_tests::guard;

use super::driver::{RecordingDriver, index};

/// Returns memory that was written on one stream, and another stream that is about to read it.
fn written(driver: &RecordingDriver) -> (Accesses, Stream, Stream) {
    driver.clear();
    let writer = driver.stream();
    let reader = driver.stream();
    (Accesses::allocated(&writer), writer, reader)
}

/// A stream that is being captured does not wait for pending work outside the capture.
#[test]
fn captured_stream_waits_for_no_pending_outside_work() {
    let driver = RecordingDriver::new();
    let (accesses, _writer, reader) = written(&driver);
    driver.set_capture(&reader, 7);
    driver.set_busy(true);
    let error = accesses
        .before_read(&mut guard(&reader))
        .expect_err("the wait would invalidate the capture");
    assert!(
        error.function().is_none()
            && error
                .to_string()
                .contains("pending work outside the capture"),
        "{error}"
    );
    assert_eq!(driver.take_waits().0, [], "no stream waits");
    driver.set_busy(false);
    accesses
        .before_read(&mut guard(&reader))
        .expect("the work has completed");
    assert_eq!(driver.take_waits().0, [], "no stream needs to wait");
    accesses
        .before_read(&mut guard(&reader))
        .expect("the work has completed");
    assert_eq!(
        driver.take_waits(),
        (vec![], 0),
        "the work is known to have completed"
    );
}

#[test]
fn stream_does_not_wait_for_work_that_is_captured() {
    let driver = RecordingDriver::new();
    let (accesses, writer, reader) = written(&driver);
    driver.set_capture(&writer, 7);
    for capture in [0, 8] {
        driver.set_capture(&reader, capture);
        let error = accesses
            .before_read(&mut guard(&reader))
            .expect_err("the wait would add the stream to the capture");
        assert!(
            error.function().is_none()
                && error
                    .to_string()
                    .contains("being captured into another graph"),
            "{error}"
        );
        assert_eq!(driver.take_waits(), (vec![], 0), "no event is touched");
    }
}

#[test]
fn streams_wait_in_a_capture_and_again_outside() {
    let driver = RecordingDriver::new();
    let (accesses, writer, reader) = written(&driver);
    let wait = (index(reader.as_raw()), index(writer.as_raw()));
    driver.set_capture(&writer, 7);
    driver.set_capture(&reader, 7);
    accesses
        .before_read(&mut guard(&reader))
        .expect("both are in one capture");
    assert_eq!(driver.take_waits(), (vec![wait], 1));
    driver.set_capture(&writer, 0);
    driver.set_capture(&reader, 0);
    accesses
        .before_read(&mut guard(&reader))
        .expect("neither is in a capture");
    assert_eq!(
        driver.take_waits(),
        (vec![wait], 1),
        "captured work did not make the stream wait"
    );
}

#[test]
fn wait_that_was_only_captured_forgets_no_reader() {
    let driver = RecordingDriver::new();
    let (mut accesses, writer, reader) = written(&driver);
    accesses
        .before_read(&mut guard(&reader))
        .expect("nothing fails");
    accesses.after_read(&mut guard(&reader));
    driver.take_waits();
    let wait = (index(writer.as_raw()), index(reader.as_raw()));
    [&writer, &reader]
        .into_iter()
        .for_each(|stream| driver.set_capture(stream, 7));
    accesses
        .before_write(&mut guard(&writer))
        .expect("both are in one capture");
    accesses.after_write(&mut guard(&writer));
    assert_eq!(driver.take_waits(), (vec![wait], 1));
    [&writer, &reader]
        .into_iter()
        .for_each(|stream| driver.set_capture(stream, 0));
    accesses
        .before_write(&mut guard(&writer))
        .expect("neither is in a capture");
    assert_eq!(
        driver.take_waits(),
        (vec![wait], 1),
        "the stream itself has not waited for the reader"
    );
}

#[test]
fn write_that_was_only_captured_forgets_no_reader() {
    let driver = RecordingDriver::new();
    let (mut accesses, writer, reader) = written(&driver);
    let third = driver.stream();
    accesses
        .before_read(&mut guard(&reader))
        .expect("nothing fails");
    accesses.after_read(&mut guard(&reader));
    let streams = [&writer, &reader, &third];
    streams
        .into_iter()
        .for_each(|stream| driver.set_capture(stream, 7));
    accesses
        .before_write(&mut guard(&third))
        .expect("all are in one capture");
    accesses.after_write(&mut guard(&third));
    streams
        .into_iter()
        .for_each(|stream| driver.set_capture(stream, 0));
    driver.take_waits();
    accesses
        .before_write(&mut guard(&writer))
        .expect("none is in a capture");
    let (waits, _) = driver.take_waits();
    assert!(
        waits.contains(&(index(writer.as_raw()), index(reader.as_raw()))),
        "{waits:?} has the reader"
    );
}
