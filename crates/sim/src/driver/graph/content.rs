//! The content of graph nodes.

use std::sync::Arc;

use curium_sys::{
    CUDA_KERNEL_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS_v3, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS,
    CUctx_st, CUdeviceptr, CUfunc_st, CUgraphNodeParams_st__bindgen_ty_1, CUgraphNodeType,
    CUmemorytype, CUresult,
};

use super::attribute::Attributes;
use super::condition::Condition;
use super::plan::SharedConditions;
use super::{AccessedRange, Graph, memory};
use crate::activity::{self, ActivityOperation};
use crate::argument::Pointer;
use crate::driver::copy::Rows;
use crate::driver::launch::parameters::Arguments;
use crate::driver::launch::{Launch, Shape};
use crate::driver::stream_memory_operation::Batch;
use crate::driver::{Context, Driver, Event, Function, HostFunction, Result, State};
use crate::handle::Id;
use crate::library_operation::LibraryOperation;
use crate::memory::{Fill, HostPtr};
use crate::race::NOBODY;
use crate::schedule::Work;

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
    Allocate(memory::Allocation),
    Free(CUdeviceptr),
    Condition(Condition),
    Batch(Batch),
    Library(LibraryOperation),
}

/// A launch, and the handles of its description.
pub(crate) struct KernelNode {
    pub(super) function: Id<Function>,
    pub(super) launch: Launch,
    /// The location of the values of the parameters.
    pub(super) values: Box<[HostPtr]>,
    pub(super) attributes: Attributes,
}

/// A copy of rows and layers with its description.
#[derive(Clone, Copy)]
pub(crate) struct Copy3D {
    pub(super) described: CUDA_MEMCPY3D,
    rows: Rows,
}

/// A fill of elements in rows.
#[derive(Clone, Copy)]
pub(crate) struct Set(pub(super) CUDA_MEMSET_NODE_PARAMS);

