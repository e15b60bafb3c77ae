//! Tickets: queued operations, by number, and the streams that they belong to.

use crate::context::Context;
use crate::handle::Id;

/// One queued operation.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct Ticket(pub(crate) u64);

#[cfg(test)]
impl Ticket {
    pub(crate) fn from_number(number: u64) -> Self {
        Self(number)
    }
}

/// The stream that work is submitted to, with its context and device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) device: usize,
    pub(crate) context: Id<Context>,
    /// The number of the stream.
    pub(crate) stream: u64,
}
