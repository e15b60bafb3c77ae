//! Adds two vectors: every step from the driver to the result.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

mod device;

use curium::prelude::*;

const KERNELS: &str = include_str!("kernels/vectors.ptx");

fn main() -> device::Outcome {
    let device = device::driver()?.device(0)?;
    let stream = device.primary_context()?.stream()?;
    let library = Library::from_ptx(&device, KERNELS)?;
    // The number and sizes of the parameters are checked against the kernel's here.
    let add = library.kernel::<(&[f32], &[f32], &mut [f32], u32)>("add")?;

    let n = 10_000_u32;
    let (x, y): (Vec<f32>, Vec<f32>) = (0..n).map(|i| (i as f32, 1.0)).unzip();
    let x = DeviceBuffer::from_slice(&stream, &x)?;
    let y = DeviceBuffer::from_slice(&stream, &y)?;
    let mut sum = DeviceBuffer::uninit(&stream, n as usize)?;
    // SAFETY: `add` reads x and y, writes sum, and guards its index with n, the length of all
    // three.
    unsafe {
        add.launch(
            &stream,
            LaunchConfig::for_elements(sum.len()),
            (&x, &y, &mut sum, n),
        )
    }?;

    let sum = sum.to_vec()?; // waits
    assert!(sum.iter().zip(0..n).all(|(sum, i)| *sum == i as f32 + 1.0));
    println!("{}: {n} sums are right", device.name()?);
    Ok(())
}
