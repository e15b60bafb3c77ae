//! The capture dependencies of streams: queries and changes.

use curium_sys::CUgraphEdgeData;

use crate::host_pointer::HostPtr;
use crate::object::capture::Member;

/// The list of nodes that was returned to the caller: it remains valid until the next query.
#[derive(Default)]
pub(crate) struct Listed {
    pub(crate) nodes: Vec<HostPtr>,
    pub(crate) data: Vec<CUgraphEdgeData>,
}

impl Member {
    /// Writes the nodes to a list for a caller.
    pub(crate) fn list(&mut self) {
        self.listed.nodes = self
            .tips
            .iter()
            .map(|tip| HostPtr(tip.from.as_raw().cast()))
            .collect();
        self.listed.data = self.tips.iter().map(|tip| tip.data).collect();
    }
}
