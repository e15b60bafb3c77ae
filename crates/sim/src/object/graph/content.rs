//! The content of graph nodes.

use std::sync::Arc;

use curium_sys::{
    CUDA_KERNEL_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS_v3, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS,
    CUdeviceptr, CUfunc_st, CUgraphNodeParams_st__bindgen_ty_1, CUgraphNodeType,
};

use crate::argument::Pointer;
use crate::handle::Id;
use crate::host_function::HostFunction;
use crate::host_pointer::HostPtr;
use crate::library_operation::LibraryOperation;
use crate::memory::Fill;
use crate::object::copy::AccessedRange;
use crate::object::copy::Rows;
use crate::object::event::Event;
use crate::object::function::Function;
use crate::object::graph::Graph;
use crate::object::graph::attribute::Attributes;
use crate::object::graph::condition::Condition;
use crate::object::graph::memory::Allocation;
use crate::object::launch::Launch;
use crate::object::stream_memory_operation::Batch;
use crate::result::Result;

/// The operation of a node with its data, except for child graphs.
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
    Allocate(Allocation),
    Free(CUdeviceptr),
    Condition(Condition),
    Batch(Batch),
    Library(LibraryOperation),
}

/// A launch, and the handles of its description.
pub(crate) struct KernelNode {
    pub(crate) function: Id<Function>,
    pub(crate) launch: Launch,
    /// The location of the values of the parameters.
    pub(crate) values: Box<[HostPtr]>,
    pub(crate) attributes: Attributes,
}

/// A copy of rows and layers with its description.
#[derive(Clone, Copy)]
pub(crate) struct Copy3D {
    pub(crate) described: CUDA_MEMCPY3D,
    pub(crate) rows: Rows,
}

/// A fill of elements in rows.
#[derive(Clone, Copy)]
pub(crate) struct Set(pub(crate) CUDA_MEMSET_NODE_PARAMS);

// SAFETY: the caller that describes a copy permits the driver to use the host's memory from other
// threads: that is its contract.
unsafe impl Send for Copy3D {}

// SAFETY: a shared description is only read.
unsafe impl Sync for Copy3D {}

impl Content {
    /// Returns a launch of a kernel with the handle that it was named by.
    pub(crate) fn kernel(
        function: Pointer<CUfunc_st>,
        launch: Launch,
        attributes: Attributes,
    ) -> Result<Self> {
        let values = launch
            .values()?
            .map(|value| HostPtr(value.cast_mut()))
            .collect();
        let function = Id::from_number(function.address());
        Ok(Self::Kernel(Arc::new(KernelNode {
            function,
            launch,
            values,
            attributes,
        })))
    }

    pub(crate) fn kind(&self) -> CUgraphNodeType {
        match self {
            Self::Empty => CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY,
            Self::Kernel(_) | Self::Library(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL,
            Self::Copy(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY,
            Self::Set(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET,
            Self::Host(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_HOST,
            Self::Child(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH,
            Self::Record(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_EVENT_RECORD,
            Self::Wait(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_WAIT_EVENT,
            Self::Allocate(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC,
            Self::Free(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_FREE,
            Self::Condition(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL,
            Self::Batch(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
        }
    }

    /// Returns the label of the node in a DOT file.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Empty => "EMPTY",
            Self::Kernel(_) | Self::Library(_) => "KERNEL",
            Self::Copy(_) => "MEMCPY",
            Self::Set(_) => "MEMSET",
            Self::Host(_) => "HOST",
            Self::Child(_) => "GRAPH",
            Self::Record(_) => "EVENT_RECORD",
            Self::Wait(_) => "WAIT_EVENT",
            Self::Allocate(_) => "MEM_ALLOC",
            Self::Free(_) => "MEM_FREE",
            Self::Condition(_) => "CONDITIONAL",
            Self::Batch(_) => "BATCH_MEM_OP",
        }
    }

    /// Returns `true` if the node allocates or frees memory. Such nodes cannot be removed from a
    /// graph.
    pub(crate) fn is_memory(&self) -> bool {
        matches!(self, Self::Allocate(_) | Self::Free(_))
    }

    /// Returns `true` if a recapture can replace this content by another.
    pub(crate) fn can_become(&self, new: &Self) -> bool {
        match (self, new) {
            (Self::Allocate(old), Self::Allocate(new)) => old.address() == new.address(),
            (Self::Free(old), Self::Free(new)) => old == new,
            _ => self.kind() == new.kind(),
        }
    }

    pub(crate) fn is_condition(&self) -> bool {
        matches!(self, Self::Condition(_))
    }

    /// Returns the graphs that belong to the node.
    pub(crate) fn parts(&self) -> Vec<Id<Graph>> {
        match self {
            Self::Child(graph) => vec![*graph],
            Self::Condition(condition) => condition.bodies.clone(),
            _ => Vec::new(),
        }
    }

    pub(crate) fn parts_mut(&mut self) -> &mut [Id<Graph>] {
        match self {
            Self::Child(graph) => std::slice::from_mut(graph),
            Self::Condition(condition) => &mut condition.bodies,
            _ => &mut [],
        }
    }
}

impl KernelNode {
    /// Returns the description of the node; the parameter list and its values live as long as the
    /// node has them.
    pub(crate) fn description(&self) -> CUDA_KERNEL_NODE_PARAMS {
        let shape = self.launch.shape();
        CUDA_KERNEL_NODE_PARAMS {
            func: self.function.as_raw(),
            gridDimX: shape.grid[0],
            gridDimY: shape.grid[1],
            gridDimZ: shape.grid[2],
            blockDimX: shape.block[0],
            blockDimY: shape.block[1],
            blockDimZ: shape.block[2],
            sharedMemBytes: shape.dynamic_shared,
            kernelParams: self.values.as_ptr().cast_mut().cast(),
            extra: std::ptr::null_mut(),
            kern: std::ptr::null_mut(),
            ctx: self.launch.context().as_raw(),
        }
    }

    /// Writes the description into one of any kind.
    pub(crate) fn describe(&self, union: &mut CUgraphNodeParams_st__bindgen_ty_1) {
        let description = self.description();
        union.kernel = CUDA_KERNEL_NODE_PARAMS_v3 {
            func: description.func,
            gridDimX: description.gridDimX,
            gridDimY: description.gridDimY,
            gridDimZ: description.gridDimZ,
            blockDimX: description.blockDimX,
            blockDimY: description.blockDimY,
            blockDimZ: description.blockDimZ,
            sharedMemBytes: description.sharedMemBytes,
            kernelParams: description.kernelParams,
            extra: description.extra,
            kern: description.kern,
            ctx: description.ctx,
        };
    }
}

impl Copy3D {
    pub(crate) fn new(described: CUDA_MEMCPY3D, rows: Rows) -> Self {
        Self { described, rows }
    }

    pub(crate) fn touched(&self) -> Vec<AccessedRange> {
        self.rows.touched()
    }
}

impl Set {
    pub(crate) fn new(dst: CUdeviceptr, fill: Fill, pitch: usize, height: usize) -> Self {
        let Fill {
            value,
            width,
            count,
        } = fill;
        Self(CUDA_MEMSET_NODE_PARAMS {
            dst,
            pitch,
            value,
            elementSize: width as u32,
            width: count,
            height,
        })
    }

    pub(crate) fn touched(&self) -> AccessedRange {
        let Self(set) = *self;
        let size = (set.height - 1) * set.pitch + set.width * set.elementSize as usize;
        AccessedRange {
            address: set.dst,
            size: size as u64,
            write: true,
        }
    }
}
