//! An allocation of any kind.

use curium_driver::Stream;
use curium_memory::{
    CachingResource, DeviceBuffer, DeviceVec, DeviceView, DeviceViewMut, HostView, HostViewMut,
    MappedBuffer, PitchedBuffer, SyncAlloc, UnifiedBuffer,
};

use curium_tests::TestResult;

use super::{Dice, LEN};

/// An allocation of [`LEN`] elements.
pub(super) enum Memory {
    Pooled(DeviceBuffer<u32>),
    SyncAlloc(DeviceBuffer<u32, SyncAlloc>),
    Cached(DeviceBuffer<u32, CachingResource>),
    Mapped(MappedBuffer<u32>),
    Unified(UnifiedBuffer<u32>),
    Growing(DeviceVec<u32>),
    /// One row.
    Pitched(PitchedBuffer<u32>),
}

impl Memory {
    pub(super) fn new(
        dice: &mut Dice,
        cache: &CachingResource,
        stream: &Stream,
        values: &[u32],
    ) -> TestResult<Self> {
        let mut memory = match dice.below(9) {
            0 => DeviceBuffer::from_slice_in(stream, values, SyncAlloc).map(Self::SyncAlloc),
            1 => MappedBuffer::from_slice(stream, values).map(Self::Mapped),
            2 => UnifiedBuffer::from_slice(stream, values).map(Self::Unified),
            3 => DeviceVec::from_slice(stream, values).map(Self::Growing),
            4 => PitchedBuffer::zeroed(stream, LEN, 1).map(Self::Pitched),
            5 | 6 => DeviceBuffer::from_slice_in(stream, values, cache.clone()).map(Self::Cached),
            _ => DeviceBuffer::from_slice(stream, values).map(Self::Pooled),
        }?;
        if let Self::Pitched(_) = memory {
            memory.view_mut().copy_from_slice(values)?;
        }
        Ok(memory)
    }

    pub(super) fn view(&self) -> DeviceView<'_, u32> {
        match self {
            Self::Pooled(buffer) => buffer.view(),
            Self::SyncAlloc(buffer) => buffer.view(),
            Self::Cached(buffer) => buffer.view(),
            Self::Mapped(buffer) => buffer.view(),
            Self::Unified(buffer) => buffer.view(),
            Self::Growing(vector) => vector.view(),
            Self::Pitched(buffer) => buffer.row(0).expect("no row"),
        }
    }

    pub(super) fn view_mut(&mut self) -> DeviceViewMut<'_, u32> {
        match self {
            Self::Pooled(buffer) => buffer.view_mut(),
            Self::SyncAlloc(buffer) => buffer.view_mut(),
            Self::Cached(buffer) => buffer.view_mut(),
            Self::Mapped(buffer) => buffer.view_mut(),
            Self::Unified(buffer) => buffer.view_mut(),
            Self::Growing(vector) => vector.view_mut(),
            Self::Pitched(buffer) => buffer.row_mut(0).expect("no row"),
        }
    }

    /// Returns a host view of the elements, if the memory is accessible to the host.
    pub(super) fn seen(&self) -> TestResult<Option<HostView<'_, u32>>> {
        Ok(match self {
            Self::Mapped(buffer) => Some(buffer.host_view()?),
            Self::Unified(buffer) => Some(buffer.host_view()?),
            _ => None,
        })
    }

    /// Returns a mutable host view of the elements, if the memory is accessible to the host.
    pub(super) fn host(&mut self) -> TestResult<Option<HostViewMut<'_, u32>>> {
        Ok(match self {
            Self::Mapped(buffer) => Some(buffer.host_view_mut()?),
            Self::Unified(buffer) => Some(buffer.host_view_mut()?),
            _ => None,
        })
    }

    /// Grows and shrinks the memory to its original size, if it can grow.
    pub(super) fn breathe(&mut self, values: &[u32]) -> TestResult {
        if let Self::Growing(vector) = self {
            vector.extend_from_slice(values)?;
            // Beyond the first granule, which is mapped and unmapped as a whole.
            vector.resize((1 << 19) + values.len(), 7)?;
            vector.truncate(LEN);
            vector.shrink_to_fit()?;
        }
        Ok(())
    }
}
