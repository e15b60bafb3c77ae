//! One buffer is not two outputs.

use curium_kernel::host::{Blocks, Result, RowMajor, Stream};
use curium_kernel::prelude::*;
use curium_memory::DeviceBuffer;

#[kernel]
pub fn transpose(block: Block<32, 8>, x: Matrix<f32>, mut y: PerBlockTile<f32, 32, 32>) {
    y.for_each(&block, |position, y| *y = x[(position.column, position.row)]);
}

pub fn launch(kernel: &transpose, stream: &Stream, y: &mut DeviceBuffer<f32>) -> Result<()> {
    kernel.launch(stream, Blocks::new((1, 1)), RowMajor::new(&*y, 1, 1), RowMajor::new(&mut *y, 1, 1))
}

fn main() {}
