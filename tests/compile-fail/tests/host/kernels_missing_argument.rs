//! A declared kernel requires all its arguments.

use curium_driver::{LaunchConfig, Stream};

curium_driver::kernels! {
    struct Kernels unsafe {
        safe fn add(a: u32, b: u32);
    }
}

fn launch(stream: &Stream, kernels: &Kernels) {
    kernels.add.launch(stream, LaunchConfig::for_elements(8), (8_u32,)).unwrap();
}

fn main() {}
