//! Buffers from a cache.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use curium_driver::Result;

use super::{Cached, PinnedBuffer, PinnedFlags, Source};
use crate::{AnyBitPattern, NoUninit, PinnedCache, Zeroable, size};

/// Elements without padding: memory of a cache is always initialized, so that later buffers may
/// read any of its bytes.
impl<T: NoUninit> PinnedBuffer<T> {
    /// Allocates `len` elements from a cache and sets every byte to zero.
    ///
    /// CUDA: none, or `cuMemHostAlloc` if the cache has no free memory.
    ///
    /// # Errors
    ///
    /// As for [`PinnedBuffer::zeroed`].
    pub fn zeroed_in(len: usize, cache: &PinnedCache) -> Result<Self>
    where
        T: Zeroable,
    {
        let buffer = Self::allocate_in("PinnedBuffer::zeroed_in", len, cache)?;
        // SAFETY: the memory has room for `len` elements and is not shared yet, and zero bytes are
        // valid elements.
        unsafe { buffer.pointer.write_bytes(0, len) };
        Ok(buffer)
    }

    /// Allocates `len` elements from a cache, with the contents of an earlier buffer, or zeros.
    ///
    /// CUDA: as for [`PinnedBuffer::zeroed_in`].
    ///
    /// # Errors
    ///
    /// As for [`PinnedBuffer::zeroed`].
    #[inline]
    pub fn uninit_in(len: usize, cache: &PinnedCache) -> Result<Self>
    where
        T: AnyBitPattern,
    {
        Self::allocate_in("PinnedBuffer::uninit_in", len, cache)
    }

    /// Allocates `len` elements from a cache and sets each to `value`.
    ///
    /// CUDA: as for [`PinnedBuffer::zeroed_in`].
    ///
    /// # Errors
    ///
    /// As for [`PinnedBuffer::zeroed`].
    pub fn filled_in(len: usize, value: T, cache: &PinnedCache) -> Result<Self> {
        let buffer = Self::allocate_in("PinnedBuffer::filled_in", len, cache)?;
        // SAFETY: the memory has room for `len` elements, is live, and is not shared yet;
        // `MaybeUninit` needs no valid values.
        let elements = unsafe {
            std::slice::from_raw_parts_mut(buffer.pointer.as_ptr().cast::<MaybeUninit<T>>(), len)
        };
        elements.fill(MaybeUninit::new(value));
        Ok(buffer)
    }

    /// Allocates a buffer from a cache and copies `source` to it.
    ///
    /// CUDA: as for [`PinnedBuffer::zeroed_in`].
    ///
    /// # Errors
    ///
    /// As for [`PinnedBuffer::zeroed`].
    pub fn from_slice_in(source: &[T], cache: &PinnedCache) -> Result<Self> {
        let buffer = Self::allocate_in("PinnedBuffer::from_slice_in", source.len(), cache)?;
        // SAFETY: both sides have this many elements, memory of the cache does not overlap
        // `source`, and `T` is `Copy`.
        unsafe {
            std::ptr::copy_nonoverlapping(source.as_ptr(), buffer.pointer.as_ptr(), source.len());
        };
        Ok(buffer)
    }

    /// Allocates elements that need not be valid.
    #[inline]
    fn allocate_in(operation: &'static str, len: usize, cache: &PinnedCache) -> Result<Self> {
        let bytes = size::bytes::<T>(operation, len)?;
        let alignment = align_of::<T>();
        let Some(pointer) = cache
            .allocate(bytes, alignment)
            .map_err(|error| error.during(operation))?
        else {
            return Self::allocate_outside(operation, len, cache);
        };
        Ok(Self {
            pointer: pointer.cast(),
            len,
            context: cache.context().clone(),
            source: Source::Cache(Cached {
                cache: cache.clone(),
                alignment,
                user: None,
            }),
            _elements: PhantomData,
        })
    }

    /// Allocates from the driver what the cache has no room for. Returns unused memory of the cache
    /// if the driver has none left.
    #[cold]
    fn allocate_outside(operation: &'static str, len: usize, cache: &PinnedCache) -> Result<Self> {
        match Self::allocate_uncached(operation, len, cache) {
            Err(error) if error.is_out_of_memory() => {
                cache.trim(0)?;
                Self::allocate_uncached(operation, len, cache)
            }
            result => result,
        }
    }

    fn allocate_uncached(operation: &'static str, len: usize, cache: &PinnedCache) -> Result<Self> {
        let context = cache.context();
        match cache.options().node {
            Some(node) => Self::allocate_on_node(operation, context, len, node),
            None => {
                let flags = PinnedFlags::PORTABLE | PinnedFlags::DEVICE_MAP;
                Self::allocate(operation, context, len, flags)
            }
        }
    }
}

impl Cached {
    /// Returns the memory to the cache.
    pub(super) fn free(&self, pointer: NonNull<u8>, bytes: usize) -> Result<()> {
        let user = self.user.as_ref();
        // SAFETY: the memory came from this cache with this size and alignment. The buffer is being
        // dropped, so the host does not use it any more, and only a copy on the stream `user` may.
        unsafe { self.cache.free(user, pointer, bytes, self.alignment) }
    }
}