// SAFETY: the caller that describes a copy permits the driver to use the host's memory from other threads: that is its contract.
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

    pub(super) fn kind(&self) -> CUgraphNodeType {
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
    pub(super) fn name(&self) -> &'static str {
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

    /// Returns `true` if the node allocates or frees memory. Such nodes cannot be removed from a graph.
    pub(super) fn is_memory(&self) -> bool {
        matches!(self, Self::Allocate(_) | Self::Free(_))
    }

    /// Returns `true` if a recapture can replace this content by another.
    pub(in crate::driver) fn can_become(&self, new: &Self) -> bool {
        match (self, new) {
            (Self::Allocate(old), Self::Allocate(new)) => old.address() == new.address(),
            (Self::Free(old), Self::Free(new)) => old == new,
            _ => self.kind() == new.kind(),
        }
    }

    pub(super) fn is_condition(&self) -> bool {
        matches!(self, Self::Condition(_))
    }

    /// Returns the graphs that belong to the node.
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

    /// Returns the node as stream work, for nodes that consist of a single operation.
    pub(crate) fn into_work(self) -> Work {
        match self {
            Self::Host(function) => Work::Host(function),
            content => Work::Device(Box::new(move |driver| content.run(driver, None))),
        }
    }

    /// Performs the device's part of the node.
    pub(super) fn run(&self, driver: &Driver, conditions: Option<&SharedConditions>) -> Result {
        match self {
            Self::Kernel(kernel) => kernel.launch.run(driver, conditions),
            Self::Copy(copy) => copy.rows.run(driver),
            Self::Set(set) => set.run(driver),
            Self::Library(operation) => operation.run(driver),
            Self::Allocate(allocation) => {
                driver
                    .memory()
                    .record_fresh(allocation.address(), allocation.params.bytesize as u64);
                driver.memory().renew(allocation.address(), NOBODY);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl Driver {
    /// Returns a kernel node. The launch is checked and its parameters are copied immediately.
    pub(super) fn kernel_content(
        &self,
        state: &mut State,
        function: Pointer<CUfunc_st>,
        context: Pointer<CUctx_st>,
        shape: Shape,
        arguments: Arguments,
    ) -> Result<Content> {
        // As on hardware, a function without a context runs in its own.
        let own_context = state
            .functions
            .get(Id::from(function))
            .and_then(|function| state.modules.get(function.module))
            .map(|module| module.context);
        let context = match own_context {
            Some(own_context) if context.is_null() => own_context,
            _ => self.context_or_current(context)?,
        };
        let context = state.owning_context(context);
        let launch = self.prepare(state, function, context, shape, arguments)?;
        Content::kernel(function, launch, Attributes::default())
    }

    /// Returns the specified context, or else the current one.
    pub(super) fn context_or_current(&self, context: Pointer<CUctx_st>) -> Result<Id<Context>> {
        if context.is_null() {
            self.current()
        } else {
            Ok(Id::from(context))
        }
    }

    /// Returns a copy; with a single row, the pitch is ignored.
    pub(crate) fn copy_content(&self, state: &State, described: CUDA_MEMCPY3D) -> Result<Content> {
        let mut copy = described;
        if copy.Height <= 1 && copy.Depth <= 1 {
            let source_row = copy.srcXInBytes.saturating_add(copy.WidthInBytes);
            let target_row = copy.dstXInBytes.saturating_add(copy.WidthInBytes);
            copy.srcPitch = copy.srcPitch.max(source_row);
            copy.dstPitch = copy.dstPitch.max(target_row);
        }
        Ok(Content::Copy(Copy3D {
            described,
            rows: self.resolve_rows(state, &copy)?,
        }))
    }

    pub(super) fn set_content(&self, set: CUDA_MEMSET_NODE_PARAMS) -> Result<Content> {
        let width = set.elementSize as usize;
        let row = set.width.checked_mul(width);
        let row = row.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let is_valid = [1, 2, 4].contains(&width)
            && set.dst.is_multiple_of(width as u64)
            && set.width > 0
            && set.height > 0
            && (set.height == 1 || set.pitch >= row);
        if !is_valid {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let size = (set.height - 1).checked_mul(set.pitch);
        let size = size.and_then(|rows| rows.checked_add(row));
        self.filled(set.dst, size.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?)?;
        Ok(Content::Set(Set(set)))
    }
}

/// The kind of an operand's memory, which an update of an executable cannot change.
#[derive(Eq, PartialEq)]
pub(super) enum MemoryKind {
    Host,
    Array,
    Managed,
    Device,
}

impl Copy3D {
    /// Returns the kinds of the source and the target.
    pub(super) fn memory_kinds(&self, driver: &Driver) -> [MemoryKind; 2] {
        let copy = &self.described;
        [
            driver.memory_kind(copy.srcMemoryType, copy.srcDevice),
            driver.memory_kind(copy.dstMemoryType, copy.dstDevice),
        ]
    }
}

impl Driver {
    fn memory_kind(&self, kind: CUmemorytype, address: CUdeviceptr) -> MemoryKind {
        match kind {
            CUmemorytype::CU_MEMORYTYPE_HOST => MemoryKind::Host,
            CUmemorytype::CU_MEMORYTYPE_ARRAY => MemoryKind::Array,
            CUmemorytype::CU_MEMORYTYPE_UNIFIED
                if self.is_unified_host(address, 0).unwrap_or_default() =>
            {
                MemoryKind::Host
            }
            _ if self.memory().is_managed(address) => MemoryKind::Managed,
            _ => MemoryKind::Device,
        }
    }
}

impl KernelNode {
    /// Returns the description of the node; the parameter list and its values live as long as the node has them.
    pub(super) fn description(&self) -> CUDA_KERNEL_NODE_PARAMS {
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
    pub(super) fn describe(&self, union: &mut CUgraphNodeParams_st__bindgen_ty_1) {
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

    pub(super) fn touched(&self) -> Vec<AccessedRange> {
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

    pub(super) fn touched(&self) -> AccessedRange {
        let Self(set) = *self;
        let size = (set.height - 1) * set.pitch + set.width * set.elementSize as usize;
        AccessedRange {
            address: set.dst,
            size: size as u64,
            write: true,
        }
    }

    fn run(&self, driver: &Driver) -> Result {
        let Self(set) = *self;
        let fill = Fill {
            value: set.value,
            width: set.elementSize as usize,
            count: set.width,
        };
        let bytes = set.height as u64 * set.width as u64 * u64::from(set.elementSize);
        activity::measured(
            || ActivityOperation::Set { bytes },
            || {
                (0..set.height).try_for_each(|row| {
                    let address = set.dst + (row * set.pitch) as u64;
                    driver.report_transfer(driver.memory().fill(address, fill))
                })
            },
        )
    }
}
