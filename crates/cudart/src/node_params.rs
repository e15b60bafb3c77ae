//! `cudaGraphNodeParams`, the parameters of a node of any kind.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_void};

use curium_sys::{
    CUDA_KERNEL_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS_v3, CUDA_MEMCPY_NODE_PARAMS, CUcontext,
    CUgraph, CUgraphEdgeData, CUgraphExec, CUgraphNode, CUgraphNodeParams, CUgraphNodeType,
    CUgraphRecaptureStatus, CUkernel, CUresult, CUstream, CUstreamCaptureMode,
};
use parking_lot::Mutex;

use crate::copy_3d::Copy;
use crate::graph::{KernelNodeParams, context, kernel};
use crate::properties::MAJOR;
use crate::state::{Code, INVALID_VALUE, Result, enter};
use crate::{cu, runtime};

/// `cudaKernelFunctionTypeUnspecified`, which is the only one before CUDA 13.
const UNSPECIFIED: c_uint = 0;
/// `cudaKernelFunctionTypeDeviceEntry`: the address of a host function.
const DEVICE_ENTRY: c_uint = 1;
/// `cudaKernelFunctionTypeKernel`: a `cudaKernel_t`.
const KERNEL: c_uint = 2;
/// `cudaKernelFunctionTypeFunction`: a `cudaFunction_t`.
const FUNCTION: c_uint = 3;

/// `cudaKernelNodeParamsV2`. The last two fields are reserved before CUDA 13, and zero.
#[derive(Clone, Copy)]
#[repr(C)]
struct KernelParams {
    params: KernelNodeParams,
    context: CUcontext,
    function_type: c_uint,
}

/// `cudaMemcpyNodeParams`. The context is reserved before CUDA 13, and zero.
#[derive(Clone, Copy)]
#[repr(C)]
struct MemcpyParams {
    flags: c_int,
    reserved: c_int,
    context: CUcontext,
    copy: Copy,
}

/// The parameters of a kind. Those of the other kinds have the driver's layout.
#[derive(Clone, Copy)]
#[repr(C)]
union Params {
    kernel: KernelParams,
    memcpy: MemcpyParams,
    other: [i64; 29],
}

/// `cudaGraphNodeParams`.
#[repr(C)]
pub(crate) struct NodeParams {
    kind: CUgraphNodeType,
    reserved: [c_int; 3],
    params: Params,
    reserved_end: i64,
}

const _: () = {
    assert!(size_of::<KernelParams>() == 72, "cudaKernelNodeParamsV2");
    assert!(size_of::<MemcpyParams>() == 176, "cudaMemcpyNodeParams");
    assert!(size_of::<NodeParams>() == 256, "cudaGraphNodeParams");
    assert!(
        size_of::<CUgraphNodeParams>() == 256,
        "the driver's has the same size"
    );
};

/// Returns a context, or the current one in place of none.
fn context_or_current(context: CUcontext) -> Result<CUcontext> {
    if context.is_null() {
        self::context()
    } else {
        Ok(context)
    }
}

impl KernelParams {
    fn to_driver(self) -> Result<CUDA_KERNEL_NODE_PARAMS_v3> {
        let mut driver = match self.function_type {
            UNSPECIFIED | DEVICE_ENTRY => kernel(Some(&self.params))?,
            KERNEL => CUDA_KERNEL_NODE_PARAMS {
                kern: self.params.host.cast_mut().cast(),
                ..self.params.shape()
            },
            FUNCTION => CUDA_KERNEL_NODE_PARAMS {
                func: self.params.host.cast_mut().cast(),
                ..self.params.shape()
            },
            _ => return Err(INVALID_VALUE),
        };
        driver.ctx = self.context;
        Ok(CUDA_KERNEL_NODE_PARAMS_v3 {
            func: driver.func,
            gridDimX: driver.gridDimX,
            gridDimY: driver.gridDimY,
            gridDimZ: driver.gridDimZ,
            blockDimX: driver.blockDimX,
            blockDimY: driver.blockDimY,
            blockDimZ: driver.blockDimZ,
            sharedMemBytes: driver.sharedMemBytes,
            kernelParams: driver.kernelParams,
            extra: driver.extra,
            kern: driver.kern,
            ctx: driver.ctx,
        })
    }

