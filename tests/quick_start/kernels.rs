use curium::prelude::*;

curium::kernels! {
    /// The kernels of `scale.ptx`.
    struct Kernels from "scale.ptx" {
        fn scale(x: &mut [f32], by: f32, n: u32);
    }
}

/// Returns each number times two.
fn doubled(device: &Device, numbers: &[f32]) -> curium::driver::Result<Vec<f32>> {
    let stream = device.primary_context()?.stream()?;
    let kernels = Kernels::load(device)?; // loads the code, and compares the signatures with it
    let mut x = DeviceBuffer::from_slice(&stream, numbers)?;
    let n = numbers.len() as u32;
    // SAFETY: `scale` accesses the first n elements of x, and compares its index with n, the length
    // of x.
    unsafe { kernels.scale.launch(&stream, LaunchConfig::for_elements(x.len()), (&mut x, 2.0, n)) }?;
    x.to_vec()
}
