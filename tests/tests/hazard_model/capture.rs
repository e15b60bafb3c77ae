//! Hazard tracking and captures: an event that only one of the two sides captures would invalidate the capture.

use curium_driver::Stream;
use curium_driver::hazard::Accesses;
use curium_tests::guard;

use super::driver::{Notes, index};

/// Returns memory that was written on one stream, and another stream that is about to read it.
fn written(notes: &Notes) -> (Accesses, Stream, Stream) {
    notes.clear();
    let (writer, reader) = (notes.stream(), notes.stream());
    (Accesses::allocated(&writer), writer, reader)
}

#[test]
fn captured_stream_does_not_wait_for_work_from_outside_that_is_not_done() {
    let notes = Notes::new();
    let (accesses, _writer, reader) = written(&notes);
    notes.set_capture(&reader, 7);
    notes.set_busy(true);
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
    assert_eq!(notes.take_waits().0, [], "no stream waits");
    notes.set_busy(false);
    accesses
        .before_read(&mut guard(&reader))
        .expect("the work has completed");
    assert_eq!(notes.take_waits().0, [], "no stream needs to wait");
    accesses
        .before_read(&mut guard(&reader))
        .expect("the work has completed");
    assert_eq!(
        notes.take_waits(),
        (vec![], 0),
        "the work is known to have completed"
    );
}

#[test]
fn stream_does_not_wait_for_work_that_is_captured() {
    let notes = Notes::new();
    let (accesses, writer, reader) = written(&notes);
    notes.set_capture(&writer, 7);
    for capture in [0, 8] {
        notes.set_capture(&reader, capture);
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
        assert_eq!(notes.take_waits(), (vec![], 0), "no event is touched");
    }
}

#[test]
fn streams_of_one_capture_wait_for_each_other_there_and_again_outside() {
    let notes = Notes::new();
    let (accesses, writer, reader) = written(&notes);
    let wait = (index(reader.as_raw()), index(writer.as_raw()));
    notes.set_capture(&writer, 7);
    notes.set_capture(&reader, 7);
    accesses
        .before_read(&mut guard(&reader))
        .expect("both are in one capture");
    assert_eq!(notes.take_waits(), (vec![wait], 1));
    notes.set_capture(&writer, 0);
    notes.set_capture(&reader, 0);
    accesses
        .before_read(&mut guard(&reader))
        .expect("neither is in a capture");
    assert_eq!(
        notes.take_waits(),
        (vec![wait], 1),
        "captured work did not make the stream wait"
    );
}

#[test]
fn wait_that_was_only_captured_forgets_no_reader() {
    let notes = Notes::new();
    let (mut accesses, writer, reader) = written(&notes);
    accesses
        .before_read(&mut guard(&reader))
        .expect("nothing fails");
    accesses.after_read(&mut guard(&reader));
    notes.take_waits();
    let wait = (index(writer.as_raw()), index(reader.as_raw()));
    [&writer, &reader]
        .into_iter()
        .for_each(|stream| notes.set_capture(stream, 7));
    accesses
        .before_write(&mut guard(&writer))
        .expect("both are in one capture");
    accesses.after_write(&mut guard(&writer));
    assert_eq!(notes.take_waits(), (vec![wait], 1));
    [&writer, &reader]
        .into_iter()
        .for_each(|stream| notes.set_capture(stream, 0));
    accesses
        .before_write(&mut guard(&writer))
        .expect("neither is in a capture");
    assert_eq!(
        notes.take_waits(),
        (vec![wait], 1),
        "the stream itself has not waited for the reader"
    );
}

#[test]
fn write_that_was_only_captured_forgets_no_reader() {
    let notes = Notes::new();
    let (mut accesses, writer, reader) = written(&notes);
    let third = notes.stream();
    accesses
        .before_read(&mut guard(&reader))
        .expect("nothing fails");
    accesses.after_read(&mut guard(&reader));
    let streams = [&writer, &reader, &third];
    streams
        .into_iter()
        .for_each(|stream| notes.set_capture(stream, 7));
    accesses
        .before_write(&mut guard(&third))
        .expect("all are in one capture");
    accesses.after_write(&mut guard(&third));
    streams
        .into_iter()
        .for_each(|stream| notes.set_capture(stream, 0));
    notes.take_waits();
    accesses
        .before_write(&mut guard(&writer))
        .expect("none is in a capture");
    let (waits, _) = notes.take_waits();
    assert!(
        waits.contains(&(index(writer.as_raw()), index(reader.as_raw()))),
        "{waits:?} has the reader"
    );
}
