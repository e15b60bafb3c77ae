//! Individual updates of nodes in executable graphs.

use std::sync::Arc;

use curium_sys::{CUgraphExec, CUgraphNode, CUgraphNodeParams, cuuint64_t};

use super::copy::GraphCopy;
use super::event::check_event;
use super::exec::GraphExec;
use super::fill::GraphFill;
use super::instantiate::InstantiateFlags;
use super::node::{
    ChildNode, CopyNode, EventRecordNode, EventWaitNode, FillNode, MemoryOperationNode, Node,
    SemaphoreSignalNode, SemaphoreWaitNode,
};
use super::resource::Resource;
use super::semaphore::{GraphSemaphore, Signals, Waits, check_semaphores, owners};
use super::tree::ROOT;
use super::{Graph, memory_operation};
use crate::call;
use crate::{Driver, Error, Event, MemoryOperation, Result};

impl GraphExec {
    /// Sets the operands of a memory copy node for subsequent launches. The kinds of memory must
    /// stay the same.
    ///
    /// CUDA: `cuGraphExecMemcpyNodeSetParams`.
    ///
    /// # Safety
    ///
    /// As for [`Graph::add_copy`].
    ///
    /// # Errors
    ///
    /// An argument error if the node does not belong to the source graph or was removed from it;
    /// `CUDA_ERROR_INVALID_VALUE` if the executable graph does not have the node, or if the
    /// operands do not match it.
    #[doc(alias = "cuGraphExecMemcpyNodeSetParams")]
    #[doc(alias = "cudaGraphExecMemcpyNodeSetParams")]
    #[inline]
    pub unsafe fn set_copy(&mut self, node: CopyNode, copy: GraphCopy) -> Result<()> {
        let raw = copy.to_raw();
        let context = self.context().as_raw();
        let set = self.with_node("GraphExec::set_copy", *node, |driver, exec, node| {
            // SAFETY: the executable graph, the node and the context are live, and the caller is
            // responsible for the operands.
            unsafe {
                call!(
                    driver,
                    cuGraphExecMemcpyNodeSetParams(exec, node, &raw const raw, context)
                )
            }
        });
        set.map_err(|error| error.about(copy.describe()))
    }

    /// Sets the operands of a memset node for subsequent launches.
    ///
    /// CUDA: `cuGraphExecMemsetNodeSetParams`.
    ///
    /// # Safety
    ///
    /// As for [`Graph::add_fill`].
    ///
    /// # Errors
    ///
    /// As for [`GraphExec::set_copy`].
    #[doc(alias = "cuGraphExecMemsetNodeSetParams")]
    #[doc(alias = "cudaGraphExecMemsetNodeSetParams")]
    #[inline]
    pub unsafe fn set_fill(&mut self, node: FillNode, fill: GraphFill) -> Result<()> {
        let raw = fill.to_raw();
        let context = self.context().as_raw();
        let set = self.with_node("GraphExec::set_fill", *node, |driver, exec, node| {
            // SAFETY: the executable graph, the node and the context are live, and the caller is
            // responsible for the memory.
            unsafe {
                call!(
                    driver,
                    cuGraphExecMemsetNodeSetParams(exec, node, &raw const raw, context)
                )
            }
        });
        set.map_err(|error| error.about(fill.describe()))
    }

    /// Sets the event that a node records in subsequent launches.
    ///
    /// CUDA: `cuGraphExecEventRecordNodeSetEvent`.
    ///
    /// # Errors
    ///
    /// An argument error if the event belongs to another context or driver; otherwise as for
    /// [`GraphExec::set_copy`].
    #[doc(alias = "cuGraphExecEventRecordNodeSetEvent")]
    #[doc(alias = "cudaGraphExecEventRecordNodeSetEvent")]
    #[inline]
    pub fn set_event_record(&mut self, node: EventRecordNode, event: &Event) -> Result<()> {
        check_event(self.context(), event, "GraphExec::set_event_record")?;
        self.with_node("GraphExec::set_event_record", *node, |driver, exec, raw| {
            // SAFETY: the executable graph, the node and the event are live and belong to this
            // driver.
            unsafe {
                call!(
                    driver,
                    cuGraphExecEventRecordNodeSetEvent(exec, raw, event.as_raw())
                )
            }
        })?;
        self.set_resource(*node, Resource::Event(event.share()));
        Ok(())
    }

    /// Sets the event that a node waits for in subsequent launches.
    ///
    /// CUDA: `cuGraphExecEventWaitNodeSetEvent`.
    ///
    /// # Errors
    ///
    /// An argument error if the event belongs to another context or driver; otherwise as for
    /// [`GraphExec::set_copy`].
    #[doc(alias = "cuGraphExecEventWaitNodeSetEvent")]
    #[doc(alias = "cudaGraphExecEventWaitNodeSetEvent")]
    #[inline]
    pub fn set_event_wait(&mut self, node: EventWaitNode, event: &Event) -> Result<()> {
        check_event(self.context(), event, "GraphExec::set_event_wait")?;
        self.with_node("GraphExec::set_event_wait", *node, |driver, exec, raw| {
            // SAFETY: the executable graph, the node and the event are live and belong to this
            // driver.
            unsafe {
                call!(
                    driver,
                    cuGraphExecEventWaitNodeSetEvent(exec, raw, event.as_raw())
                )
            }
        })?;
        self.set_resource(*node, Resource::Event(event.share()));
        Ok(())
    }

