//! Unified memory: the host accesses it only while no device work does.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

mod device;

use curium::memory::{MemoryLocation, UnifiedBuffer};
use curium::prelude::*;

const KERNELS: &str = include_str!("kernels/vectors.ptx");
const ELEMENTS: u32 = 4096;

fn main() -> device::Outcome {
    let device = device::driver()?.device(0)?;
    let stream = device.primary_context()?.stream()?;
    let square = Library::from_ptx(&device, KERNELS)?.kernel::<(&mut [f32], u32)>("square")?;

    let mut numbers = UnifiedBuffer::<f32>::zeroed(&stream, ELEMENTS as usize)?;
    for (i, number) in numbers.host_view_mut()?.iter_mut().enumerate() {
        *number = i as f32;
    }
    // Optional: migrates the pages before the kernel accesses them.
    numbers.prefetch(&stream, .., MemoryLocation::Device(device.as_raw()))?;
    // SAFETY: `square` accesses the first ELEMENTS elements, which exist.
    unsafe {
        square.launch(
            &stream,
            LaunchConfig::for_elements(ELEMENTS as usize),
            (&mut numbers, ELEMENTS),
        )
    }?;

    let view = numbers.host_view()?; // waits for the kernel
    assert!(
        view.iter()
            .enumerate()
            .all(|(i, number)| *number == (i * i) as f32)
    );
    println!("{} squares are seen by the host without a copy", view.len());
    Ok(())
}