    fn from_driver(driver: &CUDA_KERNEL_NODE_PARAMS_v3) -> Result<Self> {
        let params = KernelNodeParams::from_driver(&CUDA_KERNEL_NODE_PARAMS {
            func: driver.func,
            gridDimX: driver.gridDimX,
            gridDimY: driver.gridDimY,
            gridDimZ: driver.gridDimZ,
            blockDimX: driver.blockDimX,
            blockDimY: driver.blockDimY,
            blockDimZ: driver.blockDimZ,
            sharedMemBytes: driver.sharedMemBytes,
            kernelParams: driver.kernelParams,
            extra: driver.extra,
            kern: driver.kern,
            ctx: driver.ctx,
        })?;
        let handle: CUkernel = params.host.cast_mut().cast();
        let function_type = if handle == driver.kern {
            KERNEL
        } else if handle.cast() == driver.func {
            FUNCTION
        } else {
            DEVICE_ENTRY
        };
        Ok(Self {
            params,
            context: driver.ctx,
            function_type,
        })
    }
}

impl NodeParams {
    fn to_driver(&self) -> Result<CUgraphNodeParams> {
        let mut driver = CUgraphNodeParams {
            type_: self.kind,
            ..CUgraphNodeParams::default()
        };
        let union = &mut driver.__bindgen_anon_1;
        match self.kind {
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL => {
                // SAFETY: the type selects the field.
                union.kernel = unsafe { &self.params.kernel }.to_driver()?;
            }
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY => {
                // SAFETY: the type selects the field.
                let memcpy = unsafe { &self.params.memcpy };
                union.memcpy = CUDA_MEMCPY_NODE_PARAMS {
                    flags: memcpy.flags,
                    reserved: memcpy.reserved,
                    copyCtx: context_or_current(memcpy.context)?,
                    copyParams: memcpy.copy.to_driver()?,
                };
            }
            _ => {
                // SAFETY: the parameters of these kinds have the driver's layout, and any bytes are
                // numbers.
                union.reserved1 = unsafe { self.params.other };
            }
        }
        match self.kind {
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET => {
                // SAFETY: the type selects the field.
                let context = unsafe { union.memset }.ctx;
                union.memset.ctx = context_or_current(context)?;
            }
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL => {
                // SAFETY: the type selects the field.
                let context = unsafe { union.conditional }.ctx;
                union.conditional.ctx = context_or_current(context)?;
            }
            _ => {}
        }
        Ok(driver)
    }

    fn from_driver(driver: &CUgraphNodeParams) -> Result<Self> {
        let union = &driver.__bindgen_anon_1;
        let params = match driver.type_ {
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL => Params {
                // SAFETY: the type selects the field.
                kernel: KernelParams::from_driver(unsafe { &union.kernel })?,
            },
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY => {
                // SAFETY: the type selects the field.
                let memcpy = unsafe { &union.memcpy };
                Params {
                    memcpy: MemcpyParams {
                        flags: memcpy.flags,
                        reserved: 0,
                        context: memcpy.copyCtx,
                        copy: Copy::from_driver(&memcpy.copyParams)?,
                    },
                }
            }
            _ => Params {
                // SAFETY: the parameters of these kinds have the driver's layout, and any bytes are
                // numbers.
                other: unsafe { union.reserved1 },
            },
        };
        Ok(Self {
            kind: driver.type_,
            reserved: [0; 3],
            params,
            reserved_end: 0,
        })
    }

    /// Stores the outputs of an added node: the address of an allocation, and the graphs of a
    /// condition.
    fn store_outputs(&mut self, driver: &CUgraphNodeParams) {
        if matches!(
            self.kind,
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC
                | CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL
        ) {
            // SAFETY: the parameters of these kinds have the driver's layout, and any bytes are
            // numbers.
            self.params.other = unsafe { driver.__bindgen_anon_1.reserved1 };
        }
    }
}

fn add_node(
    node: *mut CUgraphNode,
    graph: CUgraph,
    after: *const CUgraphNode,
    edges: *const CUgraphEdgeData,
    count: usize,
    params: *mut NodeParams,
) -> Result<()> {
    enter()?;
    // SAFETY: the caller of the runtime function guarantees the parameters, which nothing else
    // accesses.
    let params = unsafe { params.as_mut() }.ok_or(INVALID_VALUE)?;
    let mut driver = params.to_driver()?;
    // SAFETY: `driver` lives during the call, and the caller of the runtime function guarantees the
    // other arguments.
    unsafe {
        cu!(cuGraphAddNode_v2(
            node,
            graph,
            after,
            edges,
            count,
            &raw mut driver
        ))
    }?;
    params.store_outputs(&driver);
    Ok(())
}