    /// Sets the semaphores that a node signals in subsequent launches.
    ///
    /// CUDA: `cuGraphExecExternalSemaphoresSignalNodeSetParams`.
    ///
    /// # Errors
    ///
    /// An argument error if a semaphore belongs to another context; otherwise as for
    /// [`GraphExec::set_copy`].
    #[doc(alias = "cuGraphExecExternalSemaphoresSignalNodeSetParams")]
    #[inline]
    pub fn set_semaphore_signal(
        &mut self,
        node: SemaphoreSignalNode,
        semaphores: &[GraphSemaphore],
    ) -> Result<()> {
        check_semaphores(
            self.context(),
            semaphores,
            "GraphExec::set_semaphore_signal",
        )?;
        let mut signals = Signals::new(semaphores);
        let params = signals.params();
        self.with_node(
            "GraphExec::set_semaphore_signal",
            *node,
            |driver, exec, raw| {
                // SAFETY: the executable graph, the node and the semaphores are live.
                unsafe {
                    call!(
                        driver,
                        cuGraphExecExternalSemaphoresSignalNodeSetParams(
                            exec,
                            raw,
                            &raw const params
                        )
                    )
                }
            },
        )?;
        owners(semaphores)
            .into_iter()
            .for_each(|owners| self.set_resource(*node, owners));
        Ok(())
    }

    /// Sets the semaphores that a node waits for in subsequent launches.
    ///
    /// CUDA: `cuGraphExecExternalSemaphoresWaitNodeSetParams`.
    ///
    /// # Errors
    ///
    /// An argument error if a semaphore belongs to another context; otherwise as for
    /// [`GraphExec::set_copy`].
    #[doc(alias = "cuGraphExecExternalSemaphoresWaitNodeSetParams")]
    #[inline]
    pub fn set_semaphore_wait(
        &mut self,
        node: SemaphoreWaitNode,
        semaphores: &[GraphSemaphore],
    ) -> Result<()> {
        check_semaphores(self.context(), semaphores, "GraphExec::set_semaphore_wait")?;
        let mut waits = Waits::new(semaphores);
        let params = waits.params();
        self.with_node(
            "GraphExec::set_semaphore_wait",
            *node,
            |driver, exec, raw| {
                // SAFETY: the executable graph, the node and the semaphores are live.
                unsafe {
                    call!(
                        driver,
                        cuGraphExecExternalSemaphoresWaitNodeSetParams(
                            exec,
                            raw,
                            &raw const params
                        )
                    )
                }
            },
        )?;
        owners(semaphores)
            .into_iter()
            .for_each(|owners| self.set_resource(*node, owners));
        Ok(())
    }

    /// Sets the operations of a batch memory operation node for subsequent launches.
    ///
    /// CUDA: `cuGraphExecBatchMemOpNodeSetParams`.
    ///
    /// # Safety
    ///
    /// As for [`Graph::add_memory_operations`].
    ///
    /// # Errors
    ///
    /// An argument error for more than 256 operations; otherwise as for [`GraphExec::set_copy`].
    #[doc(alias = "cuGraphExecBatchMemOpNodeSetParams")]
    #[inline]
    pub unsafe fn set_memory_operations(
        &mut self,
        node: MemoryOperationNode,
        operations: &[MemoryOperation],
    ) -> Result<()> {
        let mut values =
            memory_operation::raw_operations(operations, "GraphExec::set_memory_operations")?;
        let params = memory_operation::params(self.context(), &mut values);
        self.with_node(
            "GraphExec::set_memory_operations",
            *node,
            |driver, exec, raw| {
                // SAFETY: the executable graph and the node are live, and the caller is responsible
                // for the addresses.
                unsafe {
                    call!(
                        driver,
                        cuGraphExecBatchMemOpNodeSetParams(exec, raw, &raw const params)
                    )
                }
            },
        )
    }

