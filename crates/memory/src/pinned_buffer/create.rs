//! Constructors.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use curium_driver::{Context, Error, Result, call};

use super::{PinnedBuffer, PinnedFlags, Source};
use crate::{Zeroable, size};

impl<T> PinnedBuffer<T> {
    /// Allocates `len` elements and sets every byte to zero.
    ///
    /// CUDA: `cuMemHostAlloc`.
    ///
    /// # Errors
    ///
    /// An argument error if `len` is 0 or too large, or if the alignment of `T` is larger than a
    /// page; `CUDA_ERROR_OUT_OF_MEMORY`.
    #[doc(alias = "cuMemHostAlloc")]
    #[doc(alias = "cudaHostAlloc")]
    #[doc(alias = "cudaMallocHost")]
    pub fn zeroed(context: &Context, len: usize, flags: PinnedFlags) -> Result<Self>
    where
        T: Zeroable,
    {
        let buffer = Self::allocate("PinnedBuffer::zeroed", context, len, flags)?;
        // SAFETY: the memory has room for `len` elements and is not shared yet, and zero bytes are
        // valid elements.
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
        // SAFETY: the memory has room for `len` elements, is live, and is not shared yet;
        // `MaybeUninit` needs no valid values.
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
        // SAFETY: both sides have this many elements, new memory does not overlap `source`, and `T`
        // is `Copy`.
        unsafe {
            std::ptr::copy_nonoverlapping(source.as_ptr(), buffer.pointer.as_ptr(), source.len());
        };
        Ok(buffer)
    }

    /// Allocates uninitialized elements. They are freed without running destructors, so callers
    /// require plain data.
    pub(super) fn allocate(
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
}
