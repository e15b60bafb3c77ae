//! The driver allows no two calls on one graph at once.

use std::sync::Arc;

use curium_driver::Graph;

fn share(graph: Arc<Graph>) {
    std::thread::spawn(move || graph.nodes());
}

fn main() {}
