//! Conditional nodes, which run their bodies depending on a value.

use std::sync::Arc;

use curium_sys::{
    CUgraphConditionalHandle, CUgraphConditionalNodeType, CUgraphConditionalNodeType_enum,
};

use crate::context::Context;
use crate::handle::Id;
use crate::host_pointer::HostPtr;
use crate::object::graph::Graph;

/// A conditional node.
#[derive(Clone)]
pub(crate) struct Condition {
    pub(crate) handle: CUgraphConditionalHandle,
    pub(crate) kind: CUgraphConditionalNodeType,
    pub(crate) bodies: Vec<Id<Graph>>,
    /// The conditional handles of the caller.
    pub(crate) listed: Arc<[HostPtr]>,
}

/// The conditional values of a graph, each with its value at the start of a launch.
#[derive(Clone, Default)]
pub(crate) struct Conditions(pub(crate) Vec<Value>);

#[derive(Clone, Copy)]
pub(crate) struct Value {
    pub(crate) handle: CUgraphConditionalHandle,
    /// The context that the handle was created in.
    pub(crate) context: Id<Context>,
    pub(crate) value: u32,
    pub(crate) is_assigned_at_launch: bool,
    pub(crate) default: u32,
}

impl Conditions {
    /// Returns the context that a handle was created in.
    pub(crate) fn context(&self, handle: CUgraphConditionalHandle) -> Option<Id<Context>> {
        let value = self.0.iter().find(|value| value.handle == handle)?;
        Some(value.context)
    }

    /// Returns the handles.
    pub(crate) fn handles(&self) -> impl Iterator<Item = CUgraphConditionalHandle> {
        self.0.iter().map(|value| value.handle)
    }

    /// Adds the values of a child graph.
    pub(crate) fn extend(&mut self, parts: Self) {
        self.0.extend(parts.0);
    }

    /// Takes the current values of the handles that both have.
    pub(crate) fn keep_values(&mut self, old: &Self) {
        for value in &mut self.0 {
            if let Some(old) = old.0.iter().find(|old| old.handle == value.handle) {
                value.value = old.value;
            }
        }
    }

    /// Returns every value at the start of a launch.
    pub(crate) fn begin(&mut self) {
        for value in self
            .0
            .iter_mut()
            .filter(|value| value.is_assigned_at_launch)
        {
            value.value = value.default;
        }
    }

    /// Sets a value from a kernel, if the graph has it.
    pub(crate) fn set(&mut self, handle: CUgraphConditionalHandle, value: u32) {
        for condition in self
            .0
            .iter_mut()
            .filter(|condition| condition.handle == handle)
        {
            condition.value = value;
        }
    }

    pub(crate) fn get(&self, handle: CUgraphConditionalHandle) -> u32 {
        self.0
            .iter()
            .find(|value| value.handle == handle)
            .map_or(0, |value| value.value)
    }
}

impl Condition {
    /// Returns the number of bodies that a node of this kind may have.
    pub(crate) fn allows(kind: CUgraphConditionalNodeType, bodies: u32) -> bool {
        match kind {
            CUgraphConditionalNodeType_enum::CU_GRAPH_COND_TYPE_IF => (1..=2).contains(&bodies),
            CUgraphConditionalNodeType_enum::CU_GRAPH_COND_TYPE_WHILE => bodies == 1,
            CUgraphConditionalNodeType_enum::CU_GRAPH_COND_TYPE_SWITCH => bodies > 0,
            _ => false,
        }
    }

    /// Returns `true` if another node is of the same kind with as many bodies.
    pub(crate) fn has_same_shape(&self, other: &Self) -> bool {
        self.kind == other.kind && self.bodies.len() == other.bodies.len()
    }

    /// Returns the index of the next body for a value, given the number of bodies that ran.
    pub(crate) fn chooses(&self, value: u32, ran: u64) -> Option<usize> {
        let body = match self.kind {
            CUgraphConditionalNodeType_enum::CU_GRAPH_COND_TYPE_WHILE if value != 0 => {
                return Some(0);
            }
            CUgraphConditionalNodeType_enum::CU_GRAPH_COND_TYPE_IF if ran == 0 => {
                usize::from(value == 0)
            }
            CUgraphConditionalNodeType_enum::CU_GRAPH_COND_TYPE_SWITCH if ran == 0 => {
                value as usize
            }
            _ => return None,
        };
        (body < self.bodies.len()).then_some(body)
    }
}
