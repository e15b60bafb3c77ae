//! A buffer in pinned memory of the host.

#[cfg(feature = "virtual-memory")]
mod node;

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use bytemuck::Zeroable;
use curium_driver::{Context, Error, Result, Returned, call, release, sys};

#[cfg(feature = "virtual-memory")]
use crate::Mapping;
use crate::size;

/// A fixed number of elements in memory of the host that is never paged out, so that the device copies from and to it at full
/// speed. It is a slice.
///
/// All copies of this crate that take a slice wait until they are done, so that the device never uses the memory behind the back of
/// the slice.
pub struct PinnedBuffer<T> {
    pointer: NonNull<T>,
    len: usize,
    context: Context,
    source: Source,
    _elements: PhantomData<T>,
}

/// Who gave the memory, and takes it back.
enum Source {
    /// `cuMemHostAlloc`.
    Allocation,
    /// A mapping of memory of a NUMA node; nothing once it has ended.
    #[cfg(feature = "virtual-memory")]
    Node(Option<Mapping>),
}

bitflags::bitflags! {
    /// Flags of pinned memory.
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    pub struct PinnedFlags: u32 {
        /// The memory counts as pinned in every context, not only in its own.
        const PORTABLE = sys::CU_MEMHOSTALLOC_PORTABLE;
        /// The device may read and write the memory in place.
        const DEVICE_MAP = sys::CU_MEMHOSTALLOC_DEVICEMAP;
        /// The host's caches are passed by: writing is fast, reading very slow.
        const WRITE_COMBINED = sys::CU_MEMHOSTALLOC_WRITECOMBINED;
        /// Flags of newer drivers.
        const _ = !0;
    }
}

// SAFETY: the buffer owns its elements as a `Box<[T]>` does, and its memory may be freed from any thread.
unsafe impl<T: Send> Send for PinnedBuffer<T> {}
// SAFETY: a shared buffer gives out shared references to its elements only.
unsafe impl<T: Sync> Sync for PinnedBuffer<T> {}

impl<T> PinnedBuffer<T> {
    /// Allocates `len` elements, every byte of them zero.
    ///
    /// CUDA: `cuMemHostAlloc`.
    ///
    /// # Errors
    ///
    /// An argument error if `len` is 0 or too large to be a size, or if `T` is aligned to more than a page;
    /// `CUDA_ERROR_OUT_OF_MEMORY`.
    #[doc(alias = "cuMemHostAlloc")]
    #[inline]
    pub fn zeroed(context: &Context, len: usize, flags: PinnedFlags) -> Result<Self>
    where
        T: Zeroable,
    {
        let buffer = Self::allocate("PinnedBuffer::zeroed", context, len, flags)?;
        // SAFETY: the memory was allocated with this many elements and is not shared yet, and zero bytes are valid elements.
        unsafe { buffer.pointer.write_bytes(0, len) };
        Ok(buffer)
    }

    /// Allocates as many elements as `source` has and copies it there.
    ///
    /// CUDA: `cuMemHostAlloc`.
    ///
    /// # Errors
    ///
    /// As for [`PinnedBuffer::zeroed`].
    #[inline]
    pub fn from_slice(context: &Context, source: &[T], flags: PinnedFlags) -> Result<Self>
    where
        T: Copy,
    {
        let buffer = Self::allocate("PinnedBuffer::from_slice", context, source.len(), flags)?;
        // SAFETY: both sides have this many elements, the memory is fresh and so does not overlap `source`, and `T` is `Copy`.
        unsafe { std::ptr::copy_nonoverlapping(source.as_ptr(), buffer.pointer.as_ptr(), source.len()) };
        Ok(buffer)
    }

