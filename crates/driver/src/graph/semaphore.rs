//! External semaphore nodes.

use std::fmt;
use std::sync::Arc;

use curium_sys::{
    CUDA_EXT_SEM_SIGNAL_NODE_PARAMS, CUDA_EXT_SEM_WAIT_NODE_PARAMS,
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
    CUexternalSemaphore,
};

use super::node::{Node, SemaphoreSignalNode, SemaphoreWaitNode};
use super::resource::Resource;
use super::{Graph, NewNode};
use crate::base::handle::Handle;
use crate::call;
use crate::{Context, Driver, Error, Result, Stream};

/// An external semaphore that a node signals or waits for, with its owner.
#[derive(Clone)]
pub struct GraphSemaphore {
    raw: Handle<curium_sys::CUextSemaphore_st>,
    value: u64,
    context: Context,
    owner: Arc<dyn SemaphoreOwner>,
}

/// The owner of a semaphore that graphs use. It may destroy the semaphore only after all launches
/// of these graphs have completed.
pub trait SemaphoreOwner: Send + Sync {
    /// Called before an executable graph that uses the semaphore is launched on `stream`. Must not
    /// launch that graph.
    fn launched(&self, stream: &Stream);
}

/// The driver's parameters of a signal node.
pub(super) struct Signals {
    semaphores: Vec<CUexternalSemaphore>,
    params: Vec<CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS>,
}

/// The driver's parameters of a wait node.
pub(super) struct Waits {
    semaphores: Vec<CUexternalSemaphore>,
    params: Vec<CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS>,
}

impl GraphSemaphore {
    /// Creates an operand from the semaphore `raw` of `context`, which `owner` keeps alive. `owner`
    /// is notified of each launch. `value` is the value that a timeline semaphore is signaled with
    /// or waited for; other kinds ignore it.
    ///
    /// # Safety
    ///
    /// `raw` is a semaphore of this context that is live for as long as `owner` exists.
    #[must_use]
    pub unsafe fn new(
        context: &Context,
        raw: CUexternalSemaphore,
        value: u64,
        owner: Arc<dyn SemaphoreOwner>,
    ) -> Self {
        Self {
            raw: Handle::new(raw),
            value,
            context: context.clone(),
            owner,
        }
    }
}

impl Graph {
    /// Adds an external semaphore signal node that depends on the nodes in `after`.
    ///
    /// CUDA: `cuGraphAddExternalSemaphoresSignalNode`.
    ///
    /// # Errors
    ///
    /// An argument error if a semaphore belongs to another context or driver, or if a node in
    /// `after` belongs to another graph or was removed; any error returned by the driver.
    #[doc(alias = "cuGraphAddExternalSemaphoresSignalNode")]
    #[doc(alias = "cudaGraphAddExternalSemaphoresSignalNode")]
    pub fn add_semaphore_signal(
        &mut self,
        after: &[Node],
        semaphores: &[GraphSemaphore],
    ) -> Result<SemaphoreSignalNode> {
        check_semaphores(self.context(), semaphores, "Graph::add_semaphore_signal")?;
        let mut signals = Signals::new(semaphores);
        let params = signals.params();
        let added = self.add("Graph::add_semaphore_signal", after, owners(semaphores), |driver, arguments| {
            let NewNode {
                node,
                graph,
                after,
                count,
            } = arguments;
            let params = &raw const params;
            // SAFETY: the graph, the nodes and the semaphores are live.
            unsafe { call!(driver, cuGraphAddExternalSemaphoresSignalNode(node, graph, after, count, params) creates arguments.created()) }
        });
        added.map(SemaphoreSignalNode)
    }