/// `cudaGraphRecaptureCallbackData`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct RecaptureCallback {
    function: Option<
        unsafe extern "C" fn(
            *mut c_void,
            CUgraphNode,
            *const NodeParams,
            *const NodeParams,
            CUgraphRecaptureStatus,
        ) -> Code,
    >,
    data: *mut c_void,
}

/// The addresses of the callbacks of recaptures, by the address of the graph. A callback lives
/// until the next recapture of the graph.
static RECAPTURES: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

/// Returns the runtime's parameters of a node that a recapture reports.
///
/// # Safety
///
/// The pointer is null or valid for reads.
unsafe fn reported_params(driver: *const CUgraphNodeParams) -> Result<Option<NodeParams>> {
    // SAFETY: the caller guarantees the pointer.
    let driver = unsafe { driver.as_ref() };
    driver.map(NodeParams::from_driver).transpose()
}

/// Calls the program's callback with the runtime's parameters.
unsafe extern "C" fn recapture(
    callback: *mut c_void,
    node: CUgraphNode,
    original: *const CUgraphNodeParams,
    recaptured: *const CUgraphNodeParams,
    status: CUgraphRecaptureStatus,
) -> CUresult {
    // SAFETY: the driver passes the address of the callback, which lives until the next recapture
    // of the graph.
    let callback = unsafe { &*callback.cast::<RecaptureCallback>() };
    let Some(function) = callback.function else {
        return CUresult::CUDA_SUCCESS;
    };
    // SAFETY: the driver passes parameters or null.
    let original = unsafe { reported_params(original) };
    // SAFETY: the driver passes parameters or null.
    let recaptured = unsafe { reported_params(recaptured) };
    let (Ok(original), Ok(recaptured)) = (original, recaptured) else {
        return CUresult::CUDA_ERROR_INVALID_VALUE;
    };
    let original = original
        .as_ref()
        .map_or(std::ptr::null(), std::ptr::from_ref);
    let recaptured = recaptured
        .as_ref()
        .map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the parameters live during the call, and the program guarantees its callback.
    let code = unsafe { function(callback.data, node, original, recaptured, status) };
    CUresult(code.cast_unsigned())
}

