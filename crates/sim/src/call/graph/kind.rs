//! Kinds of nodes that use the same description to add nodes, to change them, and to update
//! executables.

use crate::argument::{ConstPointer, Pointer, elements};
use crate::call::Call;
use crate::driver::graph::add::Spot;
use crate::driver::locked::Locked;
use crate::handle::Id;
use crate::host_function::HostFunction;
use crate::object::graph::content::Content;
use crate::object::launch::parameters::Arguments;
use crate::object::launch::{NO_CLUSTER, Shape};
use crate::result::Result;
use curium_sys::{
    CUDA_BATCH_MEM_OP_NODE_PARAMS, CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS,
    CUDA_KERNEL_NODE_PARAMS_v1, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUctx_st, CUevent_st,
    CUgraph_st, CUgraphExec_st, CUgraphNode, CUgraphNode_st, CUresult,
};

impl Locked<'_> {
    pub(crate) fn described_kernel(&mut self, params: &CUDA_KERNEL_NODE_PARAMS) -> Result<Content> {
        // SAFETY: the function of a description is a handle, as if it were an argument.
        let function = unsafe {
            Pointer::from_raw(if params.func.is_null() {
                params.kern.cast()
            } else {
                params.func
            })
        };
        // SAFETY: the context of a description is a handle, as if it were an argument.
        let context = unsafe { Pointer::from_raw(params.ctx) };
        let shape = Shape {
            grid: [params.gridDimX, params.gridDimY, params.gridDimZ],
            block: [params.blockDimX, params.blockDimY, params.blockDimZ],
            dynamic_shared: params.sharedMemBytes,
            is_cooperative: false,
            cluster: NO_CLUSTER,
        };
        // SAFETY: the pointers of a description are those of a launch.
        let values = unsafe { Pointer::from_raw(params.kernelParams) };
        // SAFETY: the list of a description is that of a launch.
        let extra = unsafe { Pointer::from_raw(params.extra) };
        self.kernel_content(function, context, shape, Arguments::new(values, extra)?)
    }

    /// Returns a node of operations on values, which may be none.
    pub(crate) fn batch_content(&self, params: &CUDA_BATCH_MEM_OP_NODE_PARAMS) -> Result<Content> {
        let driver = self.driver();
        // SAFETY: the context of a description is a handle, as if it were an argument.
        let context: Pointer<CUctx_st> = unsafe { Pointer::from_raw(params.ctx) };
        let context = Id::from(context.required()?);
        self.contexts.valid_context(context)?;
        if params.flags != 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: the caller of the C function described this many operations.
        let described = unsafe { elements(params.paramArray.cast_const(), params.count as usize) }?;
        driver.batch(described, context).map(Content::Batch)
    }
}

/// Defines the three functions of each kind from those that create a node's content from its
/// description, for a new node and for one that changes. A context in the description must be
/// valid.
macro_rules! kinds {
    ($($make:ident $remake:ident($described:ty $(, $context:ident)?): $add:ident $change:ident $update:ident;)*) => {
        #[expect(non_snake_case, reason = "the methods have the names of the C functions")]
        impl Call<'_> {
            $(
                pub(crate) fn $add(
                    &self,
                    node: Pointer<CUgraphNode>,
                    graph: Pointer<CUgraph_st>,
                    after: ConstPointer<CUgraphNode>,
                    count: usize,
                    described: $described,
                    $($context: Pointer<CUctx_st>,)?
                ) -> Result {
                    self.add(&Spot::new(node, graph, after, count), |state, _| {
                        $(state.contexts.valid_context(self.context_or_current($context)?)?;)?
                        $make(state, described)
                    })
                }

                pub(crate) fn $change(&self, node: Pointer<CUgraphNode_st>, described: $described) -> Result {
                    let mut state = self.lock();
                    state.graphs.node(node)?;
                    // The description contains no context, so the current one is used.
                    $(let $context = self.current().or(Err(CUresult::CUDA_ERROR_INVALID_VALUE))?;
                    state.contexts.valid_context($context)?;)?
                    let content = $remake(&mut state, described)?;
                    state.graphs.change(self, node, content)
                }

                pub(crate) fn $update(
                    &self,
                    executable: Pointer<CUgraphExec_st>,
                    node: Pointer<CUgraphNode_st>,
                    described: $described,
                    $($context: Pointer<CUctx_st>,)?
                ) -> Result {
                    let mut state = self.lock();
                    state.graphs.step(executable, node)?;
                    $(state.contexts.valid_context(self.context_or_current($context)?)?;)?
                    let content = $remake(&mut state, described)?;
                    state.graphs.update(self, executable, node, content)
                }
            )*
        }
    };
}

