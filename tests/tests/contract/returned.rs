//! [`Returned`]: errors that return the value consumed by the failed operation.

use curium_driver::{Error, Function, Returned, Stream};
use curium_memory::{DeviceBuffer, PinnedBuffer, PinnedFlags, copy};
use curium_sim::{Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{TestDriver, TestResult, driver_test, simulator_test};

fn close(stream: Stream) -> Result<(), Error> {
    Ok(stream.close()?)
}

fn upload(
    test: &TestDriver,
    elements: usize,
) -> Result<Vec<u32>, Box<dyn std::error::Error + Send + Sync>> {
    let stream = test.stream();
    let context = test.context();
    let source = PinnedBuffer::from_slice(&context, &vec![7; elements], PinnedFlags::empty())?;
    let mut target = DeviceBuffer::zeroed(&stream, 3)?;
    let source = copy::upload(&stream, source, &mut target)?.wait()?;
    assert_eq!(source.len(), elements);
    Ok(target.to_vec()?)
}

/// The question mark operator converts a returned value into the error.
#[driver_test]
fn question_mark_converts_returned_values(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let clone = stream.clone();
    let error = close(stream).expect_err("a clone exists");
    assert_eq!(
        error.to_string(),
        "Stream::close: the stream is still in use"
    );
    close(clone)?;
    Ok(())
}

#[driver_test]
fn returned_value_converts_to_any_error(test: &TestDriver) -> TestResult {
    assert_eq!(upload(test, 3)?, [7; 3]);
    let error = upload(test, 2).expect_err("the lengths differ");
    assert!(
        error
            .downcast_ref::<Returned<PinnedBuffer<u32>>>()
            .is_some(),
        "{error}"
    );
    assert!(error.to_string().starts_with("copy::upload: "), "{error}");
    Ok(())
}

#[driver_test]
fn returned_value_displays_its_error(test: &TestDriver) {
    let stream = test.stream();
    let _clone = stream.clone();
    let returned = stream.close().expect_err("a clone exists");
    assert_eq!(returned.to_string(), returned.error.to_string());
    assert_eq!(format!("{returned:?}"), format!("{:?}", returned.error));
}

#[simulator_test]
fn returned_value_can_be_used_again(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let buffer = DeviceBuffer::from_slice(&test.stream(), &[1_u32, 2])?;
    simulator
        .inject(Fault::on(Function::cuMemFreeAsync).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM));
    let Returned {
        value: buffer,
        error,
    } = buffer.close().expect_err("the injected fault occurs");
    assert_eq!(error.function(), Some(Function::cuMemFreeAsync));
    assert_eq!(buffer.to_vec()?, [1, 2]);
    buffer.close()?;
    Ok(())
}
