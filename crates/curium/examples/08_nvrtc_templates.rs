//! Compiles a CUDA C++ template at run time for the types that it is used with. Requires NVRTC,
//! which is found like the driver; install it with `pip install nvidia-cuda-nvrtc-cu12`.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

mod device;

use curium::nvrtc::{CompileOptions, Nvrtc, Program};
use curium::prelude::*;

const SOURCE: &str = r"
template <class T> __global__ void scale(T* x, T by, unsigned int n)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        x[i] *= by;
    }
}";

fn main() -> device::Outcome {
    let nvrtc = match Nvrtc::load() {
        Ok(nvrtc) => nvrtc,
        Err(error) => {
            println!("this takes NVRTC, and there is none: {error}");
            return Ok(());
        }
    };
    let device = device::driver()?.device(0)?;
    let stream = device.primary_context()?.stream()?;
    let program = Program::new("scale.cu", SOURCE)
        .with_name_expression("scale<float>")
        .with_name_expression("scale<int>");
    let program = device.compile_with(&nvrtc, program, &CompileOptions::new())?;
    let of_floats: Kernel<(&mut [f32], f32, u32)> = program.kernel("scale<float>")?;
    let of_integers: Kernel<(&mut [i32], i32, u32)> = program.kernel("scale<int>")?;

    let mut floats = DeviceBuffer::from_slice(&stream, &[1.5_f32, 2.5, 3.5])?;
    let mut integers = DeviceBuffer::from_slice(&stream, &[1, 2, 3])?;
    let config = LaunchConfig::for_elements(3);
    // SAFETY: `scale` accesses the first three elements, which exist.
    unsafe { of_floats.launch(&stream, config, (&mut floats, 2.0, 3)) }?;
    // SAFETY: `scale` accesses the first three elements, which exist.
    unsafe { of_integers.launch(&stream, config, (&mut integers, -1, 3)) }?;
    let floats = floats.to_vec()?;
    let integers = integers.to_vec()?;
    assert_eq!(
        (&floats[..], &integers[..]),
        (&[3.0, 5.0, 7.0][..], &[-1, -2, -3][..])
    );
    println!(
        "NVRTC of CUDA {}: {floats:?}, {integers:?}",
        nvrtc.version()
    );
    Ok(())
}
