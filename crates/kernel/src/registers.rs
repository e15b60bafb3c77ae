//! Values in registers of threads.

/// A value of each thread of a block, in registers. Code of the block moves it as a whole; only code of threads reads it.
///
/// [`Block::threads`](crate::Block::threads) returns it, and [`Block::threads_with`](crate::Block::threads_with) passes each thread its own
/// value.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Registers<T>(pub(crate) T);

impl<T: Copy + Sync> Registers<T> {
    /// Creates registers with the same value in each thread.
    #[inline(always)]
    pub const fn new(value: T) -> Self {
        Self(value)
    }
}
