//! Memory in one growing virtual address range.

use std::fmt;

use curium_driver::extend::{
    Exclusive, dropping, with_relaxed_capture_mode, with_relaxed_capture_mode_if_possible,
};
use curium_driver::{Context, DevicePointer, Error, Result, Stream};

use super::Resource;
use super::segments::{Segments, leak_rest};
use crate::cache::{CentralHeap, GRANULE, StreamId};
use crate::size::Request;
use crate::wait;

/// A resource that allocates from one reserved virtual address range, into which physical memory is
/// mapped as needed. Free memory coalesces across all mappings, so an allocation may be as large as
/// all free memory.
///
/// Memory is aligned to 512 bytes, or to the requested alignment, up to 2 MiB. A deallocation waits
/// for the work on the stream. The memory is then available to every stream, and is kept until
/// [`Resource::trim`]. [`CachingResource`](crate::CachingResource) is faster for many short-lived
/// blocks.
///
/// Dropping the arena unmaps free memory. Memory that was never freed may be in use. It is leaked,
/// counted by [`Driver::leaked_memory`](curium_driver::Driver::leaked_memory), and reported.
///
/// CUDA: `cuMemAddressReserve`, `cuMemCreate`, `cuMemMap`, `cuMemSetAccess`, `cuMemUnmap`,
/// `cuMemRelease`, `cuMemAddressFree`.
pub struct Arena {
    context: Context,
    heap: CentralHeap,
    /// Locked before the heap, across driver calls.
    segments: Exclusive<Segments>,
}

/// The minimum size of a mapping in bytes.
const STEP: u64 = 2 << 20;
/// The maximum alignment.
const MAX_ALIGNMENT: usize = 2 << 20;

impl Arena {
    /// Creates an arena for the device of `context`, without memory.
    ///
    /// CUDA: `cuMemAddressReserve`, `cuMemGetAllocationGranularity`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver if the device does not support virtual memory management.
    pub fn new(context: &Context) -> Result<Self> {
        let segments = Segments::mapped(context)?;
        Ok(Self {
            context: context.clone(),
            heap: segments.heap(),
            segments: Exclusive::new(segments),
        })
    }

    /// Returns the mapped size in bytes.
    pub fn reserved_bytes(&self) -> usize {
        self.heap.with(|heap| heap.reserved_bytes()) as usize
    }

    fn take(&self, length: u64, alignment: u64) -> Option<DevicePointer<u8>> {
        self.heap
            .with(|heap| heap.take_range(StreamId::ANY, length, alignment))
            .map(DevicePointer::from_raw)
    }

    fn grow(&self, length: u64, alignment: u64) -> Result<DevicePointer<u8>> {
        let mut segments = self.segments.acquire("Arena::allocate")?;
        loop {
            // Another thread may have mapped memory, or allocated what this thread mapped.
            if let Some(pointer) = self.take(length, alignment) {
                return Ok(pointer);
            }
            let room = length + alignment - GRANULE;
            with_relaxed_capture_mode(self.context.driver(), || {
                segments.provide(room, STEP, &self.heap)
            })?;
        }
    }
}

// SAFETY: the heap contains each mapped address once, memory is freed after a wait for the work
// that accessed it, and the range lives as long as the arena.
unsafe impl Resource for Arena {
    fn allocate(
        &self,
        stream: &Stream,
        bytes: usize,
        alignment: usize,
    ) -> Result<DevicePointer<u8>> {
        const OPERATION: &str = "Arena::allocate";
        Request::new(OPERATION, bytes, alignment, MAX_ALIGNMENT)?;
        self.context
            .driver()
            .check_same(stream.driver(), OPERATION)?;
        if stream.device().as_raw() != self.context.device().as_raw() {
            return Err(Error::argument(
                OPERATION,
                format!("device mismatch ({stream:?} does not belong to the arena's device)"),
            ));
        }
        let length = (bytes as u64).next_multiple_of(GRANULE);
        let alignment = (alignment as u64).max(GRANULE);
        if let Some(pointer) = self.take(length, alignment) {
            return Ok(pointer);
        }
        self.grow(length, alignment).map_err(|error| {
            let longest = self.heap.with(|heap| heap.longest(StreamId::ANY));
            error.with_memory_figures(stream, bytes, Some(longest as usize))
        })
    }

    unsafe fn deallocate(
        &self,
        stream: &Stream,
        pointer: DevicePointer<u8>,
        bytes: usize,
        _alignment: usize,
    ) -> Result<()> {
        wait::before_free(stream)?;
        let length = (bytes as u64).next_multiple_of(GRANULE);
        self.heap
            .with(|heap| heap.free_range(StreamId::ANY, pointer.as_raw(), length));
        Ok(())
    }

    fn trim(&self, _stream: &Stream, keep: usize) -> Result<()> {
        let mut segments = self.segments.acquire("Arena::trim")?;
        with_relaxed_capture_mode(self.context.driver(), || {
            segments.trim(keep as u64, &self.heap)
        })
    }
}

impl fmt::Debug for Arena {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Arena({} bytes)", self.reserved_bytes())
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        let driver = self.context.driver();
        let segments = self.segments.get_mut();
        // Nothing to wait for: each deallocation has waited.
        let closed = dropping(|| {
            with_relaxed_capture_mode_if_possible(driver, || segments.close(&self.heap))
        });
        if let Some(closed) = closed {
            leak_rest("Arena::drop", driver, &self.heap, closed);
        }
    }
}
