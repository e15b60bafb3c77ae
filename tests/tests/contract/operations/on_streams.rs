//! The operations on a given stream instead of the memory's own, named like those with the suffix `_on`.

use curium_driver::{Result, Stream};
use curium_memory::{
    Array, ArrayFlags, ArrayRegion, ArrayShape, DeviceBox, DeviceVec, Extent, HostPitchedSlice, HostPitchedSliceMut,
    Pitch,
};

use super::virtual_memory::{filled, foreign};
use super::{Fixture, LEN, Made, Operation, made};

const SQUARE: Extent = Extent::new_2d(4, 4);
const TIGHT: Pitch = Pitch::tight::<u32>(SQUARE);
const SHAPE: ArrayShape = ArrayShape::new_2d(4, LEN / 4);

pub(super) const OPERATIONS: &[Operation] = &[
    ("DeviceBuffer::copy_from_slice_on", |fixture| made(fixture.buffer.copy_from_slice_on(&fixture.other, &[4; LEN])?)),
    ("DeviceBuffer::copy_to_slice_on", |fixture| made(fixture.buffer.copy_to_slice_on(&fixture.other, &mut [0; LEN])?)),
    ("DeviceBuffer::to_vec_on", |fixture| made(fixture.buffer.to_vec_on(&fixture.other)?)),
    ("DeviceBuffer::copy_from_device_on", |fixture| {
        made(fixture.target.copy_from_device_on(&fixture.stream, &fixture.buffer)?)
    }),
    ("DeviceSlice::copy_to_slice_on", |fixture| {
        made(fixture.buffer.slice(1..3)?.copy_to_slice_on(&fixture.other, &mut [0; 2])?)
    }),
    ("DeviceSlice::to_vec_on", |fixture| made(fixture.buffer.slice(1..3)?.to_vec_on(&fixture.other)?)),
    ("DeviceSliceMut::copy_from_slice_on", |fixture| {
        made(fixture.buffer.slice_mut(1..3)?.copy_from_slice_on(&fixture.other, &[7, 8])?)
    }),
    ("DeviceSliceMut::copy_to_slice_on", |fixture| {
        made(fixture.buffer.as_slice_mut().copy_to_slice_on(&fixture.other, &mut [0; LEN])?)
    }),
    ("DeviceSliceMut::to_vec_on", |fixture| made(fixture.buffer.as_slice_mut().to_vec_on(&fixture.other)?)),
    ("DeviceBox::get_on", |fixture| {
        let value = DeviceBox::<u32>::zeroed(&fixture.stream)?;
        value.get_on(&fixture.other)?;
        made(value)
    }),
    ("DeviceBox::set_on", |fixture| {
        let mut value = DeviceBox::<u32>::zeroed(&fixture.stream)?;
        value.set_on(&fixture.other, 2)?;
        made(value)
    }),
    ("PitchedSlice::copy_to_host_on", |fixture| {
        let mut values = [0; LEN];
        let grid = fixture.buffer.as_slice().pitched(SQUARE, TIGHT)?;
        made(grid.copy_to_host_on(&fixture.other, &mut HostPitchedSliceMut::new(&mut values, SQUARE, TIGHT)?)?)
    }),
    ("PitchedSliceMut::copy_from_host_on", |fixture| {
        let mut target = fixture.target.as_slice_mut().pitched(SQUARE, TIGHT)?;
        made(target.copy_from_host_on(&fixture.stream, &HostPitchedSlice::new(&[1; LEN], SQUARE, TIGHT)?)?)
    }),
    ("PitchedSliceMut::fill_on", |fixture| {
        made(fixture.target.as_slice_mut().pitched(SQUARE, TIGHT)?.fill_on(&fixture.stream, 4)?)
    }),
    ("DeviceVec::push_on", |fixture| vector(fixture, |vector, stream, _| vector.push_on(stream, 1))),
    ("DeviceVec::extend_from_slice_on", |fixture| {
        vector(fixture, |vector, stream, _| vector.extend_from_slice_on(stream, &[1, 2]))
    }),
    ("DeviceVec::extend_from_device_on", |fixture| {
        vector(fixture, |vector, stream, fixture| vector.extend_from_device_on(stream, &fixture.buffer.slice(..2)?))
    }),
    ("DeviceVec::resize_on", |fixture| vector(fixture, |vector, stream, _| vector.resize_on(stream, LEN, 3))),
    ("DeviceVec::to_vec_on", |fixture| {
        let vector = filled(fixture)?;
        vector.to_vec_on(&fixture.other)?;
        made(vector)
    }),
    ("DeviceVec::copy_from_slice_on", |fixture| {
        let mut vector = filled(fixture)?;
        vector.copy_from_slice_on(&fixture.other, &[1; LEN])?;
        made(vector)
    }),
    ("DeviceVec::copy_to_slice_on", |fixture| {
        let vector = filled(fixture)?;
        vector.copy_to_slice_on(&fixture.other, &mut [0; LEN])?;
        made(vector)
    }),
    ("BorrowedBuffer::to_vec_on", |fixture| {
        let buffer = foreign(fixture)?;
        buffer.to_vec_on(&fixture.other)?;
        made(buffer)
    }),
    ("Array::copy_from_slice_on", |fixture| {
        keep(fixture, |array, stream, _| array.copy_from_slice_on(stream, &[1; LEN]))
    }),
    ("Array::copy_to_slice_on", |fixture| {
        keep(fixture, |array, stream, _| array.copy_to_slice_on(stream, &mut [0; LEN]))
    }),
    ("Array::to_vec_on", |fixture| keep(fixture, |array, stream, _| array.to_vec_on(stream).map(drop))),
    ("Array::copy_region_from_slice_on", |fixture| {
        keep(fixture, |array, stream, _| array.copy_region_from_slice_on(stream, ArrayRegion::whole(SHAPE), &[1; LEN]))
    }),
    ("Array::copy_region_to_slice_on", |fixture| {
        keep(fixture, |array, stream, _| {
            array.copy_region_to_slice_on(stream, ArrayRegion::whole(SHAPE), &mut [0; LEN])
        })
    }),
    ("Array::copy_from_device_on", |fixture| {
        keep(fixture, |array, stream, fixture| {
            array.copy_from_device_on(stream, ArrayRegion::whole(SHAPE), &fixture.buffer)
        })
    }),
    ("Array::copy_to_device_on", |fixture| {
        keep(fixture, |array, stream, fixture| {
            array.copy_to_device_on(stream, ArrayRegion::whole(SHAPE), &mut fixture.target)
        })
    }),
    ("Array::copy_from_array_on", |fixture| {
        let source = array(fixture)?;
        let target = array(fixture)?;
        target.copy_from_array_on(&fixture.other, [0; 3], &source, ArrayRegion::whole(SHAPE))?;
        made((source, target))
    }),
];

fn array(fixture: &Fixture) -> Result<Array<u32>> {
    Array::new(&fixture.stream, SHAPE, ArrayFlags::empty())
}

/// Performs an operation on an array on a stream other than its own.
fn keep(
    fixture: &mut Fixture,
    operation: impl FnOnce(&Array<u32>, &Stream, &mut Fixture) -> Result<()>,
) -> Result<Made> {
    let (array, stream) = (array(fixture)?, fixture.other.clone());
    operation(&array, &stream, fixture)?;
    made(array)
}

/// Performs an operation on an empty vector on a stream other than its own.
fn vector(
    fixture: &mut Fixture,
    operation: impl FnOnce(&mut DeviceVec<u32>, &Stream, &Fixture) -> Result<()>,
) -> Result<Made> {
    let (mut vector, stream) = (DeviceVec::with_max_len(&fixture.stream, LEN)?, fixture.other.clone());
    operation(&mut vector, &stream, fixture)?;
    made(vector)
}