kinds! {
    kernel_v1 kernel_v1(ConstPointer<CUDA_KERNEL_NODE_PARAMS_v1>):
        cuGraphAddKernelNode cuGraphKernelNodeSetParams cuGraphExecKernelNodeSetParams;
    kernel_v2 kernel_v2(ConstPointer<CUDA_KERNEL_NODE_PARAMS>):
        cuGraphAddKernelNode_v2 cuGraphKernelNodeSetParams_v2 cuGraphExecKernelNodeSetParams_v2;
    copy copy_again(ConstPointer<CUDA_MEMCPY3D>, context):
        cuGraphAddMemcpyNode cuGraphMemcpyNodeSetParams cuGraphExecMemcpyNodeSetParams;
    set set(ConstPointer<CUDA_MEMSET_NODE_PARAMS>, context):
        cuGraphAddMemsetNode cuGraphMemsetNodeSetParams cuGraphExecMemsetNodeSetParams;
    host host(ConstPointer<CUDA_HOST_NODE_PARAMS>):
        cuGraphAddHostNode cuGraphHostNodeSetParams cuGraphExecHostNodeSetParams;
    batch_node batch_node_again(ConstPointer<CUDA_BATCH_MEM_OP_NODE_PARAMS>):
        cuGraphAddBatchMemOpNode cuGraphBatchMemOpNodeSetParams cuGraphExecBatchMemOpNodeSetParams;
    record_node record_node(Pointer<CUevent_st>):
        cuGraphAddEventRecordNode cuGraphEventRecordNodeSetEvent cuGraphExecEventRecordNodeSetEvent;
    wait_node wait_node(Pointer<CUevent_st>):
        cuGraphAddEventWaitNode cuGraphEventWaitNodeSetEvent cuGraphExecEventWaitNodeSetEvent;
}

fn kernel_v1(
    state: &mut Locked<'_>,
    params: ConstPointer<CUDA_KERNEL_NODE_PARAMS_v1>,
) -> Result<Content> {
    let params = params.read()?;
    let params = CUDA_KERNEL_NODE_PARAMS {
        func: params.func,
        gridDimX: params.gridDimX,
        gridDimY: params.gridDimY,
        gridDimZ: params.gridDimZ,
        blockDimX: params.blockDimX,
        blockDimY: params.blockDimY,
        blockDimZ: params.blockDimZ,
        sharedMemBytes: params.sharedMemBytes,
        kernelParams: params.kernelParams,
        extra: params.extra,
        ..CUDA_KERNEL_NODE_PARAMS::default()
    };
    state.described_kernel(&params)
}

fn kernel_v2(
    state: &mut Locked<'_>,
    params: ConstPointer<CUDA_KERNEL_NODE_PARAMS>,
) -> Result<Content> {
    state.described_kernel(&params.read()?)
}

/// Requires bytes to copy, unlike the description of a new node.
fn copy_again(state: &mut Locked<'_>, params: ConstPointer<CUDA_MEMCPY3D>) -> Result<Content> {
    let described = params.read()?;
    if described.WidthInBytes == 0 || described.Height == 0 || described.Depth == 0 {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    state.copy_content(described)
}

fn batch_node(
    state: &mut Locked<'_>,
    params: ConstPointer<CUDA_BATCH_MEM_OP_NODE_PARAMS>,
) -> Result<Content> {
    state.batch_content(&params.read()?)
}

/// Requires a context, unlike the description of a new node.
fn batch_node_again(
    state: &mut Locked<'_>,
    params: ConstPointer<CUDA_BATCH_MEM_OP_NODE_PARAMS>,
) -> Result<Content> {
    if params.read()?.ctx.is_null() {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    batch_node(state, params)
}

fn record_node(state: &mut Locked<'_>, event: Pointer<CUevent_st>) -> Result<Content> {
    state
        .contexts
        .valid_event(event.required()?)
        .map(|(id, _)| Content::Record(id))
}

fn wait_node(state: &mut Locked<'_>, event: Pointer<CUevent_st>) -> Result<Content> {
    state
        .contexts
        .valid_event(event.required()?)
        .map(|(id, _)| Content::Wait(id))
}

fn copy(state: &mut Locked<'_>, params: ConstPointer<CUDA_MEMCPY3D>) -> Result<Content> {
    state.copy_content(params.read()?)
}

fn set(state: &mut Locked<'_>, params: ConstPointer<CUDA_MEMSET_NODE_PARAMS>) -> Result<Content> {
    let driver = state.driver();
    driver.operands().set_content(params.read()?)
}

fn host(_state: &mut Locked<'_>, params: ConstPointer<CUDA_HOST_NODE_PARAMS>) -> Result<Content> {
    let params = params.read()?;
    HostFunction::new(params.fn_, params.userData).map(Content::Host)
}
