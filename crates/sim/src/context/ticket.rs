//! The schedule: the dependencies of work, and the choice of what runs next.
//!
//! Work is queued as a graph of tickets. Work in a stream waits for the earlier work of the stream, and for what the rules of default
//! streams and events add. The seed chooses among the work that is ready.
//!
//! To make an order repeatable, queued work is held back until the host requests its result. A wait releases the work that it depends on,
//! and a query releases one operation. Otherwise work starts only after a delay: with several workers [`PATIENCE`] after it was queued,
//! with one worker when nothing was queued for [`IDLENESS`].
//!
//! Waking a worker takes longer than a small kernel. A waiting thread therefore runs work itself if nothing else can run, which changes no
//! order.

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
