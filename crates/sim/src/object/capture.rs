//! Captures: streams whose work becomes nodes of a graph instead of running.
//!
//! A capture begins in one stream, its origin. Other streams join it when they wait for events that
//! were recorded in it. For each of its streams it records the dependencies of the next node. A
//! call that breaks the rules invalidates the captures that it touches: they end without a graph.

use std::collections::VecDeque;

use curium_sys::{CUgraphEdgeData, CUstreamCaptureMode, CUstreamCaptureStatus};

use crate::context::stream::{Stream, this_thread};
use crate::handle::Id;
use crate::host_pointer::HostPtr;
use crate::object::graph::edge::Edge;
use crate::object::graph::{Graph, Node};

/// A capture that has begun and not ended.
pub(crate) struct Capture {
    pub(crate) number: u64,
    pub(crate) graph: Id<Graph>,
    /// `true` if the graph belongs to the caller, who keeps it when the capture fails.
    pub(crate) is_into_existing_graph: bool,
    pub(crate) mode: CUstreamCaptureMode,
    /// The thread that began it.
    pub(crate) thread: u64,
    pub(crate) origin: Id<Stream>,
    pub(crate) is_valid: bool,
    /// In a recapture, the nodes that have no new work yet, in the order of their creation.
    pub(crate) remaining_nodes: Option<VecDeque<Id<Node>>>,
    pub(crate) members: Vec<Member>,
}

/// A stream in a capture.
pub(crate) struct Member {
    pub(crate) stream: Id<Stream>,
    /// The dependencies of the next node.
    pub(crate) tips: Vec<Edge>,
    pub(crate) listed: Listed,
}

/// The list of nodes that was returned to the caller: it remains valid until the next query.
#[derive(Default)]
pub(crate) struct Listed {
    pub(crate) nodes: Vec<HostPtr>,
    pub(crate) data: Vec<CUgraphEdgeData>,
}

/// The last record of an event, if it was in a capture. Other streams of the capture can wait for
/// it.
#[derive(Clone)]
pub(crate) struct Captured {
    pub(crate) capture: u64,
    pub(crate) tips: Vec<Edge>,
    /// `true` if the capture ended without a graph, which invalidates the record.
    pub(crate) is_lost: bool,
}

impl Capture {
    pub(crate) fn new(graph: Id<Graph>, origin: Id<Stream>, mode: CUstreamCaptureMode) -> Self {
        let thread = this_thread();
        let mut capture = Self {
            number: 0,
            graph,
            is_into_existing_graph: false,
            mode,
            thread,
            origin,
            is_valid: true,
            remaining_nodes: None,
            members: Vec::new(),
        };
        capture.join(origin, Vec::new());
        capture
    }

    pub(crate) fn is_relaxed(&self) -> bool {
        self.mode == CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED
    }

    /// Returns `true` if this mode forbids potentially unsafe calls of a thread.
    pub(crate) fn forbids_unsafe(&self, mode: CUstreamCaptureMode, thread: u64) -> bool {
        let is_own = self.thread == thread && !self.is_relaxed();
        match mode {
            CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED => false,
            CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL => is_own,
            _ => is_own || self.mode == CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL,
        }
    }

    pub(crate) fn status(&self) -> CUstreamCaptureStatus {
        if self.is_valid {
            CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE
        } else {
            CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_INVALIDATED
        }
    }

    /// Returns `true` if nodes of a graph that is captured again have no new work.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.remaining_nodes
            .as_ref()
            .is_some_and(|nodes| !nodes.is_empty())
    }

    pub(crate) fn member(&self, stream: Id<Stream>) -> Option<&Member> {
        self.members.iter().find(|member| member.stream == stream)
    }

    pub(crate) fn member_mut(&mut self, stream: Id<Stream>) -> Option<&mut Member> {
        self.members
            .iter_mut()
            .find(|member| member.stream == stream)
    }

    /// Adds `tips` to the dependencies of the stream's next node; a stream that is not in the
    /// capture joins it.
    pub(crate) fn join(&mut self, stream: Id<Stream>, tips: Vec<Edge>) {
        match self.member_mut(stream) {
            Some(member) => member.add(tips),
            None => self.members.push(Member {
                stream,
                tips,
                listed: Listed::default(),
            }),
        }
    }
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

    pub(crate) fn add(&mut self, tips: Vec<Edge>) {
        for tip in tips {
            if self.tips.iter().all(|other| other.from != tip.from) {
                self.tips.push(tip);
            }
        }
    }
}
