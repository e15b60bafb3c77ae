//! The grid of a kernel of blocks is a number of blocks.

use curium_kernel::host::{Result, RowMajor, Stream, Threads};
use curium_kernel::prelude::*;
use curium_memory::DeviceBuffer;

#[kernel]
pub fn transpose(block: Block<32, 8>, x: Matrix<f32>, mut y: PerBlockTile<f32, 32, 32>) {
    y.for_each(&block, |position, y| *y = x[(position.column, position.row)]);
}

pub fn launch(kernel: &transpose, stream: &Stream, x: &DeviceBuffer<f32>, y: &mut DeviceBuffer<f32>) -> Result<()> {
    kernel.launch(stream, Threads(3), RowMajor::new(x, 1, 1), RowMajor::new(y, 1, 1))
}

fn main() {}
