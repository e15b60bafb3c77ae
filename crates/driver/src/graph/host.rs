//! Host nodes.

use std::ffi::c_void;

use curium_sys::CUDA_HOST_NODE_PARAMS;

use super::kept::Resource;
use super::object_reference::ObjectReference;
use super::{Graph, HostNode, Node};
use crate::base::release::{contain, is_exiting};
use crate::call;
use crate::{Driver, Result};

impl Graph {
    /// Adds a node behind `after` that calls `function` on the host, in each launch once.
    ///
    /// The function runs on a thread of the driver, beside which other host functions wait: it should be short. **It must not use this
    /// crate, nor own anything of this crate**: every call of the driver fails there, and one that waits never returns. A panic of the
    /// function is caught and reported to `tracing`; the launch goes on.
    ///
    /// The function lives until the graph and everything made of it are gone, and every launch of that has ended. Launches of several
    /// executables may call it from several threads at once.
    ///
    /// CUDA: `cuGraphAddHostNode`, `cuUserObjectCreate`, `cuGraphRetainUserObject`.
    ///
    /// # Errors
    ///
    /// An argument error if a node of `after` is in another graph or was removed. The function is dropped then.
    #[doc(alias = "cuGraphAddHostNode")]
    #[inline]
    pub fn add_host(&mut self, after: &[Node], function: impl Fn() + Send + Sync + 'static) -> Result<HostNode> {
        let (object, params) = closure(self.driver(), function)?;
        self.retain_reference(&*self.tree.lock()?, "Graph::add_host", &object)?;
        let kept = Some(Resource::Object(object.clone()));
        let added = self.add("Graph::add_host", after, kept, |driver, spot| {
            let (node, graph, after, count) = (spot.node, spot.graph, spot.after, spot.count);
            // SAFETY: the graph and the nodes are live; the graph retains the closure for as long as it can be called.
            unsafe {
                call!(driver, cuGraphAddHostNode(node, graph, after, count, &raw const params) creates spot.created())
            }
        });
        if added.is_err() {
            self.release_reference(&*self.tree.lock()?, "Graph::add_host", &object)?;
        }
        added.map(HostNode)
    }

    /// Sets the function of a host node. Existing executable graphs are not affected.
    ///
    /// CUDA: `cuGraphHostNodeSetParams`, `cuUserObjectCreate`, `cuGraphRetainUserObject`, `cuGraphReleaseUserObject`.
    ///
    /// # Errors
    ///
    /// An argument error if the node is in another graph or was removed. The function is dropped then.
    #[doc(alias = "cuGraphHostNodeSetParams")]
    #[inline]
    pub fn set_host(&mut self, node: HostNode, function: impl Fn() + Send + Sync + 'static) -> Result<()> {
        let operation = "Graph::set_host";
        let raw = self.tree.lock()?.member(operation, self.number, *node)?;
        let (object, params) = closure(self.driver(), function)?;
        self.retain_reference(&*self.tree.lock()?, operation, &object)?;
        // SAFETY: the node is live, and the graph retains the closure for as long as it can be called.
        let set = unsafe { call!(self.driver(), cuGraphHostNodeSetParams(raw, &raw const params)) };
        let unused = match set {
            Ok(()) => self.tree.lock()?.replace(*node, Some(Resource::Object(object))),
            Err(_) => Some(Resource::Object(object)),
        };
        set.and(self.let_go(operation, unused.as_slice()))
    }

    /// What a node calls, as C has it: the function and what it is called with. That is ours, and none of it may be called or changed.
    ///
    /// CUDA: `cuGraphHostNodeGetParams`.
    ///
    /// # Errors
    ///
    /// An argument error if the node is in another graph or was removed.
    #[doc(alias = "cuGraphHostNodeGetParams")]
    #[inline]
    pub fn raw_host(&self, node: HostNode) -> Result<CUDA_HOST_NODE_PARAMS> {
        let state = self.tree.lock()?;
        let node = state.member("Graph::raw_host", self.number, *node)?;
        let mut params = CUDA_HOST_NODE_PARAMS::default();
        // SAFETY: the node is live, and `params` is a valid place.
        unsafe { call!(self.driver(), cuGraphHostNodeGetParams(node, &raw mut params)) }?;
        Ok(params)
    }
}

/// Returns a closure that the driver owns, and a node that calls it.
#[inline]
pub(super) fn closure<F>(driver: &Driver, function: F) -> Result<(ObjectReference, CUDA_HOST_NODE_PARAMS)>
where
    F: Fn() + Send + Sync + 'static,
{
    let (object, place) = ObjectReference::new(driver, Box::new(function))?;
    Ok((object, CUDA_HOST_NODE_PARAMS { fn_: Some(run::<F>), userData: place.cast() }))
}

/// Calls the closure of a node.
///
/// # Safety
///
/// `place` is that of an `F` that lives during the call.
pub(super) unsafe extern "C" fn run<F: Fn() + Sync>(place: *mut c_void) {
    if is_exiting() {
        return;
    }
    // SAFETY: the caller is responsible for the place.
    let function = unsafe { &*place.cast::<F>() };
    if !contain(function) {
        tracing::error!("a host function of a graph panicked");
    }
}
