//! What nodes were described with: kinds of descriptions, reading and changing them.

use curium_sys::{
    CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS_v1, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS,
    CUevent, CUevent_st, CUgraph, CUgraphNode_st, CUgraphNodeParams, CUgraphNodeType, CUresult,
};

use super::condition::Condition;
use super::{Content, Graph, Node};
use crate::argument::{ConstPointer, Pointer};
use crate::driver::launch::Shape;
use crate::driver::launch::parameters::Arguments;
use crate::driver::{Driver, HostFunction, Result, State};
use crate::handle::Id;

const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;

impl Driver {
    pub(super) fn kernel(&self, state: &mut State, params: &CUDA_KERNEL_NODE_PARAMS) -> Result<Content> {
        // SAFETY: the function of a description is a handle, as if it were an argument.
        let function =
            unsafe { Pointer::from_raw(if params.func.is_null() { params.kern.cast() } else { params.func }) };
        // SAFETY: the context of a description is a handle, as if it were an argument.
        let context = unsafe { Pointer::from_raw(params.ctx) };
        let shape = Shape {
            grid: [params.gridDimX, params.gridDimY, params.gridDimZ],
            block: [params.blockDimX, params.blockDimY, params.blockDimZ],
            dynamic_shared: params.sharedMemBytes,
            is_cooperative: false,
        };
        // SAFETY: the pointers of a description are those of a launch.
        let values = unsafe { Pointer::from_raw(params.kernelParams) };
        // SAFETY: as above.
        let extra = unsafe { Pointer::from_raw(params.extra) };
        self.kernel_content(state, function, context, shape, Arguments::new(values, extra)?)
    }

    pub(super) fn kernel_v1(&self, state: &mut State, params: &CUDA_KERNEL_NODE_PARAMS_v1) -> Result<Content> {
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
        self.kernel(state, &params)
    }

    /// The content that a description of any kind stands for; what the driver chooses is written into the description.
    pub(super) fn content_of(
        &self,
        state: &mut State,
        graph: Id<Graph>,
        params: &mut CUgraphNodeParams,
    ) -> Result<Content> {
        let union = &mut params.__bindgen_anon_1;
        match params.type_ {
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY => Ok(Content::Empty),
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL => {
                // SAFETY: the type says that this is a kernel node.
                let kernel = unsafe { union.kernel };
                let params = CUDA_KERNEL_NODE_PARAMS {
                    func: kernel.func,
                    gridDimX: kernel.gridDimX,
                    gridDimY: kernel.gridDimY,
                    gridDimZ: kernel.gridDimZ,
                    blockDimX: kernel.blockDimX,
                    blockDimY: kernel.blockDimY,
                    blockDimZ: kernel.blockDimZ,
                    sharedMemBytes: kernel.sharedMemBytes,
                    kernelParams: kernel.kernelParams,
                    extra: kernel.extra,
                    kern: kernel.kern,
                    ctx: kernel.ctx,
                };
                self.kernel(state, &params)
            }
            // SAFETY: the type says that this is a copy.
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY => self.copy_content(state, unsafe { union.memcpy }.copyParams),
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET => {
                // SAFETY: the type says that this is a fill.
                let set = unsafe { union.memset };
                let (dst, pitch, value, width, height) = (set.dst, set.pitch, set.value, set.width, set.height);
                self.set_content(CUDA_MEMSET_NODE_PARAMS {
                    dst,
                    pitch,
                    value,
                    elementSize: set.elementSize,
                    width,
                    height,
                })
            }
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_HOST => {
                // SAFETY: the type says that this is a host function.
                let host = unsafe { union.host };
                HostFunction::new(host.fn_, host.userData).map(Content::Host)
            }
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH => {
                // SAFETY: the type says that this is a child.
                let child = unsafe { union.graph };
                // SAFETY: the graph of a description is a handle, as if it were an argument.
                state.child(graph, unsafe { Pointer::from_raw(child.graph) })
            }
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_EVENT_RECORD => {
                // SAFETY: the type says that this is a record.
                let record = unsafe { union.eventRecord };
                // SAFETY: the event of a description is a handle, as if it were an argument.
                self.event_of(state, unsafe { Pointer::from_raw(record.event) }).map(Content::Record)
            }
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_WAIT_EVENT => {
                // SAFETY: the type says that this is a wait.
                let wait = unsafe { union.eventWait };
                // SAFETY: the event of a description is a handle, as if it were an argument.
                self.event_of(state, unsafe { Pointer::from_raw(wait.event) }).map(Content::Wait)
            }
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL => {
                // SAFETY: the type says that this is a conditional node.
                let described = unsafe { &mut union.conditional };
                state.condition(graph, described)
            }
            _ => Err(CUresult::CUDA_ERROR_NOT_SUPPORTED),
        }
    }
}

