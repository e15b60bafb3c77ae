//! `ByValue` is implemented by `unsafe` code or the derive.

use curium_kernel::prelude::*;

#[derive(Clone, Copy)]
pub struct Mine(u32);

impl ByValue for Mine {}

fn main() {}
