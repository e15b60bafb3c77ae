//! A launch borrows the executable graph exclusively.

use curium_driver::{GraphExec, Stream};

fn launch(exec: &GraphExec, stream: &Stream) {
    exec.launch(stream).unwrap();
}

fn main() {}