impl State {
    /// A conditional node with empty bodies, whose handles are given to the caller.
    fn condition(
        &mut self,
        graph: Id<Graph>,
        described: &mut curium_sys::CUDA_CONDITIONAL_NODE_PARAMS,
    ) -> Result<Content> {
        let is_known = self.graphs.get(graph).is_some_and(|graph| graph.conditions.has(described.handle));
        if !is_known || !Condition::allows(described.type_, described.size) {
            return Err(INVALID);
        }
        let bodies: Vec<_> = (0..described.size).map(|_| self.new_graph(None)).collect();
        // As the driver does, the list of bodies is memory that is never moved, and it lives as long as the process.
        let handles: Vec<CUgraph> = bodies.iter().map(|body| body.as_raw()).collect();
        described.phGraph_out = Box::leak(handles.into_boxed_slice()).as_mut_ptr();
        Ok(Content::Condition(Condition { handle: described.handle, kind: described.type_, bodies }))
    }

    pub(super) fn change(&mut self, node: Pointer<CUgraphNode_st>, content: Content) -> Result {
        let (id, node) = self.node(node)?;
        if node.content.kind() != content.kind() {
            return Err(INVALID);
        }
        if let Some(node) = self.nodes.get_mut(id) {
            node.content = content;
        }
        Ok(())
    }
}

impl Driver {
    /// What `read` finds in a node's content.
    fn look<T>(&self, node: Pointer<CUgraphNode_st>, read: impl FnOnce(&Content) -> Option<T>) -> Result<T> {
        let state = self.lock();
        let (_, Node { content, .. }) = state.node(node)?;
        read(content).ok_or(INVALID)
    }
}

#[expect(non_snake_case, reason = "these are C's names")]
impl Driver {
    pub(crate) fn cuGraphKernelNodeGetParams_v2(
        &self,
        node: Pointer<CUgraphNode_st>,
        params: Pointer<CUDA_KERNEL_NODE_PARAMS>,
    ) -> Result {
        let found = self.look(node, |content| {
            let Content::Kernel(kernel) = content else { return None };
            let shape = kernel.launch.shape();
            Some(CUDA_KERNEL_NODE_PARAMS {
                func: kernel.function.as_raw(),
                gridDimX: shape.grid[0],
                gridDimY: shape.grid[1],
                gridDimZ: shape.grid[2],
                blockDimX: shape.block[0],
                blockDimY: shape.block[1],
                blockDimZ: shape.block[2],
                sharedMemBytes: shape.dynamic_shared,
                // The list and the values live for as long as the node has them.
                kernelParams: kernel.values.as_ptr().cast_mut().cast(),
                extra: std::ptr::null_mut(),
                kern: std::ptr::null_mut(),
                ctx: kernel.context(),
            })
        })?;
        params.write(found)
    }

    pub(crate) fn cuGraphKernelNodeSetParams_v2(
        &self,
        node: Pointer<CUgraphNode_st>,
        params: ConstPointer<CUDA_KERNEL_NODE_PARAMS>,
    ) -> Result {
        let params = params.read()?;
        let mut state = self.lock();
        let content = self.kernel(&mut state, &params)?;
        state.change(node, content)
    }

    pub(crate) fn cuGraphMemcpyNodeGetParams(
        &self,
        node: Pointer<CUgraphNode_st>,
        params: Pointer<CUDA_MEMCPY3D>,
    ) -> Result {
        params.write(
            self.look(node, |content| if let Content::Copy(copy) = content { Some(copy.described) } else { None })?,
        )
    }

