//! Addresses of elements.

/// An address. It is `Sync`, so that errors name [`BlockCodeOnly`](crate::block::BlockCodeOnly) and
/// not a pointer.
pub(crate) struct Address<T: ?Sized>(pub(crate) *mut T);

impl<T: ?Sized> Clone for Address<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for Address<T> {}

// SAFETY: an address is a number. The types that use it for accesses are not `Sync`.
unsafe impl<T: ?Sized> Sync for Address<T> {}

impl<T> Address<T> {
    /// Returns the address of an element.
    ///
    /// # Safety
    ///
    /// The index is in bounds.
    #[inline(always)]
    pub(crate) unsafe fn add(self, index: usize) -> Self {
        // SAFETY: the caller guarantees that the index is in bounds.
        Self(unsafe { self.0.add(index) })
    }

    /// Returns an element.
    ///
    /// # Safety
    ///
    /// The index is in bounds, and the element is not accessed in another way for `'a`.
    #[inline(always)]
    pub(crate) unsafe fn get_mut<'a>(self, index: usize) -> &'a mut T {
        // SAFETY: the caller guarantees that the index is in bounds.
        let element = unsafe { self.0.add(index) };
        // SAFETY: the caller guarantees that nothing else accesses the element.
        unsafe { &mut *element }
    }
}

impl<T: Copy> Address<T> {
    /// Reads an element.
    ///
    /// # Safety
    ///
    /// The index is in bounds, and no other thread writes the element at the same time.
    #[inline(always)]
    pub(crate) unsafe fn read(self, index: usize) -> T {
        // SAFETY: the caller guarantees that the index is in bounds.
        let element = unsafe { self.0.add(index) };
        // SAFETY: the caller guarantees that nothing writes the element.
        unsafe { element.read() }
    }

    /// Writes an element.
    ///
    /// # Safety
    ///
    /// The index is in bounds, and no other thread accesses the element at the same time.
    #[inline(always)]
    pub(crate) unsafe fn write(self, index: usize, value: T) {
        // SAFETY: the caller guarantees that the index is in bounds.
        let element = unsafe { self.0.add(index) };
        // SAFETY: the caller guarantees that nothing else accesses the element.
        unsafe { element.write(value) };
    }
}
