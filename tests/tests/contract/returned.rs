//! [`Returned`]: errors that return the value consumed by the failed operation.

use curium_driver::{Error, Function, Returned, Stream};
use curium_memory::{DeviceBuffer, PinnedBuffer, PinnedFlags, copy};
use curium_sim::{Config, Fault};
use curium_sys::CUresult;
use curium_tests::{TestDriver, on_driver, on_simulator};

fn close(stream: Stream) -> Result<(), Error> {
    Ok(stream.close()?)
}

fn upload(
    test: &TestDriver,
    elements: usize,
) -> Result<Vec<u32>, Box<dyn std::error::Error + Send + Sync>> {
    let (stream, context) = (test.stream(), test.context());
    let source = PinnedBuffer::from_slice(&context, &vec![7; elements], PinnedFlags::empty())?;
    let mut target = DeviceBuffer::zeroed(&stream, 3)?;
    let source = copy::upload(&stream, source, &mut target)?.wait()?;
    assert_eq!(source.len(), elements);
    Ok(target.to_vec()?)
}

#[test]
fn question_mark_converts_a_returned_value_into_the_error() {
    on_driver(|test| {
        let stream = test.stream();
        let clone = stream.clone();
        let error = close(stream).expect_err("a clone exists");
        assert_eq!(
            error.to_string(),
            "Stream::close: the stream is still in use"
        );
        close(clone).expect("the other value was dropped");
    });
}

#[test]
fn returned_value_is_an_error_of_any_kind() {
    on_driver(|test| {
        assert_eq!(upload(test, 3).expect("the lengths are equal"), [7; 3]);
        let error = upload(test, 2).expect_err("the lengths differ");
        assert!(
            error
                .downcast_ref::<Returned<PinnedBuffer<u32>>>()
                .is_some(),
            "{error}"
        );
        assert!(error.to_string().starts_with("copy::upload: "), "{error}");
    });
}

#[test]
fn returned_value_has_the_text_of_its_error() {
    on_driver(|test| {
        let stream = test.stream();
        let _clone = stream.clone();
        let returned = stream.close().expect_err("a clone exists");
        assert_eq!(returned.to_string(), returned.error.to_string());
        assert_eq!(format!("{returned:?}"), format!("{:?}", returned.error));
    });
}

#[test]
fn returned_value_can_be_used_again() {
    on_simulator(Config::new(), |test, simulator| {
        let buffer =
            DeviceBuffer::from_slice(&test.stream(), &[1_u32, 2]).expect("memory suffices");
        simulator.inject(
            Fault::on(Function::cuMemFreeAsync).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM),
        );
        let Returned {
            value: buffer,
            error,
        } = buffer.close().expect_err("the injected fault occurs");
        assert_eq!(error.function(), Some(Function::cuMemFreeAsync));
        assert_eq!(buffer.to_vec().expect("the memory is still there"), [1, 2]);
        buffer.close().expect("only the first call failed");
    });
}
