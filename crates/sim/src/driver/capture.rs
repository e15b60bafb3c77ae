//! The driver's part in captures.
//!
//! A capture begins in one stream, its origin. Other streams join it when they wait for events that
//! were recorded in it. For each of its streams it records the dependencies of the next node. A
//! call that breaks the rules invalidates the captures that it touches: they end without a graph.

pub(crate) mod conflict;
pub(crate) mod dependencies;
pub(crate) mod event;
pub(crate) mod mode;
pub(crate) mod recapture;

use std::collections::HashSet;

use curium_sys::CUresult;

use crate::context::stream::Stream;
use crate::driver::locked::Locked;
use crate::driver::state::State;
use crate::handle::Id;
use crate::object::capture::Capture;
use crate::object::graph::content::Content;
use crate::object::graph::edge::Edge;
use crate::object::graph::{Graph, Node};
use crate::result::Result;

impl Locked<'_> {
    /// Enqueues work on a stream, or adds a node if the stream captures.
    pub(crate) fn enqueue(&mut self, stream: Id<Stream>, content: Content) -> Result {
        if self.captures.is_capturing(stream) {
            return self.add_captured(stream, content);
        }
        self.queue(stream, content.into_work());
        Ok(())
    }
}

/// The captures that have begun and not ended.
#[derive(Default)]
pub(crate) struct Captures {
    captures: Vec<Capture>,
}

impl Captures {
    pub(crate) fn is_empty(&self) -> bool {
        self.captures.is_empty()
    }

    pub(crate) fn begin(&mut self, capture: Capture) {
        self.captures.push(capture);
    }

    pub(crate) fn capture(&self, stream: Id<Stream>) -> Option<&Capture> {
        self.captures
            .iter()
            .find(|capture| capture.member(stream).is_some())
    }

    pub(crate) fn capture_mut(&mut self, stream: Id<Stream>) -> Option<&mut Capture> {
        self.captures
            .iter_mut()
            .find(|capture| capture.member(stream).is_some())
    }

    pub(crate) fn is_capturing(&self, stream: Id<Stream>) -> bool {
        self.capture(stream).is_some()
    }

    /// Returns `true` if a capture adds nodes to a graph.
    pub(crate) fn is_captured_into(&self, graph: Id<Graph>) -> bool {
        self.captures.iter().any(|capture| capture.graph == graph)
    }

    /// Returns the graph that a stream adds nodes to.
    pub(crate) fn captured_graph(&self, stream: Id<Stream>) -> Option<Id<Graph>> {
        self.capture(stream).map(|capture| capture.graph)
    }
}

impl State {
    /// Adds a node after the stream's current dependencies.
    pub(crate) fn add_captured(&mut self, stream: Id<Stream>, content: Content) -> Result {
        let capture = self
            .captures
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
            None => self.graphs.add_node(capture.graph, content, after),
        };
        if let Some(member) = self
            .captures
            .capture_mut(stream)
            .and_then(|capture| capture.member_mut(stream))
        {
            member.tips = vec![Edge::from(node)];
        }
        Ok(())
    }

    /// Ends a capture, and returns the graph if it is valid.
    pub(crate) fn end_capture(&mut self, number: u64) -> Result<Id<Graph>> {
        let position = self
            .captures
            .captures
            .iter()
            .position(|capture| capture.number == number);
        let capture = self
            .captures
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
            self.contexts.lose_records(number);
        }
        if outcome.is_err() && !capture.is_into_existing_graph {
            self.graphs.remove_graph(capture.graph);
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
                    self.graphs
                        .get_node(node)
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
    pub(crate) fn abandon_captures(&mut self, is_gone: impl Fn(Id<Stream>) -> bool) {
        let gone: Vec<u64> = self
            .captures
            .captures
            .iter()
            .filter(|capture| is_gone(capture.origin))
            .map(|capture| capture.number)
            .collect();
        for number in gone {
            for capture in self
                .captures
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