    /// Adds an external semaphore wait node that depends on the nodes in `after`. Make sure that
    /// the semaphores are signaled; otherwise the launch never completes.
    ///
    /// CUDA: `cuGraphAddExternalSemaphoresWaitNode`.
    ///
    /// # Errors
    ///
    /// An argument error if a semaphore belongs to another context or driver, or if a node in
    /// `after` belongs to another graph or was removed; any error returned by the driver.
    #[doc(alias = "cuGraphAddExternalSemaphoresWaitNode")]
    #[doc(alias = "cudaGraphAddExternalSemaphoresWaitNode")]
    pub fn add_semaphore_wait(
        &mut self,
        after: &[Node],
        semaphores: &[GraphSemaphore],
    ) -> Result<SemaphoreWaitNode> {
        check_semaphores(self.context(), semaphores, "Graph::add_semaphore_wait")?;
        let mut waits = Waits::new(semaphores);
        let params = waits.params();
        let added = self.add("Graph::add_semaphore_wait", after, owners(semaphores), |driver, arguments| {
            let NewNode {
                node,
                graph,
                after,
                count,
            } = arguments;
            let params = &raw const params;
            // SAFETY: the graph, the nodes and the semaphores are live.
            unsafe { call!(driver, cuGraphAddExternalSemaphoresWaitNode(node, graph, after, count, params) creates arguments.created()) }
        });
        added.map(SemaphoreWaitNode)
    }

    /// Sets the semaphores that a node signals. Existing executable graphs are not affected.
    ///
    /// CUDA: `cuGraphExternalSemaphoresSignalNodeSetParams`.
    ///
    /// # Errors
    ///
    /// An argument error if a semaphore belongs to another context or driver, or if the node
    /// belongs to another graph or was removed; any error returned by the driver.
    #[doc(alias = "cuGraphExternalSemaphoresSignalNodeSetParams")]
    pub fn set_semaphore_signal(
        &mut self,
        node: SemaphoreSignalNode,
        semaphores: &[GraphSemaphore],
    ) -> Result<()> {
        let mut signals = Signals::new(semaphores);
        let params = signals.params();
        self.set_semaphores(
            "Graph::set_semaphore_signal",
            *node,
            semaphores,
            |driver, raw| {
                // SAFETY: the node and the semaphores are live.
                unsafe {
                    call!(
                        driver,
                        cuGraphExternalSemaphoresSignalNodeSetParams(raw, &raw const params)
                    )
                }
            },
        )
    }

    /// Sets the semaphores that a node waits for. Existing executable graphs are not affected.
    ///
    /// CUDA: `cuGraphExternalSemaphoresWaitNodeSetParams`.
    ///
    /// # Errors
    ///
    /// An argument error if a semaphore belongs to another context or driver, or if the node
    /// belongs to another graph or was removed; any error returned by the driver.
    #[doc(alias = "cuGraphExternalSemaphoresWaitNodeSetParams")]
    pub fn set_semaphore_wait(
        &mut self,
        node: SemaphoreWaitNode,
        semaphores: &[GraphSemaphore],
    ) -> Result<()> {
        let mut waits = Waits::new(semaphores);
        let params = waits.params();
        self.set_semaphores(
            "Graph::set_semaphore_wait",
            *node,
            semaphores,
            |driver, raw| {
                // SAFETY: the node and the semaphores are live.
                unsafe {
                    call!(
                        driver,
                        cuGraphExternalSemaphoresWaitNodeSetParams(raw, &raw const params)
                    )
                }
            },
        )
    }

    /// Returns the number of semaphores that a node signals.
    ///
    /// CUDA: `cuGraphExternalSemaphoresSignalNodeGetParams`.
    ///
    /// # Errors
    ///
    /// An argument error if the node is in another graph or was removed.
    #[doc(alias = "cuGraphExternalSemaphoresSignalNodeGetParams")]
    pub fn semaphore_signal_count(&self, node: SemaphoreSignalNode) -> Result<usize> {
        let state = self.tree.lock()?;
        let raw = state.member("Graph::semaphore_signal_count", self.number, *node)?;
        let mut params = CUDA_EXT_SEM_SIGNAL_NODE_PARAMS::default();
        // SAFETY: the node is live, and `params` is valid for writes.
        unsafe {
            call!(
                self.driver(),
                cuGraphExternalSemaphoresSignalNodeGetParams(raw, &raw mut params)
            )
        }?;
        Ok(params.numExtSems as usize)
    }

