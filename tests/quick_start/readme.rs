use curium::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::first()?; // loads the driver
    println!("{:?}", saxpy(&device)?);
    Ok(())
}

/// Returns 2 * x + y.
fn saxpy(device: &Device) -> curium::driver::Result<Vec<f32>> {
    let stream = device.primary_context()?.stream()?;
    let library = Library::from_ptx(device, include_str!("saxpy.ptx"))?;
    // Returns an error if the number or sizes of the parameters differ from those of the loaded code.
    let saxpy = library.kernel::<(f32, &[f32], &mut [f32], u32)>("saxpy")?;

    let x = DeviceBuffer::from_slice(&stream, &[1.0, 2.0, 3.0])?;
    let mut y = DeviceBuffer::from_slice(&stream, &[10.0, 20.0, 30.0])?;
    // SAFETY: `saxpy` reads x, writes y, and guards its index with n, the length of both.
    unsafe { saxpy.launch(&stream, LaunchConfig::for_elements(3), (2.0, &x, &mut y, 3)) }?;
    y.to_vec() // waits for the kernel
}

#[test]
fn saxpy_multiplies_and_adds() {
    let result = curium_sim::test(|device: Device| saxpy(&device));
    assert_eq!(result.expect("the kernel runs"), [12.0, 24.0, 36.0]);
}
