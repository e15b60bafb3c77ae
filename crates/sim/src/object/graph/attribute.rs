//! Attributes of kernel nodes.

use curium_sys::{CUkernelNodeAttrValue, CUlaunchAttribute, CUlaunchAttributeID as Attribute};

/// The attributes of a kernel node.
#[derive(Clone, Default)]
pub(crate) struct Attributes(Vec<(Attribute, CUkernelNodeAttrValue)>);

/// The attributes that kernel nodes support; launches support more.
pub(crate) const NODE_ATTRIBUTES: [Attribute; 9] = [
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

    pub(crate) fn get(&self, attribute: Attribute) -> CUkernelNodeAttrValue {
        self.0
            .iter()
            .find(|(id, _)| *id == attribute)
            .map_or_else(CUkernelNodeAttrValue::default, |(_, value)| *value)
    }

    pub(crate) fn set(&mut self, attribute: Attribute, value: CUkernelNodeAttrValue) {
        self.0.retain(|(id, _)| *id != attribute);
        self.0.push((attribute, value));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Attribute, &CUkernelNodeAttrValue)> {
        self.0.iter().map(|(attribute, value)| (*attribute, value))
    }
}
