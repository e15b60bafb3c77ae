//! Shares memory with code that uses the runtime API: a Curium kernel uses memory from
//! `cudaMalloc`. Both use the primary context of the device. It requires a GPU and the runtime
//! library; `tests/examples/runtime_interop.rs` shares streams as well.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

mod device;

use std::ffi::{c_int, c_void};

use curium::prelude::*;
use libloading::Library as Runtime;

const KERNELS: &str = include_str!("kernels/vectors.ptx");
const NAMES: [&str; 4] = [
    "libcudart.so.13",
    "libcudart.so.12",
    "libcudart.so.11.0",
    "libcudart.so",
];
const TO_DEVICE: c_int = 1;
const TO_HOST: c_int = 2;

type Malloc = unsafe extern "C" fn(*mut *mut c_void, usize) -> c_int;
type Memcpy = unsafe extern "C" fn(*mut c_void, *const c_void, usize, c_int) -> c_int;
type Free = unsafe extern "C" fn(*mut c_void) -> c_int;

fn main() -> device::Outcome {
    let driver = device::driver()?;
    // SAFETY: loading the CUDA runtime runs its initializers, which any program that links it runs
    // too.
    let runtime = NAMES
        .iter()
        .find_map(|name| unsafe { Runtime::new(*name) }.ok());
    let (Some(runtime), Ok(_)) = (runtime, Driver::load()) else {
        println!("this takes a GPU and the library of the runtime API, and one is absent");
        return Ok(());
    };
    let stream = driver.device(0)?.primary_context()?.stream()?;
    let square =
        Library::from_ptx(&driver, KERNELS)?.kernel::<(DevicePointer<f32>, u32)>("square")?;
    // SAFETY: the runtime exports this function with this signature.
    let malloc = unsafe { runtime.get::<Malloc>(b"cudaMalloc\0") }?;
    // SAFETY: the runtime exports this function with this signature.
    let memcpy = unsafe { runtime.get::<Memcpy>(b"cudaMemcpy\0") }?;
    // SAFETY: the runtime exports this function with this signature.
    let free = unsafe { runtime.get::<Free>(b"cudaFree\0") }?;

    let mut numbers = [1.0_f32, 2.0, 3.0];
    let bytes = size_of_val(&numbers);
    let mut memory = std::ptr::null_mut();
    // SAFETY: `memory` is valid for the result.
    checked("cudaMalloc", unsafe { malloc(&raw mut memory, bytes) })?;
    // SAFETY: both sides have this many bytes.
    checked("cudaMemcpy", unsafe {
        memcpy(memory, numbers.as_ptr().cast(), bytes, TO_DEVICE)
    })?;
    let pointer = DevicePointer::from_raw(memory.expose_provenance() as u64);
    // SAFETY: `square` changes three numbers, which the runtime has allocated and copied.
    unsafe { square.launch(&stream, LaunchConfig::for_elements(3), (pointer, 3)) }?;
    stream.synchronize()?;
    // SAFETY: both sides have this many bytes.
    checked("cudaMemcpy", unsafe {
        memcpy(numbers.as_mut_ptr().cast(), memory, bytes, TO_HOST)
    })?;
    // SAFETY: the memory is live and not used any more.
    checked("cudaFree", unsafe { free(memory) })?;
    assert_eq!(numbers, [1.0, 4.0, 9.0]);
    println!("memory of the runtime API holds {numbers:?}");
    Ok(())
}

fn checked(function: &str, code: c_int) -> device::Outcome {
    if code == 0 {
        Ok(())
    } else {
        Err(format!("{function} returned {code}").into())
    }
}
