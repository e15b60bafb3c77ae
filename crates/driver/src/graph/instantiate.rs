//! Instantiation of graphs.

use std::borrow::Cow;

use bitflags::bitflags;
use curium_sys::{
    CUDA_GRAPH_INSTANTIATE_PARAMS, CUgraph, CUgraphExec, CUgraphInstantiate_flags,
    CUgraphInstantiateResult, CUgraphNode, CUgraphNodeType, Function,
};

use super::Graph;
use super::exec::GraphExec;
use super::node::NodeKind;
use super::resource::Resource;
use super::tree::State;
use crate::call;
use crate::{Driver, Error, Result, Stream};

bitflags! {
    /// Flags of an executable graph.
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    pub struct InstantiateFlags: u64 {
        /// Each launch first frees memory that the previous launch allocated and did not free.
        const AUTO_FREE_ON_LAUNCH = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH.0 as u64;
        /// The graph can be launched from the device. Requires compute capability 7.0 and restricts
        /// the nodes. Since 12.0.
        const DEVICE_LAUNCH = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH.0 as u64;
        /// Kernels run with the priority attribute of their node instead of the stream's priority.
        /// Since 12.0.
        const USE_NODE_PRIORITY = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY.0 as u64;
        /// Flags defined by newer drivers.
        const _ = !0;
    }
}

/// Options for instantiating a graph.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct InstantiateOptions<'a> {
    /// Flags of the executable graph; none by default.
    pub flags: InstantiateFlags,
    /// The stream on which the executable graph is uploaded to the device, ahead of its first
    /// launch; none by default.
    pub upload: Option<&'a Stream>,
}

impl<'a> InstantiateOptions<'a> {
    /// Returns options without flags and without an upload.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            flags: InstantiateFlags::empty(),
            upload: None,
        }
    }

    /// Sets the flags.
    #[must_use]
    pub const fn with_flags(mut self, flags: InstantiateFlags) -> Self {
        self.flags = flags;
        self
    }

    /// Uploads the executable graph on `stream`.
    #[must_use]
    pub const fn with_upload(mut self, stream: &'a Stream) -> Self {
        self.upload = Some(stream);
        self
    }
}

/// A fault that the driver found in a graph.
struct Fault {
    node: CUgraphNode,
    result: CUgraphInstantiateResult,
}

impl Graph {
    /// Instantiates the graph. Later changes of the graph do not affect the executable graph, which
    /// can be launched any number of times.
    ///
    /// CUDA: `cuGraphInstantiateWithParams`, and `cuGraphInstantiate_v2` before 12.0.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the graph contains a cycle, and any other error returned by
    /// the driver; the error names the node. `CUDA_ERROR_NOT_SUPPORTED` if the graph has
    /// conditional nodes and already has an executable graph.
    #[doc(alias = "cuGraphInstantiate")]
    #[doc(alias = "cudaGraphInstantiate")]
    pub fn instantiate(&self) -> Result<GraphExec> {
        self.instantiate_with(InstantiateOptions::new())
            .map_err(|error| error.during("Graph::instantiate"))
    }

    /// Instantiates the graph like [`Graph::instantiate`], with options.
    ///
    /// CUDA: `cuGraphInstantiateWithParams`; before 12.0 `cuGraphInstantiateWithFlags`, whose
    /// errors name no node, and `cuGraphUpload`.
    ///
    /// # Errors
    ///
    /// As for [`Graph::instantiate`]; an argument error if the upload stream belongs to another
    /// context or driver.
    #[doc(alias = "cuGraphInstantiateWithParams")]
    #[doc(alias = "cudaGraphInstantiateWithParams")]
    #[doc(alias = "cuGraphInstantiateWithFlags")]
    #[doc(alias = "cudaGraphInstantiateWithFlags")]
    pub fn instantiate_with(&self, options: InstantiateOptions<'_>) -> Result<GraphExec> {
        if let Some(stream) = options.upload {
            check_context(self.context(), stream, "Graph::instantiate_with")?;
        }
        let state = self.tree.lock()?;
        let graph = state.graph("Graph::instantiate_with", self.number)?;
        let has_params = self.driver().has(Function::cuGraphInstantiateWithParams);
        let raw = self.context().entered(|driver| {
            if has_params {
                with_params(driver, &state, graph, options)
            } else if options.flags.is_empty() {
                plain(driver, &state, graph)
            } else {
                with_flags(driver, graph, options.flags)
            }
        })?;
        let exec = GraphExec::owning(&self.tree, raw, state.resources());
        drop(state);
        match options.upload {
            Some(stream) if !has_params => exec.upload(stream).map(|()| exec),
            _ => Ok(exec),
        }
    }
}

