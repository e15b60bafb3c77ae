//! Captures: streams whose work becomes nodes of a graph instead of running.
//!
//! A capture begins in one stream, its origin. Other streams join it when they wait for events that were recorded in it. For each of its
//! streams it records the dependencies of the next node. A call that breaks the rules invalidates the captures that it touches: they end
//! without a graph.

mod conflict;
mod dependencies;
mod event;
mod mode;
mod recapture;

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::Ordering;

use curium_sys::{
    CUgraph, CUgraph_st, CUgraphEdgeData, CUgraphNode, CUresult, CUstream_st, CUstreamCaptureMode,
    CUstreamCaptureStatus,
};

use self::dependencies::Listed;
pub(crate) use self::event::Captured;
use crate::argument::{ConstPointer, Pointer};
use crate::driver::graph::{Content, Edge};
use crate::driver::stream::{Class, this_thread};
use crate::driver::{Driver, Graph, Node, Result, State, Stream};
use crate::handle::Id;

/// A capture that has begun and not ended.
pub(crate) struct Capture {
    number: u64,
    graph: Id<Graph>,
    /// `true` if the graph belongs to the caller, who keeps it when the capture fails.
    is_into_existing_graph: bool,
    mode: CUstreamCaptureMode,
    /// The thread that began it.
    thread: u64,
    origin: Id<Stream>,
    is_valid: bool,
    /// In a recapture, the nodes that have no new work yet, in the order of their creation.
    remaining_nodes: Option<VecDeque<Id<Node>>>,
    members: Vec<Member>,
}

/// A stream in a capture.
struct Member {
    stream: Id<Stream>,
    /// The dependencies of the next node.
    tips: Vec<Edge>,
    listed: Listed,
}

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Driver {
    /// Begins a capture that permits potentially unsafe calls, as before modes were introduced.
    pub(crate) fn cuStreamBeginCapture(&self, stream: Pointer<CUstream_st>) -> Result {
        self.cuStreamBeginCapture_v2(stream, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED)
    }

    pub(crate) fn cuStreamBeginCapture_v2(
        &self,
        stream: Pointer<CUstream_st>,
        mode: CUstreamCaptureMode,
    ) -> Result {
        check_mode(mode)?;
        let mut state = self.lock();
        let origin = self.capturable(&mut state, stream)?;
        let graph = state.new_graph(None);
        self.begin_capture(&mut state, Capture::new(graph, origin, mode));
        Ok(())
    }

    pub(crate) fn cuStreamBeginCaptureToGraph(
        &self,
        stream: Pointer<CUstream_st>,
        graph: Pointer<CUgraph_st>,
        after: ConstPointer<CUgraphNode>,
        data: ConstPointer<CUgraphEdgeData>,
        count: usize,
        mode: CUstreamCaptureMode,
    ) -> Result {
        check_mode(mode)?;
        let mut state = self.lock();
        let graph = state.graph(graph)?;
        let origin = self.capturable(&mut state, stream)?;
        let tips = state.edges(graph, after, data, count)?;
        if state.is_captured_into(graph) {
            return Err(CUresult::CUDA_ERROR_ILLEGAL_STATE);
        }
        let mut capture = Capture {
            is_into_existing_graph: true,
            ..Capture::new(graph, origin, mode)
        };
        capture.join(origin, tips);
        self.begin_capture(&mut state, capture);
        Ok(())
    }

    pub(crate) fn cuStreamEndCapture(
        &self,
        stream: Pointer<CUstream_st>,
        graph: Pointer<CUgraph>,
    ) -> Result {
        let mut state = self.lock();
        let stream = self.stream(&mut state, stream)?;
        state.expect_no_implicit_wait(stream, false)?;
        let capture = state
            .capture_mut(stream)
            .ok_or(CUresult::CUDA_ERROR_ILLEGAL_STATE)?;
        if capture.origin != stream {
            capture.is_valid = false;
            return Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
        }
        if !capture.is_relaxed() && capture.thread != this_thread() {
            return Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
        }
        let number = capture.number;
        let is_new_graph = !capture.is_into_existing_graph;
        let ended = state.end_capture(number);
        self.capturing
            .store(!state.captures.is_empty(), Ordering::Release);
        graph.write_if_not_null(ended.map_or(std::ptr::null_mut(), Id::as_raw));
        if let Ok(captured) = ended
            && is_new_graph
            && graph.is_null()
        {
            // Nobody can use the graph.
            state.remove_graph(captured);
        }
        self.call_destructors(state);
        ended.map(|_| ())
    }
}

impl Driver {
    /// Returns a stream in which a capture can begin.
    fn capturable(&self, state: &mut State, stream: Pointer<CUstream_st>) -> Result<Id<Stream>> {
        let id = self.stream(state, stream)?;
        state.expect_no_implicit_wait(id, false)?;
        if state.is_legacy(id) {
            return Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        }
        if state.is_capturing(id) {
            Err(CUresult::CUDA_ERROR_ILLEGAL_STATE)
        } else {
            Ok(id)
        }
    }

    fn begin_capture(&self, state: &mut State, mut capture: Capture) {
        capture.number = state.next_number();
        state.captures.push(capture);
        self.capturing.store(true, Ordering::Release);
    }

    /// Enqueues work on a stream, or adds a node if the stream captures.
    pub(crate) fn enqueue(
        &self,
        state: &mut State,
        stream: Id<Stream>,
        content: Content,
    ) -> Result {
        if state.is_capturing(stream) {
            return state.add_captured(stream, content);
        }
        self.queue(state, stream, content.into_work());
        Ok(())
    }
}

