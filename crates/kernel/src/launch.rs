//! A launch, which the parameters of a kernel borrow.

use core::marker::PhantomData;

/// A launch, as seen by one thread: parameters borrow it, so that none of them outlives the kernel.
#[doc(hidden)]
pub struct Launch {
    _not_send: PhantomData<*mut ()>,
}

impl Launch {
    /// # Safety
    ///
    /// This is called once in the entry point of a kernel.
    #[inline(always)]
    pub unsafe fn new() -> Self {
        Self {
            _not_send: PhantomData,
        }
    }
}