runtime! {
    [cudaStreamBeginRecaptureToGraph_ptsz(stream)]
    fn cudaStreamBeginRecaptureToGraph(
        stream: CUstream,
        mode: CUstreamCaptureMode,
        graph: CUgraph,
        callback: Option<&RecaptureCallback>,
    ) {
        enter()?;
        let Some(callback) = callback else {
            // SAFETY: the caller of the runtime function guarantees the arguments.
            return unsafe {
                cu!(cuStreamBeginRecaptureToGraph(stream, mode, graph, None, std::ptr::null_mut()))
            };
        };
        let callback = Box::into_raw(Box::new(*callback));
        let replaced = RECAPTURES.lock().insert(graph.addr(), callback.expose_provenance());
        if let Some(replaced) = replaced {
            let replaced = std::ptr::with_exposed_provenance_mut::<RecaptureCallback>(replaced);
            // SAFETY: the address is that of a box, and the recapture that used it has ended.
            drop(unsafe { Box::from_raw(replaced) });
        }
        // SAFETY: the callback lives until the next recapture, and the caller guarantees the other
        // arguments.
        unsafe {
            cu!(cuStreamBeginRecaptureToGraph(stream, mode, graph, Some(recapture), callback.cast()))
        }
    }

    // Since CUDA 13, the data of the edges precede their count.
    fn cudaGraphAddNode(
        node: *mut CUgraphNode,
        graph: CUgraph,
        after: *const CUgraphNode,
        first: usize,
        second: usize,
        third: *mut NodeParams,
    ) {
        if MAJOR <= 12 {
            let params = std::ptr::with_exposed_provenance_mut(second);
            add_node(node, graph, after, std::ptr::null(), first, params)
        } else {
            add_node(node, graph, after, std::ptr::with_exposed_provenance(first), second, third)
        }
    }

    fn cudaGraphAddNode_v2(
        node: *mut CUgraphNode,
        graph: CUgraph,
        after: *const CUgraphNode,
        edges: *const CUgraphEdgeData,
        count: usize,
        params: *mut NodeParams,
    ) {
        add_node(node, graph, after, edges, count, params)
    }

    fn cudaGraphNodeSetParams(node: CUgraphNode, params: Option<&NodeParams>) {
        enter()?;
        let mut driver = params.ok_or(INVALID_VALUE)?.to_driver()?;
        // SAFETY: `driver` lives during the call, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuGraphNodeSetParams(node, &raw mut driver)) }
    }

    fn cudaGraphExecNodeSetParams(
        exec: CUgraphExec,
        node: CUgraphNode,
        params: Option<&NodeParams>,
    ) {
        enter()?;
        let mut driver = params.ok_or(INVALID_VALUE)?.to_driver()?;
        // SAFETY: `driver` lives during the call, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuGraphExecNodeSetParams(exec, node, &raw mut driver)) }
    }

    fn cudaGraphNodeGetParams(node: CUgraphNode, params: *mut NodeParams) {
        enter()?;
        if params.is_null() {
            return Err(INVALID_VALUE);
        }
        let mut driver = CUgraphNodeParams::default();
        // SAFETY: `driver` is valid for writes, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe { cu!(cuGraphNodeGetParams(node, &raw mut driver)) }?;
        let returned = NodeParams::from_driver(&driver)?;
        // SAFETY: the caller of the runtime function guarantees that the pointer is valid for
        // writes.
        unsafe { params.write(returned) };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use curium_sys::CUDA_MEMSET_NODE_PARAMS_v2;

    use super::*;
    use crate::graph_node::cudaGraphMemcpyNodeGetParams;
    use crate::memory::{address, cudaFree, cudaMalloc};
    use crate::stream::{
        cudaGraphCreate, cudaGraphDestroy, cudaGraphExecDestroy, cudaGraphInstantiateWithFlags,
        cudaGraphLaunch,
    };
    use crate::tests::{call, code, simulate, synchronize};

    fn memset_params(memory: *const c_void, value: c_uint) -> NodeParams {
        let mut driver = CUgraphNodeParams {
            type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET,
            ..CUgraphNodeParams::default()
        };
        driver.__bindgen_anon_1.memset = CUDA_MEMSET_NODE_PARAMS_v2 {
            dst: address(memory),
            value,
            elementSize: 4,
            width: 4,
            height: 1,
            ..CUDA_MEMSET_NODE_PARAMS_v2::default()
        };
        NodeParams {
            kind: driver.type_,
            reserved: [0; 3],
            params: Params {
                // SAFETY: any bytes are numbers.
                other: unsafe { driver.__bindgen_anon_1.reserved1 },
            },
            reserved_end: 0,
        }
    }

    #[test]
    fn nodes_of_any_kind_are_added_and_described() {
        let _turn = simulate();
        let mut graph = CUgraph::default();
        let mut exec = CUgraphExec::default();
        let mut memory: *mut c_void = ptr::null_mut();
        let mut set = CUgraphNode::default();
        let mut copied = CUgraphNode::default();
        let mut numbers = [0_u32; 4];
        call!(cudaGraphCreate(&raw mut graph, 0));
        call!(cudaMalloc((&mut memory).into(), 16));
        let mut params = memset_params(memory, 6);
        let none = ptr::null();
        call!(cudaGraphAddNode_v2(
            &raw mut set,
            graph,
            ptr::null(),
            none,
            0,
            &raw mut params
        ));
        let to = numbers.as_mut_ptr().cast();
        let linear = crate::graph::cudaGraphAddMemcpyNode1D;
        call!(linear(
            &raw mut copied,
            graph,
            &raw const set,
            1,
            to,
            memory,
            16,
            2
        ));
        call!(cudaGraphInstantiateWithFlags(&raw mut exec, graph, 0));
        call!(cudaGraphExecNodeSetParams(
            exec,
            set,
            Some(&memset_params(memory, 7))
        ));
        call!(cudaGraphLaunch(exec, ptr::null_mut()));
        synchronize();
        assert_eq!(numbers, [7; 4]);
        call!(cudaGraphNodeGetParams(copied, &raw mut params));
        assert_eq!(params.kind, CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY);
        // SAFETY: the type selects the field.
        let described = unsafe { params.params.memcpy }.copy;
        let mut other = described;
        call!(cudaGraphMemcpyNodeGetParams(copied, (&mut other).into()));
        let driver = other
            .to_driver()
            .map(|copy| (copy.dstDevice, copy.WidthInBytes));
        assert_eq!(driver, Ok((address(to), 16)));
        // The description of the copy adds an equal node.
        call!(cudaGraphAddNode_v2(
            &raw mut set,
            graph,
            ptr::null(),
            none,
            0,
            &raw mut params
        ));
        params.kind = CUgraphNodeType(99);
        assert_ne!(code!(cudaGraphNodeSetParams(set, Some(&params))), 0);
        call!(cudaGraphExecDestroy(exec));
        call!(cudaGraphDestroy(graph));
        call!(cudaFree(memory));
    }
}
