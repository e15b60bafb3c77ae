//! Ranges of addresses that nodes access.

/// A range of addresses that a node accesses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccessedRange {
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) write: bool,
}
