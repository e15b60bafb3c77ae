//! Events in captures: points that other streams of the capture can wait for.

use crate::object::graph::edge::Edge;

/// The last record of an event, if it was in a capture.
#[derive(Clone)]
pub(crate) struct Captured {
    pub(crate) capture: u64,
    pub(crate) tips: Vec<Edge>,
    /// `true` if the capture ended without a graph, which invalidates the record.
    pub(crate) is_lost: bool,
}
