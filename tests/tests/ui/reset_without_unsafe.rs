//! Resetting the primary context ends what safe code still holds.

use curium_driver::{Device, Result};

fn reset(device: &Device) -> Result<()> {
    device.reset_primary_context()
}

fn main() {}
