//! A kernel does not receive a host address by value.

use curium_driver::{LaunchConfig, SafeKernel, Stream};

fn launch(stream: &Stream, kernel: &SafeKernel<(&[u32],)>, host: &[u32]) {
    kernel.launch(stream, LaunchConfig::for_elements(8), (host,)).unwrap();
}

fn main() {}
