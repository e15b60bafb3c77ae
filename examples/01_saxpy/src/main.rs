use curium::prelude::*;

mod kernels {
    use curium_kernel::prelude::*;

    /// y = a * x + y
    #[kernel]
    pub fn saxpy(t: Thread, a: f32, x: &[f32], mut y: PerThread<f32>) {
        if let Some(y) = y.get(&t) {
            *y += a * x[t.index()];
        }
    }
}
curium_kernel::include_kernels!("kernels");

/// Returns 2 * x + y.
fn saxpy(device: &Device) -> curium::Result<Vec<f32>> {
    let stream = device.primary_context()?.stream()?;
    let kernels = Kernels::load(device)?;
    let x = DeviceBuffer::from_slice(&stream, &[1.0, 2.0, 3.0])?;
    let mut y = DeviceBuffer::from_slice(&stream, &[10.0, 20.0, 30.0])?;
    kernels.saxpy.launch(&stream, y.len(), 2.0, &x, &mut y)?; // safe: borrows and checks its arguments
    y.to_vec() // waits for the kernel
}

fn main() -> curium::Result<()> {
    let device = Device::first().or_else(curium_sim::fallback)?; // a GPU, or the simulator
    println!("{}: {:?}", device.name()?, saxpy(&device)?);
    Ok(())
}

#[test]
fn saxpy_multiplies_and_adds() -> curium::Result<()> {
    curium_sim::test(|device: Device| {
        assert_eq!(saxpy(&device)?, [12.0, 24.0, 36.0]);
        Ok(())
    })
}
