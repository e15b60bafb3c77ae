//! A launch takes the executable for itself.

use curium_driver::{GraphExec, Stream};

fn launch(exec: &GraphExec, stream: &Stream) {
    exec.launch(stream).unwrap();
}

fn main() {}