    /// The size in bytes.
    #[must_use]
    #[inline]
    pub fn byte_len(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// The context in which the memory was allocated.
    #[must_use]
    #[inline]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The flags that the memory has, which may be more than were asked for.
    ///
    /// CUDA: `cuMemHostGetFlags`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for memory of a NUMA node, which has no such flags.
    #[doc(alias = "cuMemHostGetFlags")]
    #[inline]
    pub fn flags(&self) -> Result<PinnedFlags> {
        let memory = self.pointer.as_ptr();
        self.context.entered(|driver| {
            let mut flags = 0;
            // SAFETY: `flags` is a valid place for the answer, the memory is live, and the context is current.
            unsafe { call!(driver, cuMemHostGetFlags(&raw mut flags, memory.cast())) }?;
            Ok(PinnedFlags::from_bits_retain(flags))
        })
    }

    /// Frees the memory, which [`Drop`] does as well, and says whether it succeeded. Waits for the work of the device.
    ///
    /// CUDA: `cuMemFreeHost`; `cuMemUnmap` for memory of a NUMA node.
    ///
    /// # Errors
    ///
    /// Gives the buffer back if the driver refuses.
    #[doc(alias = "cuMemFreeHost")]
    #[inline]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.free().map_err(|error| Returned::new(self, error))
    }

    /// Memory whose elements are not initialised yet. It is freed without dropping them: whoever fills it has `T` be plain data.
    #[inline]
    fn allocate(operation: &'static str, context: &Context, len: usize, flags: PinnedFlags) -> Result<Self> {
        let bytes = size::bytes::<T>(operation, len)?;
        let raw = context.entered(|driver| {
            let mut raw: *mut c_void = std::ptr::null_mut();
            // SAFETY: `raw` is a valid place for the answer, and the context is current.
            let result = unsafe { call!(driver, cuMemHostAlloc(&raw mut raw, bytes, flags.bits()) creates raw) };
            result.map_err(|error| error.about(format!("{bytes} bytes of pinned memory")))?;
            Ok(raw)
        })?;
        let pointer = NonNull::new(raw.cast::<T>())
            .ok_or_else(|| Error::argument(operation, "the driver returned a null pointer for memory of the host"))?;
        let buffer =
            Self { pointer, len, context: context.clone(), source: Source::Allocation, _elements: PhantomData };
        if !pointer.is_aligned() {
            let align = align_of::<T>();
            return Err(Error::argument(operation, format!("alignment is not supported ({align} bytes)")));
        }
        Ok(buffer)
    }

    /// The memory alone, whatever it holds.
    #[inline]
    pub(crate) fn into_bytes(self) -> PinnedBuffer<u8> {
        let buffer = ManuallyDrop::new(self);
        // SAFETY: the field is moved out of a value that is not used or dropped afterwards.
        let context = unsafe { std::ptr::read(&raw const buffer.context) };
        // SAFETY: as above.
        let source = unsafe { std::ptr::read(&raw const buffer.source) };
        PinnedBuffer { pointer: buffer.pointer.cast(), len: buffer.byte_len(), context, source, _elements: PhantomData }
    }

    #[inline]
    fn free(&mut self) -> Result<()> {
        if self.len == 0 {
            return Ok(());
        }
        match &mut self.source {
            // SAFETY: the memory is live, no copy that this crate began is still using it, and it is forgotten once it is freed.
            Source::Allocation => unsafe { call!(self.context.driver(), cuMemFreeHost(self.pointer.as_ptr().cast())) }
                .map_err(|error| error.about_handle("pinned memory", self.pointer, self.context.device().as_raw()))?,
            #[cfg(feature = "virtual-memory")]
            Source::Node(mapping) => node::unmap(mapping)?,
        }
        self.len = 0;
        Ok(())
    }
}

impl<T> Deref for PinnedBuffer<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the memory is live, holds `len` initialised elements, and is written through `&mut self` only.
        unsafe { std::slice::from_raw_parts(self.pointer.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for PinnedBuffer<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: the memory is live, holds `len` initialised elements, and is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.as_ptr(), self.len) }
    }
}

impl<T: fmt::Debug> fmt::Debug for PinnedBuffer<T> {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, formatter)
    }
}

impl<T> Drop for PinnedBuffer<T> {
    #[inline]
    fn drop(&mut self) {
        release(|| self.free());
    }
}
