//! A type of shared memory is implemented by `unsafe` code.

use curium_kernel::prelude::*;

pub struct Mine(&'static u32);

impl curium_kernel::SharedType for Mine {}

fn main() {}
