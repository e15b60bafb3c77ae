//! A split consumes its set of multiprocessors, so that two splits of one set cannot overlap.

use curium_driver::{Multiprocessors, Partitioning, Result, SplitFlags};

fn twice(all: Multiprocessors) -> Result<[Partitioning; 2]> {
    Ok([all.split(2, 16, SplitFlags::empty())?, all.split(4, 8, SplitFlags::empty())?])
}

fn main() {}
