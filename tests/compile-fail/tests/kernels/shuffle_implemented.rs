//! Types with shuffles are sealed.

use curium_kernel::prelude::*;

#[derive(Clone, Copy)]
pub struct Mine(u32);

impl curium_kernel::Shuffle for Mine {
    fn map_words(self, _: impl Fn(u32) -> u32) -> Self {
        self
    }
}

fn main() {}
