//! Raw driver handles.

use std::fmt;

/// A driver handle: a pointer that identifies an object and is never dereferenced.
pub(crate) struct Handle<T>(*mut T);

// SAFETY: the pointer is only an identifier. The driver alone dereferences it, and NVIDIA documents the driver's
// functions as callable from any thread.
unsafe impl<T> Send for Handle<T> {}
// SAFETY: the pointer is only an identifier. The driver alone dereferences it, and NVIDIA documents the driver's
// functions as callable from any thread; sharing the identifier shares no memory of this process.
unsafe impl<T> Sync for Handle<T> {}

impl<T> Handle<T> {
    #[inline]
    pub(crate) fn new(raw: *mut T) -> Self {
        Self(raw)
    }

    #[inline]
    pub(crate) fn raw(&self) -> *mut T {
        self.0
    }

    /// Clears the handle, so that its owner does not destroy the object.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.0 = std::ptr::null_mut();
    }

    #[inline]
    pub(crate) fn is_cleared(&self) -> bool {
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
