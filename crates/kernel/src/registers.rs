//! Values in registers of threads.

/// A value of each thread of a block, in registers. Code of the block moves it as a whole; only
/// code of threads reads it.
///
/// [`Block::threads`](crate::Block::threads) returns it, and
/// [`Block::threads_with`](crate::Block::threads_with) passes each thread its own value.
#[derive(Copy)]
#[repr(transparent)]
pub struct Registers<T>(pub(crate) T);

// Not derived: that would run `T::clone` of a user in code of the block, with a value that differs
// between threads.
impl<T: Copy> Clone for Registers<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Copy + Sync> Registers<T> {
    /// Creates registers with the same value in each thread.
    #[inline(always)]
    pub const fn new(value: T) -> Self {
        Self(value)
    }
}
