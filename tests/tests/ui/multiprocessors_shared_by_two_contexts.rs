//! A set of multiprocessors is taken by what runs on it, so that two green contexts cannot be made of one.

use curium_driver::{Context, GreenContextOptions, Multiprocessors, Result};

fn twice(part: Multiprocessors) -> Result<[Context; 2]> {
    let device = part.device().clone();
    let first = device.green_context(GreenContextOptions::new(part))?;
    let second = device.green_context(GreenContextOptions::new(part))?;
    Ok([first, second])
}

fn main() {}
