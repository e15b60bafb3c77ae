//! Only who adds a kernel to a graph knows what memory it uses, and for how long that lives.

use curium_driver::{Graph, Kernel, LaunchConfig};

fn add(graph: &mut Graph, kernel: &Kernel<(u32,)>) {
    graph.add_kernel(&[], kernel, LaunchConfig::for_elements(8), (8,)).unwrap();
}

fn main() {}
