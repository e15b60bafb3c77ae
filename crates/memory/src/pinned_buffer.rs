//! Buffers in pinned host memory.

mod node;

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::Zeroable;
use curium_driver::{Context, Error, Result, Returned, call, sys};

use crate::Mapping;
use crate::{size, wait};

/// A buffer in pinned host memory.
///
/// Copies that take a slice wait until they have completed, so the device never accesses the memory while other code
/// borrows it.
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
    /// Allocates `len` elements and sets every byte to zero.
    ///
    /// CUDA: `cuMemHostAlloc`.
    ///
    /// # Errors
    ///
    /// An argument error if `len` is 0 or too large, or if the alignment of `T` is larger than a page; `CUDA_ERROR_OUT_OF_MEMORY`.
    #[doc(alias = "cuMemHostAlloc")]
    #[doc(alias = "cudaHostAlloc")]
    #[doc(alias = "cudaMallocHost")]
    pub fn zeroed(context: &Context, len: usize, flags: PinnedFlags) -> Result<Self>
    where
        T: Zeroable,
    {
        let buffer = Self::allocate("PinnedBuffer::zeroed", context, len, flags)?;
        // SAFETY: the memory has room for `len` elements and is not shared yet, and zero bytes are valid elements.
        unsafe { buffer.pointer.write_bytes(0, len) };
        Ok(buffer)
    }

    /// Allocates `len` elements and sets each to `value`.
    ///
    /// CUDA: `cuMemHostAlloc`.
    ///
    /// # Errors
    ///
    /// As for [`PinnedBuffer::zeroed`].
    pub fn filled(context: &Context, len: usize, value: T, flags: PinnedFlags) -> Result<Self>
    where
        T: Copy,
    {
        let buffer = Self::allocate("PinnedBuffer::filled", context, len, flags)?;
        // SAFETY: the memory has room for `len` elements, is live, and is not shared yet; `MaybeUninit` needs no valid values.
        let elements = unsafe {
            std::slice::from_raw_parts_mut(buffer.pointer.as_ptr().cast::<MaybeUninit<T>>(), len)
        };
        elements.fill(MaybeUninit::new(value));
        Ok(buffer)
    }

    /// Allocates a buffer and copies `source` to it.
    ///
    /// CUDA: `cuMemHostAlloc`.
    ///
    /// # Errors
    ///
    /// As for [`PinnedBuffer::zeroed`].
    pub fn from_slice(context: &Context, source: &[T], flags: PinnedFlags) -> Result<Self>
    where
        T: Copy,
    {
        let buffer = Self::allocate("PinnedBuffer::from_slice", context, source.len(), flags)?;
        // SAFETY: both sides have this many elements, new memory does not overlap `source`, and `T` is `Copy`.
        unsafe {
            std::ptr::copy_nonoverlapping(source.as_ptr(), buffer.pointer.as_ptr(), source.len());
        };
        Ok(buffer)
    }

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

    /// Allocates uninitialized elements. They are freed without running destructors, so callers require plain data.
    fn allocate(
        operation: &'static str,
        context: &Context,
        len: usize,
        flags: PinnedFlags,
    ) -> Result<Self> {
        let bytes = size::bytes::<T>(operation, len)?;
        let raw = context.entered(|driver| {
            let mut raw: *mut c_void = std::ptr::null_mut();
            // SAFETY: `raw` is a valid pointer, and the context is current.
            let result = unsafe {
                call!(driver, cuMemHostAlloc(&raw mut raw, bytes, flags.bits()) creates raw)
            };
            result.map_err(|error| error.about(format!("{bytes} bytes of pinned memory")))?;
            Ok(raw)
        })?;
        let pointer = NonNull::new(raw.cast::<T>())
            .ok_or_else(|| Error::argument(operation, "the driver returned a null pointer"))?;
        let buffer = Self {
            pointer,
            len,
            context: context.clone(),
            source: Source::Allocation,
            _elements: PhantomData,
        };
        if !pointer.is_aligned() {
            let align = align_of::<T>();
            return Err(Error::argument(
                operation,
                format!("unsupported alignment ({align} bytes)"),
            ));
        }
        Ok(buffer)
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
            // SAFETY: the memory is live, no copy of this crate is using it, and it is not used after this call.
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
        }
        self.len = 0;
        Ok(())
    }
}

impl<T> Deref for PinnedBuffer<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the memory is live, holds `len` initialized elements, and is only written through `&mut self`.
        unsafe { std::slice::from_raw_parts(self.pointer.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for PinnedBuffer<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: the memory is live, holds `len` initialized elements, and is borrowed exclusively.
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
            wait::free_or_leak(&driver, bytes, || self.free());
        }
    }
}
