//! A 32-bit parameter does not accept a 64-bit number.

use curium_driver::{Kernel, LaunchConfig, Stream};

fn launch(stream: &Stream, kernel: &Kernel<(u32,)>, count: u64) {
    unsafe { kernel.launch(stream, LaunchConfig::for_elements(8), (count,)) }.unwrap();
}

fn main() {}
