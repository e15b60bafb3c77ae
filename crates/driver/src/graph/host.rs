//! Host nodes.

use std::ffi::c_void;

use curium_sys::CUDA_HOST_NODE_PARAMS;

use super::node::{HostNode, Node};
use super::object_reference::ObjectReference;
use super::resource::Resource;
use super::{Graph, NewNode};
use crate::base::contain::contain_host_callback;
use crate::base::release::is_exiting;
use crate::call;
use crate::{Driver, Result};

impl Graph {
    /// Adds a host node that depends on the nodes in `after`. Each launch calls `function` once.
    ///
    /// The function runs on a driver thread that serves other host functions too, so it should be
    /// short. **It must not use this crate or own objects of this crate**: every driver call in it
    /// fails, and a wait never returns. Its panics are caught and reported to `tracing`; the launch
    /// continues.
    ///
    /// The function lives until the graph and everything created from it have been dropped and all
    /// of their launches have completed. Launches of different executable graphs may call it
    /// concurrently.
    ///
    /// CUDA: `cuGraphAddHostNode`, `cuUserObjectCreate`, `cuGraphRetainUserObject`.
    ///
    /// # Errors
    ///
    /// An argument error if a node in `after` belongs to another graph or was removed. The function
    /// is then dropped.
    #[doc(alias = "cuGraphAddHostNode")]
    #[doc(alias = "cudaGraphAddHostNode")]
    pub fn add_host(
        &mut self,
        after: &[Node],
        function: impl Fn() + Send + Sync + 'static,
    ) -> Result<HostNode> {
        let (object, params) = closure(self.driver(), function)?;
        self.retain_reference(&*self.tree.lock()?, "Graph::add_host", &object)?;
        let resource = Some(Resource::Object(object.clone()));
        let added = self.add("Graph::add_host", after, resource, |driver, arguments| {
            let NewNode {
                node,
                graph,
                after,
                count,
            } = arguments;
            // SAFETY: the graph and the nodes are live; the graph retains the closure for as long
            // as it can be called.
            unsafe {
                call!(driver, cuGraphAddHostNode(node, graph, after, count, &raw const params) creates arguments.created())
            }
        });
        if added.is_err() {
            self.release_reference(&*self.tree.lock()?, "Graph::add_host", &object)?;
        }
        added.map(HostNode)
    }

    /// Sets the function of a host node. Existing executable graphs are not affected.
    ///
    /// CUDA: `cuGraphHostNodeSetParams`, `cuUserObjectCreate`, `cuGraphRetainUserObject`,
    /// `cuGraphReleaseUserObject`.
    ///
    /// # Errors
    ///
    /// An argument error if the node belongs to another graph or was removed. The function is then
    /// dropped.
    #[doc(alias = "cuGraphHostNodeSetParams")]
    #[doc(alias = "cudaGraphHostNodeSetParams")]
    pub fn set_host(
        &mut self,
        node: HostNode,
        function: impl Fn() + Send + Sync + 'static,
    ) -> Result<()> {
        let operation = "Graph::set_host";
        let (object, params) = closure(self.driver(), function)?;
        // One lock until the object is kept: another handle of the graph could remove the node or
        // replace its function.
        let mut state = self.tree.lock()?;
        let raw = state.member(operation, self.number, *node)?;
        self.retain_reference(&state, operation, &object)?;
        // SAFETY: the node is live, and the graph retains the closure for as long as it can be
        // called.
        let set = unsafe {
            call!(
                self.driver(),
                cuGraphHostNodeSetParams(raw, &raw const params)
            )
        };
        let unused = match set {
            Ok(()) => state.replace_resource(*node, Some(Resource::Object(object))),
            Err(_) => Some(Resource::Object(object)),
        };
        drop(state);
        set.and(self.release_objects(operation, unused.as_slice()))
    }

    /// Returns the function and the argument of a host node as raw values. They belong to Curium
    /// and must be neither called nor modified.
    ///
    /// CUDA: `cuGraphHostNodeGetParams`.
    ///
    /// # Errors
    ///
    /// An argument error if the node is in another graph or was removed.
    #[doc(alias = "cuGraphHostNodeGetParams")]
    #[doc(alias = "cudaGraphHostNodeGetParams")]
    pub fn raw_host(&self, node: HostNode) -> Result<CUDA_HOST_NODE_PARAMS> {
        let state = self.tree.lock()?;
        let node = state.member("Graph::raw_host", self.number, *node)?;
        let mut params = CUDA_HOST_NODE_PARAMS::default();
        // SAFETY: the node is live, and `params` is valid for writes.
        unsafe {
            call!(
                self.driver(),
                cuGraphHostNodeGetParams(node, &raw mut params)
            )
        }?;
        Ok(params)
    }
}

/// Creates a user object that owns the closure, and the parameters of a node that calls it.
pub(super) fn closure<F>(
    driver: &Driver,
    function: F,
) -> Result<(ObjectReference, CUDA_HOST_NODE_PARAMS)>
where
    F: Fn() + Send + Sync + 'static,
{
    let (object, data) = ObjectReference::new(driver, Box::new(function))?;
    Ok((
        object,
        CUDA_HOST_NODE_PARAMS {
            fn_: Some(run::<F>),
            userData: data.cast(),
        },
    ))
}

/// Calls the closure of a node.
///
/// # Safety
///
/// `data` points to an `F` that lives for the duration of the call.
pub(super) unsafe extern "C" fn run<F: Fn() + Sync>(data: *mut c_void) {
    contain_host_callback("a host function of a graph", || {
        if is_exiting() {
            return;
        }
        // SAFETY: the caller is responsible for the pointer.
        let function = unsafe { &*data.cast::<F>() };
        function();
    });
}
