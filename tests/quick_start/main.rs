use curium::prelude::*;

fn main() -> curium::Result<()> {
    let device = Device::first().or_else(curium_sim::fallback)?;
    let stream = device.primary_context()?.stream()?;
    let library = Library::from_ptx(&device, include_str!("scale.ptx"))?;
    let scale = library.kernel::<(&mut [f32], f32, u32)>("scale")?;

    let mut x = DeviceBuffer::from_slice(&stream, &[1.0, 2.0, 3.0])?;
    // SAFETY: `scale` accesses the first n elements of x, and compares its index with n, the length of x.
    unsafe { scale.launch(&stream, LaunchConfig::for_elements(3), (&mut x, 2.0, 3)) }?;
    let result = x.to_vec()?;
    println!("{}: {result:?}", device.name()?);
    assert_eq!(result, [2.0, 4.0, 6.0]);
    Ok(())
}
