//! Buffers in pinned host memory.

// In a group of its own, so that the page of the type begins with the constructors.
mod create;

mod cached;
mod node;

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use curium_driver::{Context, Result, Returned, Stream, call, sys};

use crate::wait;
use crate::{Mapping, PinnedCache};

/// A buffer in pinned host memory.
///
/// Copies that take a slice return when the slice may be changed or read, so the device never
/// accesses the memory while other code borrows it: large ones, and those to the host, wait until
/// they have completed. [`copy::upload`](crate::copy::upload) and
/// [`copy::download`](crate::copy::download) take the buffer and do not wait.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// use curium_memory::{DeviceBuffer, PinnedBuffer, PinnedFlags};
///
/// # let stream = driver.device(0)?.primary_context()?.stream()?;
/// let mut pinned = PinnedBuffer::from_slice(stream.context(), &[1.0_f32, 2.0, 3.0], PinnedFlags::empty())?;
/// pinned[0] = 7.0; // it is a slice
/// let device = DeviceBuffer::from_slice(&stream, &pinned)?;
/// device.copy_to_slice(&mut pinned)?; // without a staging buffer
/// assert_eq!(pinned[..], [7.0, 2.0, 3.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PinnedBuffer<T> {
    pointer: NonNull<T>,
    len: usize,
    context: Context,
    source: Source,
    _elements: PhantomData<T>,
}

/// The source of the memory.
enum Source {
    /// `cuMemHostAlloc`.
    Allocation,
    /// A mapping of memory of a NUMA node; `None` after it was unmapped.
    Node(Option<Mapping>),
    Cache(Cached),
}

/// Memory of a cache.
struct Cached {
    cache: PinnedCache,
    /// The alignment of the elements for which the memory was allocated.
    alignment: usize,
    /// The stream of a copy in progress, after which the memory may be reused.
    user: Option<Stream>,
}

bitflags::bitflags! {
    /// Flags of pinned memory (`CU_MEMHOSTALLOC_…`).
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    pub struct PinnedFlags: u32 {
        /// The memory is pinned in every context, not only in its own.
        const PORTABLE = sys::CU_MEMHOSTALLOC_PORTABLE;
        /// The device can access the memory in place.
        const DEVICE_MAP = sys::CU_MEMHOSTALLOC_DEVICEMAP;
        /// Write-combined memory: fast to write and very slow to read on the host.
        const WRITE_COMBINED = sys::CU_MEMHOSTALLOC_WRITECOMBINED;
        /// Flags defined by newer drivers.
        const _ = !0;
    }
}

// SAFETY: the buffer owns its elements like a `Box<[T]>`, and any thread may free the memory.
unsafe impl<T: Send> Send for PinnedBuffer<T> {}
// SAFETY: a shared buffer only provides shared references to its elements.
unsafe impl<T: Sync> Sync for PinnedBuffer<T> {}

impl<T> PinnedBuffer<T> {
    /// Returns the size in bytes.
    #[must_use]
    #[inline]
    pub fn byte_len(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// Returns the context in which the memory was allocated.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Returns the flags of the memory. The driver may have added some.
    ///
    /// CUDA: `cuMemHostGetFlags`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for memory of a NUMA node, which has no flags.
    #[doc(alias = "cuMemHostGetFlags")]
    #[doc(alias = "cudaHostGetFlags")]
    pub fn flags(&self) -> Result<PinnedFlags> {
        let memory = self.pointer.as_ptr();
        self.context.entered(|driver| {
            let mut flags = 0;
            // SAFETY: `flags` is a valid pointer, the memory is live, and the context is current.
            unsafe { call!(driver, cuMemHostGetFlags(&raw mut flags, memory.cast())) }?;
            Ok(PinnedFlags::from_bits_retain(flags))
        })
    }

    /// Frees the memory, as [`Drop`] does, and returns any error. The driver waits for the device.
    /// Memory of a [`PinnedCache`] returns to the cache.
    ///
    /// CUDA: `cuMemFreeHost`; `cuMemUnmap` for memory of a NUMA node.
    ///
    /// # Errors
    ///
    /// Returns the buffer together with the error if the driver fails.
    #[doc(alias = "cuMemFreeHost")]
    #[doc(alias = "cudaFreeHost")]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.free().map_err(|error| Returned::new(self, error))
    }

    /// Returns the address of the elements. Unlike [`slice::as_mut_ptr`], it creates no reference
    /// to them, so a device may be using them.
    #[inline]
    pub(crate) fn address(&self) -> *mut T {
        self.pointer.as_ptr()
    }

    /// Records that a copy on `stream` is about to use the memory. Returns `true` if the buffer may
    /// be dropped before the copy has completed.
    #[inline]
    pub(crate) fn begin_use(&mut self, stream: &Stream) -> bool {
        match &mut self.source {
            Source::Cache(cached) if cached.cache.follows(stream) => {
                cached.user = Some(stream.clone());
                true
            }
            _ => false,
        }
    }

    /// Records that the copy has completed, or was not enqueued.
    #[inline]
    pub(crate) fn end_use(&mut self) {
        if let Source::Cache(cached) = &mut self.source {
            cached.user = None;
        }
    }

    /// Converts the buffer to bytes.
    pub(crate) fn into_bytes(self) -> PinnedBuffer<u8> {
        let buffer = ManuallyDrop::new(self);
        // SAFETY: the field is moved out of a value that is not used or dropped afterwards.
        let context = unsafe { std::ptr::read(&raw const buffer.context) };
        // SAFETY: the field is moved out of a value that is not used or dropped afterwards.
        let source = unsafe { std::ptr::read(&raw const buffer.source) };
        PinnedBuffer {
            pointer: buffer.pointer.cast(),
            len: buffer.byte_len(),
            context,
            source,
            _elements: PhantomData,
        }
    }

    fn free(&mut self) -> Result<()> {
        if self.len == 0 {
            return Ok(());
        }
        match &mut self.source {
            // SAFETY: the memory is live, no copy of this crate is using it, and it is not used
            // after this call.
            Source::Allocation => unsafe {
                call!(
                    self.context.driver(),
                    cuMemFreeHost(self.pointer.as_ptr().cast())
                )
            }
            .map_err(|error| {
                error.about_handle(
                    "pinned memory",
                    self.pointer,
                    self.context.device().as_raw(),
                )
            })?,
            Source::Node(mapping) => node::unmap(mapping)?,
            Source::Cache(cached) => cached.free(self.pointer.cast(), self.len * size_of::<T>())?,
        }
        self.len = 0;
        Ok(())
    }
}

impl<T> Deref for PinnedBuffer<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the memory is live, holds `len` initialized elements, and is only written through
        // `&mut self`.
        unsafe { std::slice::from_raw_parts(self.pointer.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for PinnedBuffer<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: the memory is live, holds `len` initialized elements, and is borrowed
        // exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.as_ptr(), self.len) }
    }
}

impl<T: fmt::Debug> fmt::Debug for PinnedBuffer<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, formatter)
    }
}

impl<T> Drop for PinnedBuffer<T> {
    fn drop(&mut self) {
        if self.len != 0 {
            let driver = self.context.driver().clone();
            let bytes = self.byte_len() as u64;
            if matches!(self.source, Source::Cache(_)) {
                wait::return_or_leak(&driver, bytes, || self.free());
            } else {
                wait::free_or_leak(&driver, bytes, || self.free());
            }
        }
    }
}
