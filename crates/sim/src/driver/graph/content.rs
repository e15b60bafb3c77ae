//! What a node of a graph does.

use std::sync::Arc;

use curium_sys::{
    CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUcontext, CUctx_st, CUdeviceptr, CUevent_st, CUfunc_st, CUgraphNodeType,
    CUmemorytype, CUresult,
};

use super::condition::Condition;
use super::{Graph, memory};
use crate::argument::Pointer;
use crate::driver::launch::parameters::Arguments;
use crate::driver::launch::{Launch, Shape};
use crate::driver::{Context, Driver, Event, Function, HostFunction, Result, State};
use crate::handle::Id;
use crate::memory::{End, Fill, HostPtr};

/// What a node does, with all that it needs for that but for parts that are graphs.
#[derive(Clone)]
pub(crate) enum Content {
    Empty,
    Kernel(Arc<KernelNode>),
    Copy(Copy3D),
    Set(Set),
    Host(HostFunction),
    Child(Id<Graph>),
    Record(Id<Event>),
    Wait(Id<Event>),
    Allocate(memory::Allocation),
    Free(CUdeviceptr),
    Condition(Condition),
}

/// A launch, and the handles that it was described with.
pub(crate) struct KernelNode {
    pub(super) function: Id<Function>,
    pub(super) context: Id<Context>,
    pub(super) launch: Launch,
    /// Where the values of the parameters lie.
    pub(super) values: Box<[HostPtr]>,
}

/// A copy of bytes in rows and layers.
#[derive(Clone, Copy)]
pub(crate) struct Copy3D(pub(super) CUDA_MEMCPY3D);

/// A fill of elements in rows.
#[derive(Clone, Copy)]
pub(crate) struct Set(pub(super) CUDA_MEMSET_NODE_PARAMS);

// SAFETY: whoever describes a copy lets the driver use the host's memory from other threads: that is its contract.
unsafe impl Send for Copy3D {}
// SAFETY: as for `Send`; a shared description is only read.
unsafe impl Sync for Copy3D {}