fn with_params(
    driver: &Driver,
    state: &State,
    graph: CUgraph,
    options: InstantiateOptions<'_>,
) -> Result<CUgraphExec> {
    let mut params = CUDA_GRAPH_INSTANTIATE_PARAMS {
        flags: options.flags.bits(),
        ..CUDA_GRAPH_INSTANTIATE_PARAMS::default()
    };
    if let Some(stream) = options.upload {
        params.flags |= u64::from(CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD.0);
        params.hUploadStream = stream
            .enqueue_uncaptured("Graph::instantiate_with")?
            .raw_stream();
    }
    let mut raw = std::ptr::null_mut();
    // SAFETY: the graph and the stream are live, and both output pointers are valid.
    let result = unsafe {
        call!(driver, cuGraphInstantiateWithParams(&raw mut raw, graph, &raw mut params) creates raw)
    };
    let fault = Fault {
        node: params.hErrNode_out,
        result: params.result_out,
    };
    result
        .map(|()| raw)
        .map_err(|error| fault.explain(error, driver, state))
}

fn plain(driver: &Driver, state: &State, graph: CUgraph) -> Result<CUgraphExec> {
    let mut raw = std::ptr::null_mut();
    let mut node = std::ptr::null_mut();
    let no_log = std::ptr::null_mut();
    let no_bytes = 0;
    // SAFETY: the graph is live, the output pointers are valid, and no log is requested.
    let result = unsafe {
        call!(driver, cuGraphInstantiate_v2(&raw mut raw, graph, &raw mut node, no_log, no_bytes) creates raw)
    };
    let fault = Fault {
        node,
        result: CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_ERROR,
    };
    result
        .map(|()| raw)
        .map_err(|error| fault.explain(error, driver, state))
}

fn with_flags(driver: &Driver, graph: CUgraph, flags: InstantiateFlags) -> Result<CUgraphExec> {
    let mut raw = std::ptr::null_mut();
    // SAFETY: the graph is live, and the output pointer is valid.
    unsafe {
        call!(driver, cuGraphInstantiateWithFlags(&raw mut raw, graph, flags.bits()) creates raw)
    }?;
    Ok(raw)
}

impl Fault {
    /// Adds the failing node and the problem to an error.
    #[cold]
    fn explain(&self, error: Error, driver: &Driver, state: &State) -> Error {
        let error = match self.node.is_null() {
            true => error,
            false => error.about(describe(driver, state, self.node)),
        };
        error.advised(|_| self.advice().map(Cow::Borrowed))
    }

    fn advice(&self) -> Option<&'static str> {
        Some(match self.result {
            CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE => {
                "the structure of the graph is invalid: its nodes form a cycle, or it contains a combination of nodes that \
                 CUDA does not allow"
            }
            CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED => {
                "device-side launch does not support this node"
            }
            CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED => {
                "device-side launch requires all nodes in one context"
            }
            CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED => {
                "a condition is not used by any conditional node"
            }
            _ => return None,
        })
    }
}

/// Returns a description of the node that the driver reports.
#[cold]
pub(super) fn describe(driver: &Driver, state: &State, raw: CUgraphNode) -> String {
    let mut kind = CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY;
    // SAFETY: the driver has just returned this node, and `kind` is valid for writes.
    let result = unsafe { call!(driver, cuGraphNodeGetType(raw, &raw mut kind)) };
    let kind = result.map_or_else(
        |_| "unknown kind".to_owned(),
        |()| NodeKind::from_raw(kind).to_string(),
    );
    let Some(node) = state.find_node(raw) else {
        return format!("a node of a child or body graph: {kind}");
    };
    match state.resource(node) {
        Some(Resource::Kernel(kernel)) => format!("{node}: {kind} `{}`", kernel.name),
        _ => format!("{node}: {kind}"),
    }
}

/// Returns an error of `operation` unless `stream` belongs to `context`.
#[inline]
pub(super) fn check_context(
    context: &crate::Context,
    stream: &Stream,
    operation: &'static str,
) -> Result<()> {
    context.driver().check_same(stream.driver(), operation)?;
    if stream.context().as_raw() == context.as_raw() {
        return Ok(());
    }
    Err(Error::argument(
        operation,
        format!("context mismatch ({stream:?} and the graph)"),
    ))
}
