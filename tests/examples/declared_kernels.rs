//! Launches kernels of a set declared with `kernels!`:
//! `cargo run -p curium-tests --example declared_kernels`, on this machine's GPU or the simulator.
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use curium::prelude::*;
use curium_sim::{Config, Simulator};

curium::kernels! {
    /// The kernels of this program.
    struct Kernels from "../kernels/saxpy.ptx" unsafe {
        // SAFETY: `saxpy` guards its index with `n`, and this program passes the length of both.
        safe fn saxpy(a: f32, x: &[f32], y: &mut [f32], n: u32);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let simulator = Simulator::new(Config::new())?;
    let device = Device::first().or_else(|_| simulator.driver())?;
    let stream = device.primary_context()?.stream()?;
    let kernels = Kernels::load(&device)?;

    let x = DeviceBuffer::from_slice(&stream, &[1.0, 2.0, 3.0])?;
    let mut y = DeviceBuffer::from_slice(&stream, &[10.0, 20.0, 30.0])?;
    kernels
        .saxpy
        .launch(&stream, LaunchConfig::for_elements(3), (2.0, &x, &mut y, 3))?;
    println!("{}: {:?}", device.name()?, y.to_vec()?);
    Ok(())
}
