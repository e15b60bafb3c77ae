//! Attributes of kernel nodes.

use curium_sys::{
    CUgraphNode_st, CUkernelNodeAttrID, CUkernelNodeAttrValue, CUlaunchAttributeID as Attribute,
    CUresult,
};

use crate::argument::{ConstPointer, Pointer};
use crate::call::Call;
use crate::object::graph::attribute::NODE_ATTRIBUTES;
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuGraphKernelNodeGetAttribute(
        &self,
        node: Pointer<CUgraphNode_st>,
        attribute: CUkernelNodeAttrID,
        value: Pointer<CUkernelNodeAttrValue>,
    ) -> Result {
        let output = value.required()?;
        let state = self.lock();
        let (_, kernel) = state.graphs.kernel_node(node)?;
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
        let (id, kernel) = state.graphs.kernel_node(node)?;
        check(attribute)?;
        // SAFETY: this attribute's value is a number, for which any bytes are valid.
        let carveout = unsafe { value.sharedMemCarveout };
        if attribute == Attribute::CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
            && carveout > 100
        {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let mut attributes = kernel.attributes.clone();
        attributes.set(attribute, value);
        let content = self.devices().with_attributes(kernel, attributes)?;
        state.graphs.replace(id, content);
        Ok(())
    }

    pub(crate) fn cuGraphKernelNodeCopyAttributes(
        &self,
        to: Pointer<CUgraphNode_st>,
        from: Pointer<CUgraphNode_st>,
    ) -> Result {
        let mut state = self.lock();
        let attributes = state.graphs.kernel_node(from)?.1.attributes.clone();
        let (id, kernel) = state.graphs.kernel_node(to)?;
        let content = self.devices().with_attributes(kernel, attributes)?;
        state.graphs.replace(id, content);
        Ok(())
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
