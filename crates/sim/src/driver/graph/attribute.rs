//! Attributes of kernel nodes.

use curium_sys::{CUgraphNode_st, CUresult};

use crate::argument::Pointer;
use crate::driver::device::Devices;
use crate::driver::graph::Graphs;
use crate::handle::Id;
use crate::object::graph::Node;
use crate::object::graph::attribute::Attributes;
use crate::object::graph::content::{Content, KernelNode};
use crate::result::Result;

impl Devices<'_> {
    /// Returns the replacement for `before` in its node, which keeps its attributes.
    pub(crate) fn inherit_attributes(&self, before: &Content, content: Content) -> Result<Content> {
        match (before, content) {
            (Content::Kernel(before), Content::Kernel(kernel)) => {
                self.with_attributes(&kernel, before.attributes.clone())
            }
            (_, content) => Ok(content),
        }
    }

    /// Returns the same kernel node with other attributes.
    pub(crate) fn with_attributes(
        &self,
        kernel: &KernelNode,
        attributes: Attributes,
    ) -> Result<Content> {
        let launch = self.relaunch(&kernel.launch, attributes.iter())?;
        // SAFETY: a function is a handle, which is only compared.
        let function = unsafe { Pointer::from_raw(kernel.function.as_raw()) };
        Content::kernel(function, launch, attributes)
    }
}

impl Graphs {
    pub(crate) fn kernel_node(
        &self,
        raw: Pointer<CUgraphNode_st>,
    ) -> Result<(Id<Node>, &KernelNode)> {
        match self.node(raw)? {
            (
                id,
                Node {
                    content: Content::Kernel(kernel),
                    ..
                },
            ) => Ok((id, kernel)),
            _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        }
    }
}
