//! The caller guarantees that a kernel that was declared safe is safe with another attribute, too.

use curium_driver::sys::CUfunction_attribute;
use curium_driver::{Device, Graph, KernelNode, LaunchAttributes, SafeKernel};

fn set(kernel: &SafeKernel<(u32,)>, device: &Device) {
    kernel.set_required_cluster(device, 2).unwrap();
    kernel.set_attribute(device, CUfunction_attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 2).unwrap();
}

fn set_of_node(graph: &mut Graph, node: &KernelNode<(u32,)>, other: &KernelNode<(u32,)>) {
    graph.set_kernel_attributes(node, &LaunchAttributes::new().with_cluster(2)).unwrap();
    graph.copy_kernel_attributes(node, other).unwrap();
}

fn main() {}
