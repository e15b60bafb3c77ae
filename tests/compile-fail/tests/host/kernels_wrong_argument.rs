//! A declared kernel requires arguments of its types, in its order.

use curium_driver::{LaunchConfig, Stream};
use curium_memory::DeviceBuffer;

curium_driver::kernels! {
    struct Kernels unsafe {
        safe fn fill(out: &mut [u32], n: u32, value: f32);
    }
}

fn launch(stream: &Stream, kernels: &Kernels, out: &mut DeviceBuffer<u32>) {
    kernels.fill.launch(stream, LaunchConfig::for_elements(8), (out, 1.0_f32, 8_u32)).unwrap();
}

fn main() {}
