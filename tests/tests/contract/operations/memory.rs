//! The operations on views and on memory of all kinds, and all forms of copies.

use curium_driver::hazard::AccessGuard;
use curium_driver::{Argument, AttachMode, DevicePointer, Parameter, Result, Stream};
use curium_memory::copy::{self, CopyBatch, CopyOptions};
use curium_memory::{
    DeviceBox, DeviceBuffer, Extent, HostPitchedSlice, HostPitchedSliceMut, MappedBuffer, MemoryAdvice, MemoryLocation,
    PinnedBuffer, PinnedFlags, Pitch, PitchedBuffer, PitchedSlice, PointerInfo, PointerSharing, RegisterFlags,
    Registered, RegisteredRef, StreamOrdered, UnifiedBuffer, address_range, set_sync_memops, unified,
};

use super::{Fixture, LEN, Made, Operation, boxed, made};

/// The kinds of memory that operations use.
pub(crate) struct Kinds {
    mapped: MappedBuffer<u32>,
    unified: UnifiedBuffer<u32>,
    rows: PitchedBuffer<u32>,
    value: DeviceBox<u32>,
}

impl Kinds {
    pub(super) fn new(stream: &Stream) -> Result<Self> {
        Ok(Self {
            mapped: MappedBuffer::zeroed(stream, LEN)?,
            unified: UnifiedBuffer::zeroed(stream, LEN)?,
            rows: PitchedBuffer::zeroed(stream, 4, 4)?,
            value: DeviceBox::new(stream, 1)?,
        })
    }
}

impl Kinds {
    pub(super) fn mapped_mut(&mut self) -> &mut MappedBuffer<u32> {
        &mut self.mapped
    }

    pub(super) fn unified_mut(&mut self) -> &mut UnifiedBuffer<u32> {
        &mut self.unified
    }
}

const SQUARE: Extent = Extent::new_2d(4, 4);
const TIGHT: Pitch = Pitch::tight::<u32>(SQUARE);

fn pinned(fixture: &Fixture) -> Result<PinnedBuffer<u32>> {
    PinnedBuffer::from_slice(&fixture.context, &[5; LEN], PinnedFlags::empty())
}

/// Binds an argument and records its access, as a launch does.
pub(super) fn pass<P: Parameter>(stream: &Stream, mut argument: impl Argument<P>) -> Result<Made> {
    let mut guard = AccessGuard::new(stream)?;
    // SAFETY: no work is enqueued on the stream, and the argument is not used in between.
    unsafe { argument.bind(&mut guard) }?;
    // SAFETY: the argument was bound to this stream above and has not been used since.
    unsafe { argument.launched(&mut guard) };
    made(())
}

fn square(fixture: &Fixture) -> Result<PitchedSlice<'_, u32>> {
    fixture.buffer.as_slice().pitched(SQUARE, TIGHT)
}

