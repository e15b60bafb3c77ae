//! Constructors and `clone` of every kind of buffer.

use curium_driver::{Error, Function};
use curium_memory::{
    DeviceBuffer, DeviceVec, LimitedResource, MappedBuffer, PinnedBuffer, PinnedFlags,
    PitchedBuffer, StreamOrdered, UnifiedBuffer,
};
use curium_tests::{Gate, on_driver};

const LEN: usize = 100;

#[test]
fn filled_buffer_of_every_kind_holds_the_value() {
    on_driver(|test| {
        let (context, stream) = (test.context(), test.stream());
        let value = [3_u32, 9];
        let device = DeviceBuffer::filled(&stream, LEN, value).expect("memory suffices");
        assert_eq!(device.to_vec().expect("the work ends"), [value; LEN]);
        let pinned = PinnedBuffer::filled(&context, LEN, value, PinnedFlags::empty())
            .expect("memory suffices");
        assert_eq!(pinned[..], [value; LEN]);
        let mapped = MappedBuffer::filled(&stream, LEN, value).expect("memory suffices");
        assert_eq!(
            mapped.host_view().expect("nothing writes")[..],
            [value; LEN]
        );
        let unified = UnifiedBuffer::filled(&stream, LEN, value).expect("memory suffices");
        assert_eq!(
            unified.as_slice().to_vec().expect("the work ends"),
            [value; LEN]
        );
        let pitched = PitchedBuffer::filled(&stream, 3, 5, value).expect("memory suffices");
        assert!(
            pitched
                .rows()
                .all(|row| row.to_vec().expect("the work ends") == [value; 3])
        );
    });
}

#[test]
fn clone_holds_the_elements_and_is_independent() {
    on_driver(|test| {
        let stream = test.stream();
        let values: Vec<u32> = (0..LEN as u32).collect();
        let mut device = DeviceBuffer::from_slice(&stream, &values).expect("memory suffices");
        let clone = device.try_clone().expect("memory suffices");
        device.as_slice_mut().zero().expect("memory can be filled");
        assert_eq!(clone.to_vec().expect("the work ends"), values);
        let mut unified = UnifiedBuffer::from_slice(&stream, &values).expect("memory suffices");
        let clone = unified.try_clone().expect("memory suffices");
        unified.as_slice_mut().zero().expect("memory can be filled");
        assert_eq!(clone.as_slice().to_vec().expect("the work ends"), values);
        let mut vector = DeviceVec::from_slice(&stream, &values).expect("memory suffices");
        let clone = vector.try_clone().expect("memory suffices");
        vector.push(7).expect("memory suffices");
        assert_eq!(
            (clone.to_vec().expect("the work ends"), clone.max_len()),
            (values.clone(), vector.max_len())
        );
        let empty = DeviceVec::<u32>::with_max_len(&stream, 10).and_then(|empty| empty.try_clone());
        assert!(empty.expect("there are addresses").is_empty());
        let mut pitched =
            PitchedBuffer::from_slice(&stream, &values, 20, 5).expect("memory suffices");
        let clone = pitched.try_clone().expect("memory suffices");
        pitched
            .as_pitched_mut()
            .fill(0)
            .expect("memory can be filled");
        let rows: Vec<u32> = clone
            .rows()
            .flat_map(|row| row.to_vec().expect("the work ends"))
            .collect();
        assert_eq!(rows, values);
    });
}

#[test]
fn clone_is_ordered_after_pending_writes_and_does_not_wait() {
    on_driver(|test| {
        let (stream, other) = (test.stream(), test.stream());
        let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, LEN).expect("memory suffices");
        let gate = Gate::on(&other);
        buffer
            .as_slice_mut()
            .fill_on(&other, 5)
            .expect("memory can be filled");
        let clone = test
            .assert_calls(Function::cuStreamSynchronize, 0, || buffer.try_clone())
            .expect("memory suffices");
        buffer.as_slice_mut().fill(6).expect("memory can be filled");
        gate.open();
        assert_eq!(clone.to_vec().expect("the work ends"), [5; LEN]);
        assert_eq!(buffer.to_vec().expect("the work ends"), [6; LEN]);
    });
}

#[test]
fn clone_takes_its_memory_from_the_same_resource() {
    on_driver(|test| {
        let memory = LimitedResource::new(StreamOrdered, 1500);
        let buffer = DeviceBuffer::from_slice_in(&test.stream(), &[1_u8; 1000], &memory)
            .expect("the limit is 1500 bytes");
        let error = buffer
            .try_clone()
            .expect_err("both together exceed the limit");
        assert!(error.is_out_of_memory(), "{error}");
        assert_eq!(memory.used(), 1000);
    });
}

#[test]
fn rows_of_another_number_of_elements_are_refused() {
    on_driver(|test| {
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
    });
}