    pub(crate) fn cuGraphMemcpyNodeSetParams(
        &self,
        node: Pointer<CUgraphNode_st>,
        params: ConstPointer<CUDA_MEMCPY3D>,
    ) -> Result {
        let copy = params.read()?;
        let mut state = self.lock();
        let content = self.copy_content(&state, copy)?;
        state.change(node, content)
    }

    pub(crate) fn cuGraphMemsetNodeGetParams(
        &self,
        node: Pointer<CUgraphNode_st>,
        params: Pointer<CUDA_MEMSET_NODE_PARAMS>,
    ) -> Result {
        params.write(self.look(node, |content| if let Content::Set(set) = content { Some(set.0) } else { None })?)
    }

    pub(crate) fn cuGraphMemsetNodeSetParams(
        &self,
        node: Pointer<CUgraphNode_st>,
        params: ConstPointer<CUDA_MEMSET_NODE_PARAMS>,
    ) -> Result {
        let content = self.set_content(params.read()?)?;
        self.lock().change(node, content)
    }

    pub(crate) fn cuGraphHostNodeGetParams(
        &self,
        node: Pointer<CUgraphNode_st>,
        params: Pointer<CUDA_HOST_NODE_PARAMS>,
    ) -> Result {
        let place = params.required()?;
        let state = self.lock();
        match &state.node(node)?.1.content {
            Content::Host(host) => {
                let (fn_, userData) = host.as_raw();
                place.write(CUDA_HOST_NODE_PARAMS { fn_, userData })
            }
            _ => Err(INVALID),
        }
    }

    pub(crate) fn cuGraphHostNodeSetParams(
        &self,
        node: Pointer<CUgraphNode_st>,
        params: ConstPointer<CUDA_HOST_NODE_PARAMS>,
    ) -> Result {
        let params = params.read()?;
        self.lock().change(node, Content::Host(HostFunction::new(params.fn_, params.userData)?))
    }

    pub(crate) fn cuGraphChildGraphNodeGetGraph(
        &self,
        node: Pointer<CUgraphNode_st>,
        graph: Pointer<CUgraph>,
    ) -> Result {
        let child = self.look(node, |content| if let Content::Child(child) = content { Some(*child) } else { None })?;
        graph.write(child.as_raw())
    }

    pub(crate) fn cuGraphEventRecordNodeGetEvent(
        &self,
        node: Pointer<CUgraphNode_st>,
        event: Pointer<CUevent>,
    ) -> Result {
        let found =
            self.look(node, |content| if let Content::Record(event) = content { Some(*event) } else { None })?;
        event.write(found.as_raw())
    }

    pub(crate) fn cuGraphEventRecordNodeSetEvent(
        &self,
        node: Pointer<CUgraphNode_st>,
        event: Pointer<CUevent_st>,
    ) -> Result {
        let mut state = self.lock();
        let event = self.event_of(&state, event)?;
        state.change(node, Content::Record(event))
    }

    pub(crate) fn cuGraphEventWaitNodeGetEvent(
        &self,
        node: Pointer<CUgraphNode_st>,
        event: Pointer<CUevent>,
    ) -> Result {
        let found = self.look(node, |content| if let Content::Wait(event) = content { Some(*event) } else { None })?;
        event.write(found.as_raw())
    }

    pub(crate) fn cuGraphEventWaitNodeSetEvent(
        &self,
        node: Pointer<CUgraphNode_st>,
        event: Pointer<CUevent_st>,
    ) -> Result {
        let mut state = self.lock();
        let event = self.event_of(&state, event)?;
        state.change(node, Content::Wait(event))
    }

    pub(crate) fn cuGraphNodeSetParams(
        &self,
        node: Pointer<CUgraphNode_st>,
        params: Pointer<CUgraphNodeParams>,
    ) -> Result {
        let mut described = params.read()?;
        let mut state = self.lock();
        let graph = state.node(node)?.1.graph;
        if described.type_ != state.node(node)?.1.content.kind() {
            return Err(INVALID);
        }
        let content = self.content_of(&mut state, graph, &mut described)?;
        state.change(node, content)
    }
}
