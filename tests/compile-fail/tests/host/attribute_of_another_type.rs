//! An attribute has the type of its value.

use curium_driver::{Device, DeviceAttribute, Result};

fn warp(device: &Device) -> Result<bool> {
    device.attribute(DeviceAttribute::WARP_SIZE)
}

fn main() {}
