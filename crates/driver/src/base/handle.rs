//! Raw driver handles.

use std::fmt;

/// A driver handle: a pointer that identifies an object and is never dereferenced.
pub struct Handle<T>(*mut T);

// SAFETY: the pointer is only an identifier. The driver alone dereferences it, and NVIDIA documents
// the driver's functions as callable from any thread.
unsafe impl<T> Send for Handle<T> {}
// SAFETY: the pointer is only an identifier. The driver alone dereferences it, and NVIDIA documents
// the driver's functions as callable from any thread; sharing the identifier shares no memory of
// this process.
unsafe impl<T> Sync for Handle<T> {}

impl<T> Handle<T> {
    /// Wraps a handle.
    #[must_use]
    #[inline]
    pub fn new(raw: *mut T) -> Self {
        Self(raw)
    }

    /// Returns the handle.
    #[must_use]
    #[inline]
    pub fn raw(&self) -> *mut T {
        self.0
    }

    /// Clears the handle, so that its owner does not destroy the object.
    #[inline]
    pub fn clear(&mut self) {
        self.0 = std::ptr::null_mut();
    }

    /// Returns `true` if the handle was cleared.
    #[must_use]
    #[inline]
    pub fn is_cleared(&self) -> bool {
        self.0.is_null()
    }
}

impl<T> Clone for Handle<T> {
    #[inline]
    fn clone(&self) -> Self {
        Self(self.0)
    }
}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Pointer::fmt(&self.0, formatter)
    }
}