impl Content {
    pub(super) fn kind(&self) -> CUgraphNodeType {
        match self {
            Self::Empty => CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY,
            Self::Kernel(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL,
            Self::Copy(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY,
            Self::Set(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET,
            Self::Host(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_HOST,
            Self::Child(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH,
            Self::Record(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_EVENT_RECORD,
            Self::Wait(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_WAIT_EVENT,
            Self::Allocate(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC,
            Self::Free(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_FREE,
            Self::Condition(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL,
        }
    }

    /// What a picture calls the node.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Empty => "EMPTY",
            Self::Kernel(_) => "KERNEL",
            Self::Copy(_) => "MEMCPY",
            Self::Set(_) => "MEMSET",
            Self::Host(_) => "HOST",
            Self::Child(_) => "GRAPH",
            Self::Record(_) => "EVENT_RECORD",
            Self::Wait(_) => "WAIT_EVENT",
            Self::Allocate(_) => "MEM_ALLOC",
            Self::Free(_) => "MEM_FREE",
            Self::Condition(_) => "CONDITIONAL",
        }
    }

    /// Whether the node allocates or frees: such nodes cannot be taken out of a graph.
    pub(super) fn is_memory(&self) -> bool {
        matches!(self, Self::Allocate(_) | Self::Free(_))
    }

    /// The graphs that belong to the node.
    pub(super) fn parts(&self) -> Vec<Id<Graph>> {
        match self {
            Self::Child(graph) => vec![*graph],
            Self::Condition(condition) => condition.bodies.clone(),
            _ => Vec::new(),
        }
    }

    pub(super) fn parts_mut(&mut self) -> &mut [Id<Graph>] {
        match self {
            Self::Child(graph) => std::slice::from_mut(graph),
            Self::Condition(condition) => &mut condition.bodies,
            _ => &mut [],
        }
    }

    /// Does what the device does for the node.
    pub(super) fn run(&self, driver: &Driver) -> Result {
        match self {
            Self::Kernel(kernel) => kernel.launch.run(driver),
            Self::Copy(copy) => copy.run(driver),
            Self::Set(set) => set.run(driver),
            _ => Ok(()),
        }
    }
}

impl Driver {
    /// A kernel node: the launch is checked, and its parameters are copied, at once.
    pub(super) fn kernel_content(
        &self,
        state: &mut State,
        function: Pointer<CUfunc_st>,
        context: Pointer<CUctx_st>,
        shape: Shape,
        arguments: Arguments,
    ) -> Result<Content> {
        let context = self.context_or_current(context)?;
        let context = state.home(context);
        let launch = self.prepare(state, function, context, shape, arguments)?;
        let values = launch.values()?.map(|value| HostPtr(value.cast_mut())).collect();
        let function = Id::from_number(function.address());
        Ok(Content::Kernel(Arc::new(KernelNode { function, context, launch, values })))
    }

    /// The context that was named, or else the current one.
    pub(super) fn context_or_current(&self, context: Pointer<CUctx_st>) -> Result<Id<Context>> {
        if context.is_null() { self.current() } else { Ok(Id::from(context)) }
    }

    pub(super) fn copy_content(&self, copy: CUDA_MEMCPY3D) -> Result<Content> {
        let copy = Copy3D(copy);
        let side = |kind, device: CUdeviceptr, pitch: usize, height: usize, [x, y, z]: [usize; 3]| {
            if kind == CUmemorytype::CU_MEMORYTYPE_ARRAY {
                return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
            }
            let is_pitched = copy.0.Height <= 1 && copy.0.Depth <= 1 || pitch >= copy.0.WidthInBytes + x;
            let is_high = copy.0.Depth <= 1 || height >= copy.0.Height + y;
            if !is_pitched || !is_high {
                return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
            }
            if kind == CUmemorytype::CU_MEMORYTYPE_DEVICE && copy.rows() > 0 {
                let last = copy.0.Height.max(1) - 1 + y + (copy.0.Depth.max(1) - 1 + z) * height;
                self.device_end(device, last * pitch + x + copy.0.WidthInBytes)?;
            }
            Ok(())
        };
        let CUDA_MEMCPY3D { dstXInBytes, dstY, dstZ, srcXInBytes, srcY, srcZ, .. } = copy.0;
        side(copy.0.dstMemoryType, copy.0.dstDevice, copy.0.dstPitch, copy.0.dstHeight, [dstXInBytes, dstY, dstZ])?;
        side(copy.0.srcMemoryType, copy.0.srcDevice, copy.0.srcPitch, copy.0.srcHeight, [srcXInBytes, srcY, srcZ])?;
        Ok(Content::Copy(copy))
    }

    pub(super) fn set_content(&self, set: CUDA_MEMSET_NODE_PARAMS) -> Result<Content> {
        let width = set.elementSize as usize;
        let is_valid = [1, 2, 4].contains(&width)
            && set.dst.is_multiple_of(width as u64)
            && set.width > 0
            && set.height > 0
            && (set.height == 1 || set.pitch >= set.width * width);
        if !is_valid {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        self.filled(set.dst, (set.height - 1) * set.pitch + set.width * width)?;
        Ok(Content::Set(Set(set)))
    }

    pub(super) fn event_of(&self, state: &State, event: Pointer<CUevent_st>) -> Result<Id<Event>> {
        state.event(event).map(|(id, _)| id)
    }
}

impl KernelNode {
    pub(super) fn context(&self) -> CUcontext {
        self.context.as_raw()
    }
}

impl Copy3D {
    fn rows(&self) -> usize {
        if self.0.WidthInBytes == 0 { 0 } else { self.0.Height.max(1) * self.0.Depth.max(1) }
    }

    fn run(&self, driver: &Driver) -> Result {
        let copy = &self.0;
        for row in 0..self.rows() {
            let (y, z) = (row % copy.Height.max(1), row / copy.Height.max(1));
            let to =
                (copy.dstZ + z) * copy.dstHeight * copy.dstPitch + (copy.dstY + y) * copy.dstPitch + copy.dstXInBytes;
            let from =
                (copy.srcZ + z) * copy.srcHeight * copy.srcPitch + (copy.srcY + y) * copy.srcPitch + copy.srcXInBytes;
            let to = end(copy.dstMemoryType, copy.dstHost.cast(), copy.dstDevice, to);
            let from = end(copy.srcMemoryType, copy.srcHost.cast_mut().cast(), copy.srcDevice, from);
            driver.memory().copy(&to, &from, copy.WidthInBytes)?;
        }
        Ok(())
    }
}

impl Set {
    fn run(&self, driver: &Driver) -> Result {
        let Self(set) = *self;
        let fill = Fill { value: set.value, width: set.elementSize as usize, count: set.width };
        (0..set.height).try_for_each(|row| driver.memory().fill(set.dst + (row * set.pitch) as u64, fill))
    }
}

/// One end of a row.
fn end(kind: CUmemorytype, host: *mut u8, device: CUdeviceptr, offset: usize) -> End {
    if kind == CUmemorytype::CU_MEMORYTYPE_HOST {
        End::Host(HostPtr(host.wrapping_add(offset)))
    } else {
        End::Device(device + offset as u64)
    }
}
