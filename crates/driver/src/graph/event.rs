//! Event record nodes and event wait nodes.

use super::node::{EventRecordNode, EventWaitNode, Node};
use super::resource::Resource;
use super::{Graph, NewNode};
use crate::call;
use crate::{Context, Error, Event, Result};

impl Graph {
    /// Adds an event record node that depends on the nodes in `after`. Work outside the graph can
    /// wait for `event`.
    ///
    /// CUDA: `cuGraphAddEventRecordNode`.
    ///
    /// # Errors
    ///
    /// An argument error if the event belongs to another context or driver, or if a node in `after`
    /// belongs to another graph or was removed.
    #[doc(alias = "cuGraphAddEventRecordNode")]
    #[doc(alias = "cudaGraphAddEventRecordNode")]
    pub fn add_event_record(&mut self, after: &[Node], event: &Event) -> Result<EventRecordNode> {
        check_event(self.context(), event, "Graph::add_event_record")?;
        let resource = Some(Resource::Event(event.share()));
        let added = self.add("Graph::add_event_record", after, resource, |driver, arguments| {
            let NewNode {
                node,
                graph,
                after,
                count,
            } = arguments;
            // SAFETY: the graph, the nodes and the event are live, and the pointers are valid.
            unsafe { call!(driver, cuGraphAddEventRecordNode(node, graph, after, count, event.as_raw()) creates arguments.created()) }
        });
        added.map(EventRecordNode)
    }

    /// Adds an event wait node that depends on the nodes in `after`. It waits for the most recent
    /// record of `event` at the time of the launch.
    ///
    /// CUDA: `cuGraphAddEventWaitNode`.
    ///
    /// # Errors
    ///
    /// An argument error if the event belongs to another context or driver, or if a node in `after`
    /// belongs to another graph or was removed.
    #[doc(alias = "cuGraphAddEventWaitNode")]
    #[doc(alias = "cudaGraphAddEventWaitNode")]
    pub fn add_event_wait(&mut self, after: &[Node], event: &Event) -> Result<EventWaitNode> {
        check_event(self.context(), event, "Graph::add_event_wait")?;
        let resource = Some(Resource::Event(event.share()));
        let added = self.add("Graph::add_event_wait", after, resource, |driver, arguments| {
            let NewNode {
                node,
                graph,
                after,
                count,
            } = arguments;
            // SAFETY: the graph, the nodes and the event are live, and the pointers are valid.
            unsafe {
                call!(driver, cuGraphAddEventWaitNode(node, graph, after, count, event.as_raw()) creates arguments.created())
            }
        });
        added.map(EventWaitNode)
    }

    /// Sets the event that a node records. Existing executable graphs are not affected.
    ///
    /// CUDA: `cuGraphEventRecordNodeSetEvent`.
    ///
    /// # Errors
    ///
    /// An argument error if the event belongs to another context or driver, or if the node belongs
    /// to another graph or was removed.
    #[doc(alias = "cuGraphEventRecordNodeSetEvent")]
    #[doc(alias = "cudaGraphEventRecordNodeSetEvent")]
    pub fn set_event_record(&mut self, node: EventRecordNode, event: &Event) -> Result<()> {
        check_event(self.context(), event, "Graph::set_event_record")?;
        let mut state = self.tree.lock()?;
        let raw = state.member("Graph::set_event_record", self.number, *node)?;
        // SAFETY: the node and the event are live and belong to this driver.
        unsafe {
            call!(
                self.driver(),
                cuGraphEventRecordNodeSetEvent(raw, event.as_raw())
            )
        }?;
        let before = state.replace_resource(*node, Some(Resource::Event(event.share())));
        drop(state);
        drop(before);
        Ok(())
    }

    /// Sets the event that a node waits for. Existing executable graphs are not affected.
    ///
    /// CUDA: `cuGraphEventWaitNodeSetEvent`.
    ///
    /// # Errors
    ///
    /// An argument error if the event belongs to another context or driver, or if the node belongs
    /// to another graph or was removed.
    #[doc(alias = "cuGraphEventWaitNodeSetEvent")]
    #[doc(alias = "cudaGraphEventWaitNodeSetEvent")]
    pub fn set_event_wait(&mut self, node: EventWaitNode, event: &Event) -> Result<()> {
        check_event(self.context(), event, "Graph::set_event_wait")?;
        let mut state = self.tree.lock()?;
        let raw = state.member("Graph::set_event_wait", self.number, *node)?;
        // SAFETY: the node and the event are live and belong to this driver.
        unsafe {
            call!(
                self.driver(),
                cuGraphEventWaitNodeSetEvent(raw, event.as_raw())
            )
        }?;
        let before = state.replace_resource(*node, Some(Resource::Event(event.share())));
        drop(state);
        drop(before);
        Ok(())
    }

    /// Returns `true` if the node records `event`.
    ///
    /// CUDA: `cuGraphEventRecordNodeGetEvent`.
    ///
    /// # Errors
    ///
    /// An argument error if the node is in another graph or was removed.
    #[doc(alias = "cuGraphEventRecordNodeGetEvent")]
    #[doc(alias = "cudaGraphEventRecordNodeGetEvent")]
    pub fn records(&self, node: EventRecordNode, event: &Event) -> Result<bool> {
        let state = self.tree.lock()?;
        let node = state.member("Graph::records", self.number, *node)?;
        let mut actual = std::ptr::null_mut();
        // SAFETY: the node is live, and `actual` is valid for writes.
        unsafe {
            call!(
                self.driver(),
                cuGraphEventRecordNodeGetEvent(node, &raw mut actual)
            )
        }?;
        Ok(actual == event.as_raw())
    }

    /// Returns `true` if the node waits for `event`.
    ///
    /// CUDA: `cuGraphEventWaitNodeGetEvent`.
    ///
    /// # Errors
    ///
    /// An argument error if the node is in another graph or was removed.
    #[doc(alias = "cuGraphEventWaitNodeGetEvent")]
    #[doc(alias = "cudaGraphEventWaitNodeGetEvent")]
    pub fn waits_for(&self, node: EventWaitNode, event: &Event) -> Result<bool> {
        let state = self.tree.lock()?;
        let node = state.member("Graph::waits_for", self.number, *node)?;
        let mut actual = std::ptr::null_mut();
        // SAFETY: the node is live, and `actual` is valid for writes.
        unsafe {
            call!(
                self.driver(),
                cuGraphEventWaitNodeGetEvent(node, &raw mut actual)
            )
        }?;
        Ok(actual == event.as_raw())
    }
}

/// Returns an error of `operation` unless `event` belongs to `context`.
pub(super) fn check_event(context: &Context, event: &Event, operation: &'static str) -> Result<()> {
    context.driver().check_same(event.driver(), operation)?;
    if event.context().as_raw() == context.as_raw() {
        return Ok(());
    }
    Err(Error::argument(
        operation,
        format!("context mismatch ({event:?} and the graph)"),
    ))
}
