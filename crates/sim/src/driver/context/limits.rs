//! The maximum of the stack size.

/// The maximum stack size of a thread, and the maximum local memory of a kernel; hardware refuses larger values.
pub(crate) const MAX_STACK: usize = (512 << 10) - 1;