    /// Updates a child graph node with the current parameters in `child` for subsequent launches.
    /// `child` must have the same topology as before.
    ///
    /// CUDA: `cuGraphExecChildGraphNodeSetParams`.
    ///
    /// # Errors
    ///
    /// An argument error if the child belongs to another context or driver or to the source graph,
    /// or if its captured work has a new conflict with other work of the executable graph;
    /// otherwise as for [`GraphExec::set_copy`].
    #[doc(alias = "cuGraphExecChildGraphNodeSetParams")]
    #[doc(alias = "cudaGraphExecChildGraphNodeSetParams")]
    #[inline]
    pub fn set_child(&mut self, node: ChildNode, child: &Graph) -> Result<()> {
        let operation = "GraphExec::set_child";
        let Some(source) = self.source() else {
            return Err(unknown_source(operation));
        };
        let graph = Graph::in_tree(Arc::clone(source), ROOT);
        let resources = graph.lock_both(operation, child, |state, other| {
            let raw = state.node(operation, *node)?;
            let graph = other.graph(operation, child.number)?;
            let resources = other.resources();
            let old = self.node_resources(*node, state);
            if !resources.can_replace(&old, &self.current_resources()) {
                let node = *node;
                let reason = format!(
                    "the new child of {node} conflicts with other work; the previous child does not"
                );
                return Err(Error::argument(operation, reason));
            }
            // SAFETY: the executable graph, the node and the graph are live, and this thread has
            // exclusive access to all of them.
            unsafe {
                call!(
                    self.driver(),
                    cuGraphExecChildGraphNodeSetParams(self.as_raw(), raw, graph)
                )
            }?;
            Ok(resources)
        })?;
        self.set_resource(*node, Resource::Child(resources));
        Ok(())
    }

    /// Sets the raw parameters of a node of any kind for subsequent launches.
    ///
    /// Requires a driver for CUDA 12.2. CUDA: `cuGraphExecNodeSetParams`.
    ///
    /// # Safety
    ///
    /// As for [`Graph::add_raw`].
    ///
    /// # Errors
    ///
    /// As for [`GraphExec::set_copy`].
    #[doc(alias = "cuGraphExecNodeSetParams")]
    #[doc(alias = "cudaGraphExecNodeSetParams")]
    #[inline]
    pub unsafe fn set_raw(&mut self, node: Node, params: &mut CUgraphNodeParams) -> Result<()> {
        let context = self.context();
        self.with_node("GraphExec::set_raw", node, |driver, exec, raw| {
            // SAFETY: the executable graph and the node are live, and the caller is responsible for
            // the parameters.
            context
                .entered(|_| unsafe { call!(driver, cuGraphExecNodeSetParams(exec, raw, params)) })
        })
    }

    /// Enables or disables a node in subsequent launches. Only kernel, memory copy and memset nodes
    /// can be disabled.
    ///
    /// CUDA: `cuGraphNodeSetEnabled`.
    ///
    /// # Errors
    ///
    /// An argument error if the node does not belong to the source graph or was removed from it;
    /// `CUDA_ERROR_INVALID_VALUE` if it is of another kind.
    #[doc(alias = "cuGraphNodeSetEnabled")]
    #[doc(alias = "cudaGraphNodeSetEnabled")]
    #[inline]
    pub fn set_enabled(&mut self, node: Node, is_enabled: bool) -> Result<()> {
        self.with_node("GraphExec::set_enabled", node, |driver, exec, raw| {
            // SAFETY: the executable graph and the node are live.
            unsafe { call!(driver, cuGraphNodeSetEnabled(exec, raw, is_enabled.into())) }
        })
    }

    /// Returns `true` if a node is enabled.
    ///
    /// CUDA: `cuGraphNodeGetEnabled`.
    ///
    /// # Errors
    ///
    /// As for [`GraphExec::set_enabled`].
    #[doc(alias = "cuGraphNodeGetEnabled")]
    #[doc(alias = "cudaGraphNodeGetEnabled")]
    #[inline]
    pub fn is_enabled(&self, node: Node) -> Result<bool> {
        let mut is_enabled = 0;
        self.with_node("GraphExec::is_enabled", node, |driver, exec, raw| {
            // SAFETY: the executable graph and the node are live, and `is_enabled` is valid for
            // writes.
            unsafe {
                call!(
                    driver,
                    cuGraphNodeGetEnabled(exec, raw, &raw mut is_enabled)
                )
            }
        })?;
        Ok(is_enabled != 0)
    }

    /// Returns the flags that the graph was instantiated with.
    ///
    /// Requires a driver for CUDA 12.0. CUDA: `cuGraphExecGetFlags`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuGraphExecGetFlags")]
    #[doc(alias = "cudaGraphExecGetFlags")]
    #[inline]
    pub fn flags(&self) -> Result<InstantiateFlags> {
        let mut flags: cuuint64_t = 0;
        // SAFETY: the executable graph is live, and `flags` is valid for writes.
        unsafe {
            call!(
                self.driver(),
                cuGraphExecGetFlags(self.as_raw(), &raw mut flags)
            )
        }?;
        Ok(InstantiateFlags::from_bits_retain(flags))
    }

    /// Runs `call` with the raw handle of a node while no other thread uses the graph of the node.
    #[inline]
    pub(super) fn with_node(
        &self,
        operation: &'static str,
        node: Node,
        call: impl FnOnce(&Driver, CUgraphExec, CUgraphNode) -> Result<()>,
    ) -> Result<()> {
        let Some(source) = self.source() else {
            return Err(unknown_source(operation));
        };
        let state = source.lock()?;
        call(self.driver(), self.as_raw(), state.node(operation, node)?)
    }
}

#[cold]
pub(super) fn unknown_source(operation: &'static str) -> Error {
    Error::argument(
        operation,
        "the source graph is unknown, because the executable graph was created by `from_raw`",
    )
}
