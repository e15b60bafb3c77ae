//! Hazard tracking and captures: an event that only one of the two sides captures would invalidate
//! the capture.

use curium_driver::AsRawStream as _;
use curium_driver::Stream;
use curium_driver::hazard::Accesses;
use curium_tests::{TestResult, begin};

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
fn capture_ignores_outside_work() -> TestResult {
    let driver = RecordingDriver::new();
    let (accesses, _writer, reader) = written(&driver);
    driver.set_capture(&reader, 7);
    driver.set_busy(true);
    let error = accesses
        .before_read(&mut begin(&reader))
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
    accesses.before_read(&mut begin(&reader))?;
    assert_eq!(driver.take_waits().0, [], "no stream needs to wait");
    accesses.before_read(&mut begin(&reader))?;
    assert_eq!(
        driver.take_waits(),
        (vec![], 0),
        "the work is known to have completed"
    );
    Ok(())
}

#[test]
fn captured_work_is_not_awaited() {
    let driver = RecordingDriver::new();
    let (accesses, writer, reader) = written(&driver);
    driver.set_capture(&writer, 7);
    for capture in [0, 8] {
        driver.set_capture(&reader, capture);
        let error = accesses
            .before_read(&mut begin(&reader))
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

/// Streams wait in a capture, and again outside.
#[test]
fn waits_repeat_after_a_capture() -> TestResult {
    let driver = RecordingDriver::new();
    let (accesses, writer, reader) = written(&driver);
    let wait = (index(reader.as_raw()), index(writer.as_raw()));
    driver.set_capture(&writer, 7);
    driver.set_capture(&reader, 7);
    accesses.before_read(&mut begin(&reader))?;
    assert_eq!(driver.take_waits(), (vec![wait], 1));
    driver.set_capture(&writer, 0);
    driver.set_capture(&reader, 0);
    accesses.before_read(&mut begin(&reader))?;
    assert_eq!(
        driver.take_waits(),
        (vec![wait], 1),
        "captured work did not make the stream wait"
    );
    Ok(())
}

#[test]
fn captured_wait_keeps_readers() -> TestResult {
    let driver = RecordingDriver::new();
    let (mut accesses, writer, reader) = written(&driver);
    accesses.before_read(&mut begin(&reader))?;
    accesses.after_read(&mut begin(&reader));
    driver.take_waits();
    let wait = (index(writer.as_raw()), index(reader.as_raw()));
    [&writer, &reader]
        .into_iter()
        .for_each(|stream| driver.set_capture(stream, 7));
    accesses.before_write(&mut begin(&writer))?;
    accesses.after_write(&mut begin(&writer));
    assert_eq!(driver.take_waits(), (vec![wait], 1));
    [&writer, &reader]
        .into_iter()
        .for_each(|stream| driver.set_capture(stream, 0));
    accesses.before_write(&mut begin(&writer))?;
    assert_eq!(
        driver.take_waits(),
        (vec![wait], 1),
        "the stream itself has not waited for the reader"
    );
    Ok(())
}

#[test]
fn captured_write_keeps_readers() -> TestResult {
    let driver = RecordingDriver::new();
    let (mut accesses, writer, reader) = written(&driver);
    let third = driver.stream();
    accesses.before_read(&mut begin(&reader))?;
    accesses.after_read(&mut begin(&reader));
    let streams = [&writer, &reader, &third];
    streams
        .into_iter()
        .for_each(|stream| driver.set_capture(stream, 7));
    accesses.before_write(&mut begin(&third))?;
    accesses.after_write(&mut begin(&third));
    streams
        .into_iter()
        .for_each(|stream| driver.set_capture(stream, 0));
    driver.take_waits();
    accesses.before_write(&mut begin(&writer))?;
    let (waits, _) = driver.take_waits();
    assert!(
        waits.contains(&(index(writer.as_raw()), index(reader.as_raw()))),
        "{waits:?} has the reader"
    );
    Ok(())
}
