//! Typed device pointers.

use std::fmt;
use std::marker::PhantomData;

use curium_sys::CUdeviceptr;

/// A pointer to elements of type `T` in memory that the device can access. It is one word and does
/// not keep the memory alive.
#[repr(transparent)]
pub struct DevicePointer<T> {
    raw: CUdeviceptr,
    _target: PhantomData<*mut T>,
}

// SAFETY: the address is a plain number that safe code cannot dereference.
unsafe impl<T> Send for DevicePointer<T> {}
// SAFETY: the address is a plain number that safe code cannot dereference.
unsafe impl<T> Sync for DevicePointer<T> {}

impl<T> DevicePointer<T> {
    /// Creates a pointer from the address `raw`, which may be any number.
    #[inline]
    #[must_use]
    pub const fn from_raw(raw: CUdeviceptr) -> Self {
        Self {
            raw,
            _target: PhantomData,
        }
    }

    /// Returns the null pointer.
    #[inline]
    #[must_use]
    pub const fn null() -> Self {
        Self::from_raw(0)
    }

    /// Returns `true` if this is the null pointer.
    #[inline]
    #[must_use]
    pub const fn is_null(self) -> bool {
        self.raw == 0
    }

    /// Returns the address.
    #[inline]
    #[must_use]
    pub const fn as_raw(self) -> CUdeviceptr {
        self.raw
    }

    /// Returns the pointer `count` elements further on, wrapping around at the end of the address
    /// space.
    #[inline]
    #[must_use]
    pub const fn wrapping_add(self, count: usize) -> Self {
        let bytes = (count as u64).wrapping_mul(size_of::<T>() as u64);
        Self::from_raw(self.raw.wrapping_add(bytes))
    }

    /// Casts to a pointer of another type.
    #[inline]
    #[must_use]
    pub const fn cast<U>(self) -> DevicePointer<U> {
        DevicePointer::from_raw(self.raw)
    }
}

impl<T> Clone for DevicePointer<T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for DevicePointer<T> {}

impl<T> PartialEq for DevicePointer<T> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

impl<T> Eq for DevicePointer<T> {}

impl<T> fmt::Debug for DevicePointer<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:#x}", self.raw)
    }
}

const _: () = assert!(
    size_of::<DevicePointer<u8>>() == 8,
    "kernels take device pointers as one word"
);
