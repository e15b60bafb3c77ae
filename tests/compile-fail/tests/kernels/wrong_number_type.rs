//! The types of numbers match.

use curium_kernel::host::{Result, Stream};
use curium_kernel::prelude::*;
use curium_memory::DeviceBuffer;

#[kernel]
pub fn saxpy(t: Thread, a: f32, x: &[f32], mut y: PerThread<f32>) {
    if let Some(y) = y.get(&t) {
        *y = a.mul_add(x[t.index()], *y);
    }
}

pub fn launch(kernel: &saxpy, stream: &Stream, x: &DeviceBuffer<f32>, y: &mut DeviceBuffer<f32>) -> Result<()> {
    kernel.launch(stream, 3, 2.0_f64, x, y)
}

fn main() {}