/// Checks that a mode exists.
fn check_mode(mode: CUstreamCaptureMode) -> Result {
    if mode.0 > CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED.0 {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    Ok(())
}

impl Capture {
    fn new(graph: Id<Graph>, origin: Id<Stream>, mode: CUstreamCaptureMode) -> Self {
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

    fn is_relaxed(&self) -> bool {
        self.mode == CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED
    }

    fn status(&self) -> CUstreamCaptureStatus {
        if self.is_valid {
            CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE
        } else {
            CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_INVALIDATED
        }
    }

    /// Returns `true` if nodes of a graph that is captured again have no new work.
    fn is_incomplete(&self) -> bool {
        self.remaining_nodes
            .as_ref()
            .is_some_and(|nodes| !nodes.is_empty())
    }

    fn member(&self, stream: Id<Stream>) -> Option<&Member> {
        self.members.iter().find(|member| member.stream == stream)
    }

    fn member_mut(&mut self, stream: Id<Stream>) -> Option<&mut Member> {
        self.members
            .iter_mut()
            .find(|member| member.stream == stream)
    }

    /// Adds `tips` to the dependencies of the stream's next node; a stream that is not in the capture joins it.
    fn join(&mut self, stream: Id<Stream>, tips: Vec<Edge>) {
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
    fn add(&mut self, tips: Vec<Edge>) {
        for tip in tips {
            if self.tips.iter().all(|other| other.from != tip.from) {
                self.tips.push(tip);
            }
        }
    }
}

impl State {
    pub(super) fn capture(&self, stream: Id<Stream>) -> Option<&Capture> {
        self.captures
            .iter()
            .find(|capture| capture.member(stream).is_some())
    }

    fn capture_mut(&mut self, stream: Id<Stream>) -> Option<&mut Capture> {
        self.captures
            .iter_mut()
            .find(|capture| capture.member(stream).is_some())
    }

    pub(crate) fn is_capturing(&self, stream: Id<Stream>) -> bool {
        self.capture(stream).is_some()
    }

    /// Returns `true` if a capture adds nodes to a graph.
    pub(super) fn is_captured_into(&self, graph: Id<Graph>) -> bool {
        self.captures.iter().any(|capture| capture.graph == graph)
    }

    /// Returns the graph that a stream adds nodes to.
    pub(super) fn captured_graph(&self, stream: Id<Stream>) -> Option<Id<Graph>> {
        self.capture(stream).map(|capture| capture.graph)
    }

    fn is_legacy(&self, stream: Id<Stream>) -> bool {
        self.streams
            .get(stream)
            .is_some_and(|stream| stream.class == Class::Legacy)
    }

    /// Adds a node after the stream's current dependencies.
    pub(super) fn add_captured(&mut self, stream: Id<Stream>, content: Content) -> Result {
        let capture = self
            .capture(stream)
            .ok_or(CUresult::CUDA_ERROR_ILLEGAL_STATE)?;
        if !capture.is_valid {
            return Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        }
        let after = capture
            .member(stream)
            .map(|member| member.tips.clone())
            .unwrap_or_default();
        let node = match capture.remaining_nodes {
            Some(_) => self.recapture(stream, content, &after)?,
            None => self.add_node(capture.graph, content, after),
        };
        if let Some(member) = self
            .capture_mut(stream)
            .and_then(|capture| capture.member_mut(stream))
        {
            member.tips = vec![Edge::from(node)];
        }
        Ok(())
    }

    /// Ends a capture, and returns the graph if it is valid.
    fn end_capture(&mut self, number: u64) -> Result<Id<Graph>> {
        let position = self
            .captures
            .iter()
            .position(|capture| capture.number == number);
        let capture = self
            .captures
            .remove(position.ok_or(CUresult::CUDA_ERROR_ILLEGAL_STATE)?);
        let outcome = match (capture.is_valid, self.is_joined(&capture)) {
            (false, _) => Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED),
            (true, false) => Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED),
            (true, true) if capture.is_incomplete() => {
                Err(CUresult::CUDA_ERROR_GRAPH_RECAPTURE_FAILURE)
            }
            (true, true) => Ok(capture.graph),
        };
        if outcome.is_err() {
            self.lose_records(number);
        }
        if outcome.is_err() && !capture.is_into_existing_graph {
            self.remove_graph(capture.graph);
        }
        outcome
    }

    /// Returns `true` if the origin waits for all work of the other streams of a capture.
    fn is_joined(&self, capture: &Capture) -> bool {
        let mut unvisited: Vec<Id<Node>> = capture
            .member(capture.origin)
            .into_iter()
            .flat_map(|member| member.tips.iter().map(|tip| tip.from))
            .collect();
        let mut seen: HashSet<Id<Node>> = HashSet::new();
        while let Some(node) = unvisited.pop() {
            if seen.insert(node) {
                unvisited.extend(
                    self.nodes
                        .get(node)
                        .into_iter()
                        .flat_map(|node| node.after.iter().map(|edge| edge.from)),
                );
            }
        }
        capture
            .members
            .iter()
            .flat_map(|member| member.tips.iter().map(|tip| tip.from))
            .all(|node| seen.contains(&node))
    }

    /// Invalidates the captures that began in a destroyed stream.
    pub(super) fn abandon_captures(&mut self, is_gone: impl Fn(Id<Stream>) -> bool) {
        let gone: Vec<u64> = self
            .captures
            .iter()
            .filter(|capture| is_gone(capture.origin))
            .map(|capture| capture.number)
            .collect();
        for number in gone {
            for capture in self
                .captures
                .iter_mut()
                .filter(|capture| capture.number == number)
            {
                capture.is_valid = false;
            }
            // The graph is unreachable, and is therefore removed.
            self.end_capture(number).map(|_| ()).unwrap_or_default();
        }
    }
}
