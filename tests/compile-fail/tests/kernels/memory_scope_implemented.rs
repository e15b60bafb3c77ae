//! Scopes are sealed.

use curium_kernel::prelude::*;

pub struct Mine;

impl curium_kernel::MemoryScope for Mine {
    const NUMBER: u32 = 0;
}

fn main() {}
