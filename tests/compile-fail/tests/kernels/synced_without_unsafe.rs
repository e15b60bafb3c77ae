//! Memory of a block is implemented by `unsafe` code.

use curium_kernel::prelude::*;

pub struct Mine;

impl Synced for Mine {
    type View<'v> = ();

    unsafe fn view<'v>(self) {}
}

fn main() {}
