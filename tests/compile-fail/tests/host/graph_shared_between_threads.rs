//! The driver does not allow concurrent calls on one graph.

use std::sync::Arc;

use curium_driver::Graph;

fn share(graph: Arc<Graph>) {
    std::thread::spawn(move || graph.nodes());
}

fn main() {}
