//! An operand is implemented by `unsafe` code.

use curium_kernel::prelude::*;

pub struct Mine;

impl curium_kernel::ThreadOperand<64, 1, 1> for Mine {
    type Part = usize;

    unsafe fn thread_part(self) -> usize {
        0
    }
}

fn main() {}
