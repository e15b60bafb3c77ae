//! The launch of a kernel with other types is `unsafe`.

use curium_kernel::host::{Result, Stream};
use curium_kernel::prelude::*;
use curium_memory::DeviceBuffer;

#[kernel]
pub fn kernel(t: Thread, mut x: PerThread<f64>) {}

pub fn launch(kernel: &kernel, stream: &Stream, x: &DeviceBuffer<f32>) -> Result<()> {
    let call = curium_kernel::__private::Call::new("launch", &["x"]);
    curium_kernel::__private::launch::<Thread, (&[f32],), _, _>(&kernel.__function, &call, stream, 1.into(), (x,))
}

fn main() {}
