//! Copies from one device to another, directly if the devices support peer access.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

mod device;

use curium::prelude::*;

fn main() -> device::Outcome {
    let driver = device::driver()?;
    println!("{}", driver.topology()?);
    let [first, second, ..] = &driver.devices()?[..] else {
        println!("this takes two devices, and there is one");
        return Ok(());
    };
    let source_context = first.primary_context()?;
    let target_context = second.primary_context()?;
    if second.can_access_peer(first)? {
        // Required once per direction and pair; a repeated call is not an error.
        target_context.enable_peer_access(&source_context)?;
    }

    let numbers: Vec<u32> = (0..1 << 16).collect();
    let source = DeviceBuffer::from_slice(&source_context.stream()?, &numbers)?;
    let mut target = DeviceBuffer::uninit(&target_context.stream()?, numbers.len())?;
    // The copy waits for earlier writes on the devices; the host does not wait.
    target.copy_from_device(&source)?;
    assert_eq!(target.to_vec()?, numbers);
    println!("{} bytes went from device 0 to device 1", target.byte_len());
    Ok(())
}
