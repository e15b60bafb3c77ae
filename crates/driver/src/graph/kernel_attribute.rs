//! Launch attributes of kernel nodes.

use curium_sys::{CUkernelNodeAttrValue, CUlaunchAttributeID};

use super::Graph;
use super::node::{KernelNode, Node};
use crate::call;
use crate::{Error, LaunchAttributes, Result};

impl Graph {
    /// Sets launch attributes of a kernel node. Attributes that are not set in `attributes` keep
    /// their values.
    ///
    /// CUDA: `cuGraphKernelNodeSetAttribute`, for each attribute.
    ///
    /// # Safety
    ///
    /// The requirements of [`Graph::add_kernel`] are met when the kernel is launched with these
    /// attributes.
    ///
    /// # Errors
    ///
    /// An argument error if the node belongs to another graph or was removed, and for attributes
    /// that record an event; `CUDA_ERROR_INVALID_VALUE` for an attribute that kernel nodes do not
    /// support. Attributes before the rejected one are set.
    #[doc(alias = "cuGraphKernelNodeSetAttribute")]
    #[doc(alias = "cudaGraphKernelNodeSetAttribute")]
    #[inline]
    pub unsafe fn set_kernel_attributes<S>(
        &mut self,
        node: &KernelNode<S>,
        attributes: &LaunchAttributes<'_>,
    ) -> Result<()> {
        refuse_events(attributes, "Graph::set_kernel_attributes")?;
        self.set_attributes("Graph::set_kernel_attributes", **node, attributes)
    }

    /// Returns an attribute of a kernel node as a raw value.
    ///
    /// CUDA: `cuGraphKernelNodeGetAttribute`.
    ///
    /// # Errors
    ///
    /// An argument error if the node belongs to another graph or was removed;
    /// `CUDA_ERROR_INVALID_VALUE` for an attribute that kernel nodes do not support.
    #[doc(alias = "cuGraphKernelNodeGetAttribute")]
    #[doc(alias = "cudaGraphKernelNodeGetAttribute")]
    #[inline]
    pub fn raw_kernel_attribute<S>(
        &self,
        node: &KernelNode<S>,
        attribute: CUlaunchAttributeID,
    ) -> Result<CUkernelNodeAttrValue> {
        let state = self.tree.lock()?;
        let raw = state.member("Graph::raw_kernel_attribute", self.number, **node)?;
        let mut value = CUkernelNodeAttrValue::default();
        // SAFETY: the node is live, and `value` is valid for writes of any attribute.
        unsafe {
            call!(
                self.driver(),
                cuGraphKernelNodeGetAttribute(raw, attribute, &raw mut value)
            )
        }?;
        Ok(value)
    }

    /// Copies the launch attributes of another kernel node of the same graph.
    ///
    /// CUDA: `cuGraphKernelNodeCopyAttributes`.
    ///
    /// # Safety
    ///
    /// As for [`Graph::set_kernel_attributes`], with the attributes of `from`.
    ///
    /// # Errors
    ///
    /// An argument error if a node is in another graph or was removed.
    #[doc(alias = "cuGraphKernelNodeCopyAttributes")]
    #[doc(alias = "cudaGraphKernelNodeCopyAttributes")]
    #[inline]
    pub unsafe fn copy_kernel_attributes<S, T>(
        &mut self,
        to: &KernelNode<S>,
        from: &KernelNode<T>,
    ) -> Result<()> {
        let operation = "Graph::copy_kernel_attributes";
        let state = self.tree.lock()?;
        let to = state.member(operation, self.number, **to)?;
        let from = state.member(operation, self.number, **from)?;
        // SAFETY: both nodes are live kernel nodes, and the lock gives this thread exclusive access
        // to the graph.
        unsafe { call!(self.driver(), cuGraphKernelNodeCopyAttributes(to, from)) }
    }

    #[inline]
    pub(super) fn set_attributes(
        &mut self,
        operation: &'static str,
        node: Node,
        attributes: &LaunchAttributes<'_>,
    ) -> Result<()> {
        let state = self.tree.lock()?;
        let raw = state.member(operation, self.number, node)?;
        attributes.as_raw().iter().try_for_each(|attribute| {
            let value = &raw const attribute.value;
            // SAFETY: the node is live, and the value belongs to this attribute.
            unsafe {
                call!(
                    self.driver(),
                    cuGraphKernelNodeSetAttribute(raw, attribute.id, value)
                )
            }
        })
    }
}

#[inline]
pub(super) fn refuse_events(
    attributes: &LaunchAttributes<'_>,
    operation: &'static str,
) -> Result<()> {
    if attributes.has_events() {
        let reason = "a kernel node cannot record an event; add an event node or a programmatic edge instead";
        return Err(Error::argument(operation, reason));
    }
    Ok(())
}
