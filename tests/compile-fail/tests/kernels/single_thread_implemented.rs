//! Tokens of threads are sealed.

use curium_kernel::prelude::*;

pub struct Mine;

impl curium_kernel::SingleThread for Mine {}

fn main() {}
