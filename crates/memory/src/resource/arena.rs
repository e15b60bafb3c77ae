//! Memory in one row of addresses that grows.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use curium_driver::extend::{Exclusive, dropping, with_relaxed_capture_mode, with_relaxed_capture_mode_if_possible};
use curium_driver::{Context, DevicePointer, Error, Result, Stream};
use parking_lot::Mutex;

use super::segments::{HeapAccess, Mapped, leak_rest};
use super::{Request, Resource};
use crate::cache::{GRANULE, Generation, Heap, Owner};
use crate::wait;

/// Memory of one row of addresses, behind which physical memory is mapped as it is needed: what is free joins, however much the
/// memory has grown meanwhile, and an allocation may be as large as all that is free.
///
/// Dropping the arena unmaps the memory that is free. Memory that was never freed may be in use: it is leaked, counted by
/// [`Driver::leaked_memory`](curium_driver::Driver::leaked_memory) and reported.
///
/// Memory is aligned to 512 bytes, or to what is asked for, up to 2 MiB. Freeing waits for the work on the stream, after which every
/// stream may have the memory. It is kept until [`Resource::trim`]. For many short-lived blocks there is
/// [`CachingResource`](super::CachingResource).
///
/// CUDA: `cuMemAddressReserve`, `cuMemCreate`, `cuMemMap`, `cuMemSetAccess`, `cuMemUnmap`, `cuMemRelease`, `cuMemAddressFree`.
pub struct Arena {
    context: Context,
    heap: Mutex<Heap>,
    /// Locked while the row grows or shrinks; the heap may be locked meanwhile.
    mapped: Exclusive<Mapped>,
    reserved_bytes: AtomicUsize,
}

/// Physical memory is mapped in pieces of at least this many bytes.
const STEP: u64 = 2 << 20;
/// The largest alignment that can be asked for.
const LARGEST_ALIGNMENT: usize = 2 << 20;

impl Arena {
    /// An arena for the device of `context`, without memory yet.
    ///
    /// CUDA: `cuMemAddressReserve`, `cuMemGetAllocationGranularity`.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns where memory cannot be mapped.
    #[inline]
    pub fn new(context: &Context) -> Result<Self> {
        let mapped = Exclusive::new(Mapped::new(context)?);
        Ok(Self { context: context.clone(), heap: Mutex::default(), mapped, reserved_bytes: AtomicUsize::new(0) })
    }

    /// The bytes that are mapped.
    #[inline]
    pub fn reserved_bytes(&self) -> usize {
        self.reserved_bytes.load(Ordering::Relaxed)
    }

    #[inline]
    fn take(&self, length: u64, alignment: u64) -> Option<DevicePointer<u8>> {
        self.heap.lock().allocate(Owner::ALL, length, alignment).map(DevicePointer::from_raw)
    }

    /// Has `operation` map or unmap memory, and counts what is mapped then, also if it failed.
    #[inline]
    fn change(&self, mapped: &mut Mapped, operation: impl FnOnce(&mut Mapped) -> Result<()>) -> Result<()> {
        let result = with_relaxed_capture_mode(self.context.driver(), || operation(mapped));
        let bytes = mapped.list().iter().map(|segment| segment.length as usize).sum();
        self.reserved_bytes.store(bytes, Ordering::Relaxed);
        result
    }

    #[inline]
    fn grow(&self, length: u64, alignment: u64) -> Result<DevicePointer<u8>> {
        let mut mapped = self.mapped.acquire("Arena::allocate")?;
        loop {
            // Another thread may have grown the row, or taken what this one has added.
            if let Some(pointer) = self.take(length, alignment) {
                return Ok(pointer);
            }
            let room = length + alignment - GRANULE;
            self.change(&mut mapped, |mapped| mapped.grow(room, STEP, &self.heap))?;
        }
    }
}

// SAFETY: the heap has each address once, and hands out what lies in the row and is mapped. What is freed has been waited for. The
// row lives as long as the arena.
unsafe impl Resource for Arena {
    #[inline]
    fn allocate(&self, stream: &Stream, bytes: usize, alignment: usize) -> Result<DevicePointer<u8>> {
        const OPERATION: &str = "Arena::allocate";
        Request::new(OPERATION, bytes, alignment, LARGEST_ALIGNMENT)?;
        self.context.driver().expect_same(stream.driver(), OPERATION)?;
        if stream.device().as_raw() != self.context.device().as_raw() {
            return Err(Error::argument(OPERATION, format!("{stream:?} is not of the arena's device")));
        }
        let (length, alignment) = ((bytes as u64).next_multiple_of(GRANULE), (alignment as u64).max(GRANULE));
        let grown = |error: Error| {
            let longest = self.heap.lock().longest(Owner::ALL);
            error.with_memory_figures(stream, bytes, Some(longest as usize))
        };
        self.take(length, alignment).map_or_else(|| self.grow(length, alignment).map_err(grown), Ok)
    }

    #[inline]
    unsafe fn deallocate(
        &self,
        stream: &Stream,
        pointer: DevicePointer<u8>,
        bytes: usize,
        _alignment: usize,
    ) -> Result<()> {
        wait::before_free(stream)?;
        let length = (bytes as u64).next_multiple_of(GRANULE);
        self.heap.lock().free(pointer.as_raw(), length, Owner::ALL, Generation::default());
        Ok(())
    }

    #[inline]
    fn trim(&self, _stream: &Stream, keep: usize) -> Result<()> {
        let mut mapped = self.mapped.acquire("Arena::trim")?;
        self.change(&mut mapped, |mapped| mapped.trim(keep as u64, &self.heap))
    }
}

impl HeapAccess for Mutex<Heap> {
    #[inline]
    fn with_heap<T>(&self, operation: impl FnOnce(&mut Heap) -> T) -> T {
        operation(&mut self.lock())
    }
}

impl fmt::Debug for Arena {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Arena({} bytes)", self.reserved_bytes())
    }
}

impl Drop for Arena {
    #[inline]
    fn drop(&mut self) {
        let (driver, mapped) = (self.context.driver(), self.mapped.get_mut());
        // Free memory has been waited for.
        let closed = dropping(|| with_relaxed_capture_mode_if_possible(driver, || mapped.close(&self.heap)));
        if let Some(closed) = closed {
            leak_rest("Arena::drop", driver, &mapped.list(), closed);
        }
    }
}
