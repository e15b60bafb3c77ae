//! Constructors and `clone` of every kind of buffer.

use curium_driver::{Error, Function};
use curium_memory::{
    DeviceBuffer, DeviceVec, LimitedResource, MappedBuffer, PinnedBuffer, PinnedFlags,
    PitchedBuffer, StreamOrdered, UnifiedBuffer,
};
use curium_tests::{Gate, TestDriver, TestResult, driver_test};

const LEN: usize = 100;

#[driver_test]
fn every_filled_buffer_holds_the_value(test: &TestDriver) -> TestResult {
    let context = test.context();
    let stream = test.stream();
    let value = [3_u32, 9];
    let device = DeviceBuffer::filled(&stream, LEN, value)?;
    assert_eq!(device.to_vec()?, [value; LEN]);
    let pinned = PinnedBuffer::filled(&context, LEN, value, PinnedFlags::empty())?;
    assert_eq!(pinned[..], [value; LEN]);
    let mapped = MappedBuffer::filled(&stream, LEN, value)?;
    assert_eq!(mapped.host_view()?[..], [value; LEN]);
    let unified = UnifiedBuffer::filled(&stream, LEN, value)?;
    assert_eq!(unified.to_vec()?, [value; LEN]);
    let pitched = PitchedBuffer::filled(&stream, 3, 5, value)?;
    assert!(
        pitched
            .rows()
            .all(|row| row.to_vec().expect("the work ends") == [value; 3])
    );
    Ok(())
}

#[driver_test]
fn clone_holds_the_elements_and_is_independent(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let values: Vec<u32> = (0..LEN as u32).collect();
    let mut device = DeviceBuffer::from_slice(&stream, &values)?;
    let clone = device.try_clone()?;
    device.zero()?;
    assert_eq!(clone.to_vec()?, values);
    let mut unified = UnifiedBuffer::from_slice(&stream, &values)?;
    let clone = unified.try_clone()?;
    unified.zero()?;
    assert_eq!(clone.to_vec()?, values);
    let mut vector = DeviceVec::from_slice(&stream, &values)?;
    let clone = vector.try_clone()?;
    vector.push(7)?;
    assert_eq!(
        (clone.to_vec()?, clone.max_len()),
        (values.clone(), vector.max_len())
    );
    let empty = DeviceVec::<u32>::with_max_len(&stream, 10).and_then(|empty| empty.try_clone());
    assert!(empty?.is_empty());
    let mut pitched = PitchedBuffer::from_slice(&stream, &values, 20, 5)?;
    let clone = pitched.try_clone()?;
    pitched.as_pitched_mut().fill(0)?;
    assert_eq!(clone.to_vec()?, values);
    Ok(())
}

/// A clone is ordered after pending writes and does not wait.
#[driver_test]
fn clone_is_ordered_after_pending_writes(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let other = test.stream();
    let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, LEN)?;
    let gate = Gate::on(&other);
    buffer.on_mut(&other).fill(5)?;
    let clone = test.assert_calls(Function::cuStreamSynchronize, 0, || buffer.try_clone())?;
    buffer.fill(6)?;
    gate.open();
    assert_eq!(clone.to_vec()?, [5; LEN]);
    assert_eq!(buffer.to_vec()?, [6; LEN]);
    Ok(())
}

#[driver_test]
fn clone_takes_its_memory_from_the_same_resource(test: &TestDriver) -> TestResult {
    let memory = LimitedResource::new(StreamOrdered, 1500);
    let buffer = DeviceBuffer::from_slice_in(&test.stream(), &[1_u8; 1000], &memory)?;
    let error = buffer
        .try_clone()
        .expect_err("both together exceed the limit");
    assert!(error.is_out_of_memory(), "{error}");
    assert_eq!(memory.used(), 1000);
    Ok(())
}

#[driver_test]
fn mismatched_row_lengths_are_refused(test: &TestDriver) {
    test.assert_calls(Function::cuMemAllocPitch_v2, 0, || {
        let error = PitchedBuffer::from_slice(&test.stream(), &[1_u32; 5], 3, 2)
            .expect_err("one is missing");
        assert!(matches!(error, Error::Argument(_)), "{error}");
        assert!(
            error
                .to_string()
                .starts_with("PitchedBuffer::from_slice: length mismatch"),
            "{error}"
        );
    });
}
