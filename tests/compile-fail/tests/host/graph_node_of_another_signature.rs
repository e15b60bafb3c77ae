//! A kernel node accepts only the arguments of its kernel.

use curium_driver::{DevicePointer, GraphExec, KernelNode};

fn update(exec: &mut GraphExec, node: &KernelNode<(&'static mut [u32], u32)>, pointer: DevicePointer<f32>) {
    unsafe { exec.set_kernel(node, (pointer, 3)) }.unwrap();
}

fn main() {}