    /// Returns the number of semaphores that a node waits for.
    ///
    /// CUDA: `cuGraphExternalSemaphoresWaitNodeGetParams`.
    ///
    /// # Errors
    ///
    /// An argument error if the node is in another graph or was removed.
    #[doc(alias = "cuGraphExternalSemaphoresWaitNodeGetParams")]
    pub fn semaphore_wait_count(&self, node: SemaphoreWaitNode) -> Result<usize> {
        let state = self.tree.lock()?;
        let raw = state.member("Graph::semaphore_wait_count", self.number, *node)?;
        let mut params = CUDA_EXT_SEM_WAIT_NODE_PARAMS::default();
        // SAFETY: the node is live, and `params` is valid for writes.
        unsafe {
            call!(
                self.driver(),
                cuGraphExternalSemaphoresWaitNodeGetParams(raw, &raw mut params)
            )
        }?;
        Ok(params.numExtSems as usize)
    }

    fn set_semaphores(
        &mut self,
        operation: &'static str,
        node: Node,
        semaphores: &[GraphSemaphore],
        set: impl FnOnce(&Driver, curium_sys::CUgraphNode) -> Result<()>,
    ) -> Result<()> {
        check_semaphores(self.context(), semaphores, operation)?;
        let mut state = self.tree.lock()?;
        set(self.driver(), state.member(operation, self.number, node)?)?;
        let before = state.replace_resource(node, owners(semaphores));
        drop(state);
        drop(before);
        Ok(())
    }
}

impl Signals {
    pub(super) fn new(semaphores: &[GraphSemaphore]) -> Self {
        Self {
            semaphores: handles(semaphores),
            params: semaphores
                .iter()
                .map(|semaphore| {
                    let mut params = CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS::default();
                    params.params.fence.value = semaphore.value;
                    params
                })
                .collect(),
        }
    }

    pub(super) fn params(&mut self) -> CUDA_EXT_SEM_SIGNAL_NODE_PARAMS {
        CUDA_EXT_SEM_SIGNAL_NODE_PARAMS {
            extSemArray: self.semaphores.as_mut_ptr(),
            paramsArray: self.params.as_ptr(),
            numExtSems: self.semaphores.len() as u32,
        }
    }
}

impl Waits {
    pub(super) fn new(semaphores: &[GraphSemaphore]) -> Self {
        Self {
            semaphores: handles(semaphores),
            params: semaphores
                .iter()
                .map(|semaphore| {
                    let mut params = CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS::default();
                    params.params.fence.value = semaphore.value;
                    params
                })
                .collect(),
        }
    }

    pub(super) fn params(&mut self) -> CUDA_EXT_SEM_WAIT_NODE_PARAMS {
        CUDA_EXT_SEM_WAIT_NODE_PARAMS {
            extSemArray: self.semaphores.as_mut_ptr(),
            paramsArray: self.params.as_ptr(),
            numExtSems: self.semaphores.len() as u32,
        }
    }
}

impl fmt::Debug for GraphSemaphore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "GraphSemaphore({:?}, {})", self.raw, self.value)
    }
}

/// Returns an error of `operation` unless nodes of `context` can use the semaphores.
pub(super) fn check_semaphores(
    context: &Context,
    semaphores: &[GraphSemaphore],
    operation: &'static str,
) -> Result<()> {
    semaphores.iter().try_for_each(|semaphore| {
        context
            .driver()
            .check_same(semaphore.context.driver(), operation)?;
        if semaphore.context.as_raw() == context.as_raw() {
            return Ok(());
        }
        Err(Error::argument(
            operation,
            format!("context mismatch ({semaphore:?} and the graph)"),
        ))
    })
}

fn handles(semaphores: &[GraphSemaphore]) -> Vec<CUexternalSemaphore> {
    semaphores
        .iter()
        .map(|semaphore| semaphore.raw.raw())
        .collect()
}

/// Returns the owners of a node's semaphores.
pub(super) fn owners(semaphores: &[GraphSemaphore]) -> Option<Resource> {
    Some(Resource::Semaphores(
        semaphores
            .iter()
            .map(|semaphore| Arc::clone(&semaphore.owner))
            .collect(),
    ))
}
