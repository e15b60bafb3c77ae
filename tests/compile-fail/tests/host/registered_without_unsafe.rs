//! Creating a registration that can be forgotten requires `unsafe`.

use curium_driver::{Context, Result};
use curium_memory::{RegisterFlags, Registered};

fn forget(context: &Context, values: &mut [u32]) -> Result<()> {
    Registered::new(context, values, RegisterFlags::empty()).map(std::mem::forget)
}

fn main() {}
