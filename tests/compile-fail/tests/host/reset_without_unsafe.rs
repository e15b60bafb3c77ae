//! Resetting the primary context destroys objects that safe code still holds.

use curium_driver::{Device, Result};

fn reset(device: &Device) -> Result<()> {
    device.reset_primary_context()
}

fn main() {}