pub(super) const OPERATIONS: &[Operation] = &[
    ("DeviceBuffer::filled", |fixture| made(DeviceBuffer::filled(&fixture.stream, LEN, 3_u32)?)),
    ("DeviceBuffer::uninit_in", |fixture| made(DeviceBuffer::<u32>::uninit_in(&fixture.stream, LEN, StreamOrdered)?)),
    ("DeviceBuffer::zeroed_in", |fixture| made(DeviceBuffer::<u32>::zeroed_in(&fixture.stream, LEN, StreamOrdered)?)),
    ("DeviceBuffer::filled_in", |fixture| {
        made(DeviceBuffer::filled_in(&fixture.stream, LEN, 0x0001_0002_0003_u64, StreamOrdered)?)
    }),
    ("DeviceBuffer::from_slice_in", |fixture| {
        made(DeviceBuffer::from_slice_in(&fixture.stream, &[1_u8; LEN], StreamOrdered)?)
    }),
    ("DeviceBuffer::maybe_uninit", |fixture| made(DeviceBuffer::<bool>::maybe_uninit(&fixture.stream, LEN)?)),
    ("DeviceBuffer::try_clone", |fixture| made(fixture.buffer.try_clone()?)),
    ("DeviceBuffer::maybe_uninit_in", |fixture| {
        made(DeviceBuffer::<bool>::maybe_uninit_in(&fixture.stream, LEN, StreamOrdered)?)
    }),
    ("DeviceBuffer::into_raw and DeviceBuffer::from_raw", |fixture| {
        let buffer = DeviceBuffer::<u32>::zeroed(&fixture.stream, LEN)?;
        let (pointer, resource) = buffer.into_raw()?;
        // SAFETY: the memory was allocated from this resource with this length, and has no other owner.
        made(unsafe { DeviceBuffer::from_raw(&fixture.stream, pointer, LEN, resource) }?)
    }),
    ("DeviceBox::new", |fixture| made(DeviceBox::new(&fixture.stream, 1_u32)?)),
    ("DeviceBox::new_in", |fixture| made(DeviceBox::new_in(&fixture.stream, 1_u32, StreamOrdered)?)),
    ("DeviceBox::zeroed", |fixture| made(DeviceBox::<u32>::zeroed(&fixture.stream)?)),
    ("DeviceBox::get", |fixture| made(fixture.kinds.value.get()?)),
    ("DeviceBox::set", |fixture| made(fixture.kinds.value.set(2)?)),
    ("DeviceBox::bind", |fixture| pass::<&[u32]>(&fixture.other, &fixture.kinds.value)),
    ("DeviceBox::close", |fixture| {
        DeviceBox::<u32>::zeroed(&fixture.stream)?.close().map_err(|returned| returned.error).map(boxed)
    }),
    ("DeviceSlice::copy_to_slice", |fixture| made(fixture.buffer.slice(1..3)?.copy_to_slice(&mut [0; 2])?)),
    ("DeviceSlice::to_vec", |fixture| made(fixture.buffer.slice(1..3)?.to_vec()?)),
    ("DeviceSlice::bind and DeviceSlice::launched", |fixture| {
        pass::<&[u32]>(&fixture.other, fixture.buffer.as_slice())
    }),
    ("DeviceSliceMut::copy_from_slice", |fixture| made(fixture.buffer.slice_mut(1..3)?.copy_from_slice(&[7, 8])?)),
    ("DeviceSliceMut::copy_to_slice", |fixture| made(fixture.buffer.as_slice_mut().copy_to_slice(&mut [0; LEN])?)),
    ("DeviceSliceMut::to_vec", |fixture| made(fixture.buffer.as_slice_mut().to_vec()?)),
    ("DeviceSliceMut::copy_from_device", |fixture| {
        made(fixture.target.as_slice_mut().copy_from_device(&fixture.kinds.unified)?)
    }),
    ("DeviceSliceMut::copy_from_device_on", |fixture| {
        made(fixture.target.as_slice_mut().copy_from_device_on(&fixture.stream, &fixture.buffer)?)
    }),
    ("DeviceSliceMut::copy_from_device_with", |fixture| {
        let options = CopyOptions::new().with_prefer_overlap(true);
        made(fixture.target.as_slice_mut().copy_from_device_with(&fixture.stream, &fixture.buffer, options)?)
    }),
    ("DeviceSliceMut::fill", |fixture| made(fixture.target.as_slice_mut().fill(3)?)),
    ("DeviceSliceMut::fill_on", |fixture| made(fixture.target.as_slice_mut().fill_on(&fixture.stream, 3)?)),
    ("DeviceSliceMut::zero", |fixture| made(fixture.target.as_slice_mut().zero()?)),
    ("DeviceSliceMut::zero_on", |fixture| made(fixture.target.as_slice_mut().zero_on(&fixture.stream)?)),
    ("DeviceSliceMut::bind and DeviceSliceMut::launched", |fixture| {
        pass::<&mut [u32]>(&fixture.other, fixture.buffer.as_slice_mut())
    }),
    ("PitchedSlice::copy_to_host", |fixture| {
        let mut values = [0; LEN];
        made(square(fixture)?.copy_to_host(&mut HostPitchedSliceMut::new(&mut values, SQUARE, TIGHT)?)?)
    }),
    ("PitchedSliceMut::copy_from", |fixture| {
        let mut target = fixture.target.as_slice_mut().pitched(SQUARE, TIGHT)?;
        made(target.copy_from(&fixture.buffer.as_slice().pitched(SQUARE, TIGHT)?)?)
    }),
    ("PitchedSliceMut::copy_from_on", |fixture| {
        let extent = Extent::new_3d(2, 2, 2);
        let pitch = Pitch::tight::<u32>(extent);
        let mut target = fixture.target.as_slice_mut().pitched(extent, pitch)?;
        made(target.copy_from_on(&fixture.stream, &fixture.buffer.as_slice().pitched(extent, pitch)?)?)
    }),
    ("PitchedSliceMut::copy_from_with", |fixture| {
        let options = CopyOptions::new().with_prefer_overlap(true);
        let mut target = fixture.target.as_slice_mut().pitched(SQUARE, TIGHT)?;
        made(target.copy_from_with(&fixture.stream, &fixture.buffer.as_slice().pitched(SQUARE, TIGHT)?, options)?)
    }),
    ("PitchedSliceMut::copy_from_host", |fixture| {
        let mut target = fixture.target.as_slice_mut().pitched(SQUARE, TIGHT)?;
        made(target.copy_from_host(&HostPitchedSlice::new(&[1; LEN], SQUARE, TIGHT)?)?)
    }),
    ("PitchedSliceMut::fill", |fixture| made(fixture.target.as_slice_mut().pitched(SQUARE, TIGHT)?.fill(4)?)),
    ("pending::upload", |fixture| {
        let pinned = pinned(fixture)?;
        copy::upload(&fixture.other, pinned, &mut fixture.buffer).map_err(|returned| returned.error).map(boxed)
    }),
    ("pending::download", |fixture| {
        let pinned = pinned(fixture)?;
        copy::download(&fixture.other, &fixture.buffer, pinned).map_err(|returned| returned.error).map(boxed)
    }),
    ("scope::copy_scope and CopyScope::upload and CopyScope::download", |fixture| {
        let (source, mut target) = ([1; LEN], [0; LEN]);
        made(copy::copy_scope(&fixture.other, |scope| {
            scope.upload(&source, &mut fixture.buffer)?;
            scope.download(&fixture.buffer, &mut target)
        })?)
    }),
    ("CopyBatch::enqueue", |fixture| {
        let (low, high) = fixture.target.as_slice_mut().split_at(LEN / 2)?;
        let (extent, pitch) = (Extent::new_2d(2, 2), Pitch::from_row_len::<u32>(3));
        let batch = CopyBatch::new().copy(low, fixture.buffer.slice(..LEN / 2)?)?;
        let batch =
            batch.copy_pitched(high.pitched(extent, pitch)?, fixture.buffer.as_slice().pitched(extent, pitch)?)?;
        made(batch.enqueue(&fixture.stream)?)
    }),
    ("MappedBuffer::zeroed", |fixture| made(MappedBuffer::<u32>::zeroed(&fixture.stream, LEN)?)),
    ("MappedBuffer::filled", |fixture| made(MappedBuffer::filled(&fixture.stream, LEN, 7_u32)?)),
    ("MappedBuffer::from_slice", |fixture| made(MappedBuffer::from_slice(&fixture.stream, &[1_u32; LEN])?)),
    ("MappedBuffer::bind", |fixture| pass::<&mut [u32]>(&fixture.other, &mut fixture.kinds.mapped)),
    ("Registered::new and Registered::device_pointer and Registered::close", |fixture| {
        let mut values = [1_u32; LEN];
        // SAFETY: the value is closed or dropped before the slice ends.
        let mut registered = unsafe { Registered::new(&fixture.context, &mut values, RegisterFlags::DEVICE_MAP) }?;
        let pointer = registered.device_pointer();
        registered.close()?;
        made(pointer?)
    }),
    ("RegisteredRef::new and RegisteredRef::close", |fixture| {
        let values = [1_u32; LEN];
        // SAFETY: the value is closed or dropped before the slice ends.
        let registered = unsafe { RegisteredRef::new(&fixture.context, &values, RegisterFlags::empty()) }?;
        registered.close().map_err(|returned| returned.error).map(boxed)
    }),
    ("UnifiedBuffer::zeroed", |fixture| made(UnifiedBuffer::<u32>::zeroed(&fixture.stream, LEN)?)),
    ("UnifiedBuffer::filled", |fixture| made(UnifiedBuffer::filled(&fixture.stream, LEN, 7_u32)?)),
    ("UnifiedBuffer::try_clone", |fixture| made(fixture.kinds.unified.try_clone()?)),
    ("UnifiedBuffer::uninit", |fixture| made(UnifiedBuffer::<u32>::uninit(&fixture.stream, LEN)?)),
    ("UnifiedBuffer::from_slice", |fixture| made(UnifiedBuffer::from_slice(&fixture.stream, &[1_u32; LEN])?)),
    ("UnifiedBuffer::host_view", |fixture| made(fixture.kinds.unified.host_view()?.len())),
    ("UnifiedBuffer::host_view_mut", |fixture| made(fixture.kinds.unified.host_view_mut()?.len())),
    ("UnifiedBuffer::bind", |fixture| pass::<&mut [u32]>(&fixture.other, &mut fixture.kinds.unified)),
    ("UnifiedBuffer::attach", |fixture| {
        // SAFETY: every stream may access the memory, as before.
        made(unsafe { fixture.kinds.unified.attach(&fixture.stream, AttachMode::Global) }?)
    }),
    ("UnifiedBuffer::prefetch", |fixture| {
        made(fixture.kinds.unified.prefetch(&fixture.stream, .., MemoryLocation::Host)?)
    }),
    ("UnifiedBuffer::advise", |fixture| made(fixture.kinds.unified.advise(.., MemoryAdvice::ReadMostly)?)),
    ("UnifiedBuffer::range_attributes", |fixture| made(fixture.kinds.unified.range_attributes(..)?)),
    ("UnifiedBuffer::close", |fixture| {
        let buffer = UnifiedBuffer::<u32>::uninit(&fixture.stream, LEN)?;
        buffer.close().map_err(|returned| returned.error).map(boxed)
    }),
    ("batch::prefetch", |fixture| {
        let location = MemoryLocation::from(&fixture.device);
        made(unified::prefetch(&fixture.stream, &[(fixture.kinds.unified.as_slice(), location)])?)
    }),
    ("batch::discard", |fixture| made(unified::discard(&fixture.stream, &mut [fixture.kinds.unified.as_slice_mut()])?)),
    ("batch::discard_and_prefetch", |fixture| {
        let location = MemoryLocation::from(&fixture.device);
        let ranges = &mut [(fixture.kinds.unified.as_slice_mut(), location)];
        made(unified::discard_and_prefetch(&fixture.stream, ranges)?)
    }),
    ("PitchedBuffer::zeroed", |fixture| made(PitchedBuffer::<u32>::zeroed(&fixture.stream, 3, 3)?)),
    ("PitchedBuffer::filled", |fixture| made(PitchedBuffer::filled(&fixture.stream, 3, 3, 7_u32)?)),
    ("PitchedBuffer::from_slice", |fixture| made(PitchedBuffer::from_slice(&fixture.stream, &[7_u32; 9], 3, 3)?)),
    ("PitchedBuffer::try_clone", |fixture| made(fixture.kinds.rows.try_clone()?)),
    ("PitchedBuffer::uninit", |fixture| made(PitchedBuffer::<u32>::uninit(&fixture.stream, 3, 3)?)),
    ("PitchedBuffer::bind", |fixture| pass::<&mut [u32]>(&fixture.other, &mut fixture.kinds.rows)),
    ("PitchedBuffer::close", |fixture| {
        let rows = PitchedBuffer::<u32>::uninit(&fixture.stream, 3, 3)?;
        rows.close().map_err(|returned| returned.error).map(boxed)
    }),
    ("PointerInfo::of", |fixture| made(PointerInfo::of(&fixture.driver, fixture.buffer.as_pointer())?)),
    ("PointerSharing::of", |fixture| made(PointerSharing::of(&fixture.context, fixture.buffer.as_pointer())?)),
    ("pointer_info::address_range", |fixture| made(address_range(&fixture.context, fixture.buffer.as_pointer())?)),
    ("pointer_info::set_sync_memops", |fixture| {
        made(set_sync_memops(&fixture.driver, fixture.kinds.rows.as_pointer(), false)?)
    }),
    ("PinnedBuffer::filled", |fixture| made(PinnedBuffer::filled(&fixture.context, LEN, 7_u32, PinnedFlags::empty())?)),
    #[cfg(target_os = "linux")]
    ("PinnedBuffer::zeroed_on_node", |fixture| {
        let pinned = PinnedBuffer::<u32>::zeroed_on_node(&fixture.context, LEN, 0)?;
        pinned.close().map_err(|returned| returned.error).map(boxed)
    }),
    ("PinnedBuffer::flags", |fixture| made(fixture.values.flags()?)),
    ("pointer_info::address_range, of nothing", |fixture| {
        made(address_range(&fixture.context, DevicePointer::<u8>::from_raw(8))?)
    }),
];

/// The operations that wait for an owned copy.
pub(super) const PENDING: &[Operation] = &[
    ("Pending::wait", |fixture| {
        let pinned = pinned(fixture)?;
        let pending = copy::upload(&fixture.other, pinned, &mut fixture.buffer)?;
        pending.wait().map_err(|returned| returned.error).map(boxed)
    }),
    ("Pending::is_finished", |fixture| {
        let pinned = pinned(fixture)?;
        let pending = copy::upload(&fixture.other, pinned, &mut fixture.buffer)?;
        let finished = pending.is_finished();
        pending.wait()?;
        made(finished?)
    }),
];
