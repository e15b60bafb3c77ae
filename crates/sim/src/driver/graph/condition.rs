//! Conditional nodes, which run their bodies depending on a value.

use std::sync::Arc;

use curium_sys::{
    CUctx_st, CUgraph_st, CUgraphConditionalHandle, CUgraphConditionalNodeType,
    CUgraphConditionalNodeType_enum, CUresult,
};

use super::Graph;
use crate::argument::Pointer;
use crate::driver::context::named_context;
use crate::driver::{Context, Driver, Result};
use crate::handle::Id;
use crate::memory::HostPtr;

/// A conditional node.
#[derive(Clone)]
pub(crate) struct Condition {
    pub(super) handle: CUgraphConditionalHandle,
    pub(super) kind: CUgraphConditionalNodeType,
    pub(super) bodies: Vec<Id<Graph>>,
    /// The conditional handles of the caller.
    pub(super) listed: Arc<[HostPtr]>,
}

/// The conditional values of a graph, each with its value at the start of a launch.
#[derive(Clone, Default)]
pub(crate) struct Conditions(Vec<Value>);

#[derive(Clone, Copy)]
struct Value {
    handle: CUgraphConditionalHandle,
    /// The context that the handle was created in.
    context: Id<Context>,
    value: u32,
    is_assigned_at_launch: bool,
    default: u32,
}

const ASSIGN_DEFAULT: u32 = 1;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Driver {
    pub(crate) fn cuGraphConditionalHandleCreate(
        &self,
        handle: Pointer<CUgraphConditionalHandle>,
        graph: Pointer<CUgraph_st>,
        context: Pointer<CUctx_st>,
        default: u32,
        flags: u32,
    ) -> Result {
        let output = handle.required()?;
        if flags & !ASSIGN_DEFAULT != 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let context = named_context(context)?;
        let mut state = self.lock();
        state.valid_context(context)?;
        let graph = state.graph(graph)?;
        let handle = state.next_number();
        let value = Value {
            handle,
            context,
            value: 0,
            is_assigned_at_launch: flags & ASSIGN_DEFAULT != 0,
            default,
        };
        if let Some(graph) = state.graphs.get_mut(graph) {
            graph.conditions.0.push(value);
        }
        output.write(handle)
    }
}

impl Conditions {
    /// Returns the context that a handle was created in.
    pub(super) fn context(&self, handle: CUgraphConditionalHandle) -> Option<Id<Context>> {
        let value = self.0.iter().find(|value| value.handle == handle)?;
        Some(value.context)
    }

    /// Returns the handles.
    pub(super) fn handles(&self) -> impl Iterator<Item = CUgraphConditionalHandle> {
        self.0.iter().map(|value| value.handle)
    }

    /// Adds the values of a child graph.
    pub(super) fn extend(&mut self, parts: Self) {
        self.0.extend(parts.0);
    }

    /// Takes the current values of the handles that both have.
    pub(super) fn keep_values(&mut self, old: &Self) {
        for value in &mut self.0 {
            if let Some(old) = old.0.iter().find(|old| old.handle == value.handle) {
                value.value = old.value;
            }
        }
    }

    /// Returns every value at the start of a launch.
    pub(super) fn begin(&mut self) {
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

    pub(super) fn get(&self, handle: CUgraphConditionalHandle) -> u32 {
        self.0
            .iter()
            .find(|value| value.handle == handle)
            .map_or(0, |value| value.value)
    }
}

impl Condition {
    /// Returns the number of bodies that a node of this kind may have.
    pub(super) fn allows(kind: CUgraphConditionalNodeType, bodies: u32) -> bool {
        match kind {
            CUgraphConditionalNodeType_enum::CU_GRAPH_COND_TYPE_IF => (1..=2).contains(&bodies),
            CUgraphConditionalNodeType_enum::CU_GRAPH_COND_TYPE_WHILE => bodies == 1,
            CUgraphConditionalNodeType_enum::CU_GRAPH_COND_TYPE_SWITCH => bodies > 0,
            _ => false,
        }
    }

    /// Returns `true` if another node is of the same kind with as many bodies.
    pub(super) fn has_same_shape(&self, other: &Self) -> bool {
        self.kind == other.kind && self.bodies.len() == other.bodies.len()
    }

    /// Returns the index of the next body for a value, given the number of bodies that ran.
    pub(super) fn chooses(&self, value: u32, ran: u64) -> Option<usize> {
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
