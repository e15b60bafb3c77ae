//! Attributes of kernel nodes.

use curium_sys::{
    CUgraphNode_st, CUkernelNodeAttrID, CUkernelNodeAttrValue, CUlaunchAttribute,
    CUlaunchAttributeID as Attribute, CUresult,
};

use super::content::KernelNode;
use super::{Content, Node};
use crate::argument::{ConstPointer, Pointer};
use crate::driver::{Driver, Result, State};
use crate::handle::Id;

/// The attributes of a kernel node.
#[derive(Clone, Default)]
pub(crate) struct Attributes(Vec<(Attribute, CUkernelNodeAttrValue)>);

/// The attributes that kernel nodes support; launches support more.
const NODE_ATTRIBUTES: [Attribute; 9] = [
    Attribute::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
    Attribute::CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
    Attribute::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
    Attribute::CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
    Attribute::CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE,
    Attribute::CU_LAUNCH_ATTRIBUTE_PRIORITY,
    Attribute::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
    Attribute::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
    Attribute::CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
];

// SAFETY: the values are numbers, and the address of a range of memory that nothing reads through.
unsafe impl Send for Attributes {}
// SAFETY: shared attributes are only read.
unsafe impl Sync for Attributes {}

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Driver {
    pub(crate) fn cuGraphKernelNodeGetAttribute(
        &self,
        node: Pointer<CUgraphNode_st>,
        attribute: CUkernelNodeAttrID,
        value: Pointer<CUkernelNodeAttrValue>,
    ) -> Result {
        let output = value.required()?;
        let state = self.lock();
        let (_, kernel) = state.kernel_node(node)?;
        check(attribute)?;
        output.write(kernel.attributes.get(attribute))
    }

    pub(crate) fn cuGraphKernelNodeSetAttribute(
        &self,
        node: Pointer<CUgraphNode_st>,
        attribute: CUkernelNodeAttrID,
        value: ConstPointer<CUkernelNodeAttrValue>,
    ) -> Result {
        let value = value.read()?;
        let mut state = self.lock();
        let (id, kernel) = state.kernel_node(node)?;
        check(attribute)?;
        let mut attributes = kernel.attributes.clone();
        attributes.set(attribute, value);
        let content = self.with_attributes(kernel, attributes)?;
        state.replace(id, content);
        Ok(())
    }

    pub(crate) fn cuGraphKernelNodeCopyAttributes(
        &self,
        to: Pointer<CUgraphNode_st>,
        from: Pointer<CUgraphNode_st>,
    ) -> Result {
        let mut state = self.lock();
        let attributes = state.kernel_node(from)?.1.attributes.clone();
        let (id, kernel) = state.kernel_node(to)?;
        let content = self.with_attributes(kernel, attributes)?;
        state.replace(id, content);
        Ok(())
    }
}

impl Driver {
    /// Returns the replacement for `before` in its node, which keeps its attributes.
    pub(super) fn inherit_attributes(&self, before: &Content, content: Content) -> Result<Content> {
        match (before, content) {
            (Content::Kernel(before), Content::Kernel(kernel)) => {
                self.with_attributes(&kernel, before.attributes.clone())
            }
            (_, content) => Ok(content),
        }
    }

    /// Returns the same kernel node with other attributes.
    fn with_attributes(&self, kernel: &KernelNode, attributes: Attributes) -> Result<Content> {
        let launch = self.relaunch(&kernel.launch, attributes.iter())?;
        // SAFETY: a function is a handle, which is only compared.
        let function = unsafe { Pointer::from_raw(kernel.function.as_raw()) };
        Content::kernel(function, launch, attributes)
    }
}

impl Attributes {
    /// Returns the attributes of a launch that its node keeps.
    pub(crate) fn from_launch(attributes: &[CUlaunchAttribute]) -> Self {
        let mut node_attributes = Self::default();
        for attribute in attributes
            .iter()
            .filter(|attribute| NODE_ATTRIBUTES.contains(&attribute.id))
        {
            node_attributes.set(attribute.id, attribute.value);
        }
        node_attributes
    }

    fn get(&self, attribute: Attribute) -> CUkernelNodeAttrValue {
        self.0
            .iter()
            .find(|(id, _)| *id == attribute)
            .map_or_else(CUkernelNodeAttrValue::default, |(_, value)| *value)
    }

    fn set(&mut self, attribute: Attribute, value: CUkernelNodeAttrValue) {
        self.0.retain(|(id, _)| *id != attribute);
        self.0.push((attribute, value));
    }

    fn iter(&self) -> impl Iterator<Item = (Attribute, &CUkernelNodeAttrValue)> {
        self.0.iter().map(|(attribute, value)| (*attribute, value))
    }
}

impl State {
    fn kernel_node(&self, raw: Pointer<CUgraphNode_st>) -> Result<(Id<Node>, &KernelNode)> {
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

/// Checks that kernel nodes support an attribute.
fn check(attribute: Attribute) -> Result {
    if NODE_ATTRIBUTES.contains(&attribute) {
        Ok(())
    } else {
        Err(CUresult::CUDA_ERROR_INVALID_VALUE)
    }
}
