//! A kernel that was not declared safe is not launched by safe code.

use curium_driver::{LaunchConfig, Stream};

curium_driver::kernels! {
    struct Kernels {
        fn add(a: u32, b: u32);
    }
}

fn launch(stream: &Stream, kernels: &Kernels) {
    kernels.add.launch(stream, LaunchConfig::for_elements(8), (1, 2)).unwrap();
}

fn main() {}
