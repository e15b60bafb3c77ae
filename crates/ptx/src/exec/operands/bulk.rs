//! Bulk reductions.

/// The operation of a reduction on each element, and the element's size in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BulkReduction {
    pub(crate) change: Change,
    pub(crate) bytes: u64,
}

/// Combines an element in memory with another, as bits.
pub(crate) type Change = fn(u64, u64) -> u64;
