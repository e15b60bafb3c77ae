//! A green context consumes its set of multiprocessors, so that two contexts cannot be created from one set.

use curium_driver::{Context, GreenContextOptions, Multiprocessors, Result};

fn twice(part: Multiprocessors) -> Result<[Context; 2]> {
    let device = part.device().clone();
    let first = device.green_context(GreenContextOptions::new(part))?;
    let second = device.green_context(GreenContextOptions::new(part))?;
    Ok([first, second])
}

fn main() {}
