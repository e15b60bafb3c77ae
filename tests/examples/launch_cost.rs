//! Launches a kernel many times, as C does or through Curium, on a driver whose launch does nothing: `cargo xtask cost` counts the
//! instructions of both.
//!
//! `launch_cost c|curium COUNT`: only the functions called `…_launches` are to be counted.

use std::error::Error;
use std::ffi::c_void;
use std::hint::black_box;

use curium_driver::sys::{Api, CUdeviceptr, CUfunction, CUresult, CUstream};
use curium_driver::{Kernel, LaunchConfig, Library, Result, Stream};
use curium_memory::DeviceBuffer;
use curium_tests::{idle_driver, kernels};

type Saxpy = Kernel<(f32, &'static [f32], &'static mut [f32], u32)>;

const COUNT: u32 = 1_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [mode, count] = arguments.as_slice() else { return Err("usage: launch_cost c|curium COUNT".into()) };
    let driver = idle_driver();
    let stream = driver.device(0)?.primary_context()?.stream()?;
    let saxpy: Saxpy = Library::from_ptx(&driver, kernels::SAXPY)?.kernel("saxpy")?;
    let x = DeviceBuffer::from_slice(&stream, &[1.0; COUNT as usize])?;
    let mut y = DeviceBuffer::from_slice(&stream, &[2.0; COUNT as usize])?;
    match (mode.as_str(), count.parse()?) {
        ("c", count) => {
            let (x, y) = (x.as_pointer().as_raw(), y.as_pointer().as_raw());
            c_launches(driver.api(), saxpy.as_raw(), stream.as_raw(), x, y, count)
                .map_err(|code| format!("a launch returned {}", code.0))?;
        }
        ("curium", count) => curium_launches(&saxpy, &stream, &x, &mut y, count)?,
        (other, _) => return Err(format!("there is no mode {other}").into()),
    }
    Ok(())
}

/// What a C program does: the addresses of its arguments, the call, and a look at the code.
#[inline(never)]
fn c_launches(
    api: &Api,
    kernel: CUfunction,
    stream: CUstream,
    x: CUdeviceptr,
    y: CUdeviceptr,
    count: u64,
) -> Result<(), CUresult> {
    let config = LaunchConfig::for_elements(COUNT);
    for _ in 0..count {
        // SAFETY: `main` put a function there.
        let launch = unsafe { black_box(api).cuLaunchKernel.unwrap_unchecked() };
        let config = *black_box(&config);
        let (grid, block) = (config.grid, config.block);
        let (kernel, stream, shared) = (black_box(kernel), black_box(stream), config.shared_bytes);
        let (mut a, mut x, mut y, mut n) = (2.0_f32, x, y, COUNT);
        let mut places = [(&raw mut a).cast(), (&raw mut x).cast(), (&raw mut y).cast(), (&raw mut n).cast::<c_void>()];
        let (places, extra) = (places.as_mut_ptr(), std::ptr::null_mut());
        // SAFETY: this launch does nothing.
        let code =
            unsafe { launch(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, stream, places, extra) };
        if code != CUresult::CUDA_SUCCESS {
            return Err(code);
        }
    }
    Ok(())
}

#[inline(never)]
fn curium_launches(
    kernel: &Saxpy,
    stream: &Stream,
    x: &DeviceBuffer<f32>,
    y: &mut DeviceBuffer<f32>,
    count: u64,
) -> Result<()> {
    let config = LaunchConfig::for_elements(COUNT);
    for _ in 0..count {
        let (kernel, stream) = (black_box(kernel), black_box(stream));
        // SAFETY: this launch does nothing.
        unsafe { kernel.launch(stream, *black_box(&config), (2.0, x, &mut *y, COUNT)) }?;
    }
    Ok(())
}
