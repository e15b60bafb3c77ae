//! The caller guarantees which memory a kernel node accesses, and that the memory lives long enough.

use curium_driver::{Graph, Kernel, LaunchConfig};

fn add(graph: &mut Graph, kernel: &Kernel<(u32,)>) {
    graph.add_kernel(&[], kernel, LaunchConfig::for_elements(8), (8,)).unwrap();
}

fn main() {}
