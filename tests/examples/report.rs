//! Loads this machine's driver, runs a kernel on its first device and prints the results: tests
//! start it with different settings of its environment.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this program's output is what the tests read"
)]

use std::error::Error;
use std::process::ExitCode;

use curium_driver::{Context, Driver, LaunchConfig, Library, Module, Result};
use curium_memory::DeviceBuffer;
use curium_nccl::{Communicator, Nccl, Operation, Reduction};
use curium_tests::kernels;

fn main() -> ExitCode {
    match report() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn report() -> Result<(), Box<dyn Error>> {
    let driver = Driver::load()?;
    println!("driver: CUDA {}", driver.version());
    for function in driver.api().absent() {
        println!("missing: {}", driver.missing(function));
    }
    let device = driver.device(0)?;
    println!("device: {}", device.name()?);
    match std::env::args().nth(1).as_deref() {
        Some("fault") => println!("fault: {}", fault(&driver)?),
        Some("leak") => leak(&driver)?,
        Some("ranks") => println!("ranks: {:?}", reduce_over_ranks(&driver)?),
        _ => {}
    }
    println!("saxpy: {:?}", saxpy(&driver)?);
    Ok(())
}

/// Reduces the number of each rank, one for each device, and returns the results of all ranks.
fn reduce_over_ranks(driver: &Driver) -> Result<Vec<f32>, Box<dyn Error>> {
    let nccl = Nccl::load()?;
    let devices = 0..driver.device_count()?;
    let contexts = devices
        .map(|index| driver.device(index)?.primary_context())
        .collect::<Result<Vec<_>>>()?;
    let streams = contexts
        .iter()
        .map(Context::stream)
        .collect::<Result<Vec<_>>>()?;
    let numbers = streams.iter().zip(1_u8..);
    let numbers =
        numbers.map(|(stream, number)| DeviceBuffer::from_slice(stream, &[f32::from(number)]));
    let mut numbers = numbers.collect::<Result<Vec<_>>>()?;
    let mut ranks = Communicator::all(&nccl, &contexts)?;
    nccl.group(|group| {
        ranks
            .iter_mut()
            .zip(&streams)
            .zip(&mut numbers)
            .try_for_each(|((rank, stream), number)| {
                group.enqueue(
                    rank,
                    stream,
                    Operation::all_reduce_in_place(number, Reduction::Sum),
                )
            })
    })?;
    Ok(numbers
        .iter()
        .map(|number| Ok(number.to_vec()?[0]))
        .collect::<Result<Vec<_>>>()?)
}

/// Leaks a buffer of 300 bytes.
#[inline(never)]
fn leak(driver: &Driver) -> Result<()> {
    let stream = driver.device(0)?.primary_context()?.stream()?;
    std::mem::forget(DeviceBuffer::<u8>::zeroed(&stream, 300)?);
    Ok(())
}

/// Launches a kernel that writes past the end of its buffer, and returns the content of the buffer.
fn fault(driver: &Driver) -> Result<u32> {
    let stream = driver.device(0)?.primary_context()?.stream()?;
    let write_at =
        Library::from_ptx(driver, kernels::FAULTS)?.kernel::<(&mut [u32], u64, u32)>("write_at")?;
    let mut buffer = DeviceBuffer::from_slice(&stream, &[5_u32])?;
    // SAFETY: the simulator detects every out-of-bounds write, and on hardware no memory of this
    // program lies at this distance.
    unsafe { write_at.launch(&stream, LaunchConfig::new(1, 1), (&mut buffer, 1 << 42, 1)) }?;
    Ok(buffer.to_vec()?[0])
}

/// Computes `2 × [1, 2, 3] + [10, 20, 30]` with a kernel of a library, or of a module if the driver
/// does not support libraries.
fn saxpy(driver: &Driver) -> Result<Vec<f32>> {
    let stream = driver.device(0)?.primary_context()?.stream()?;
    let saxpy = match Library::from_ptx(driver, kernels::SAXPY) {
        Ok(library) => library.kernel::<(f32, &[f32], &mut [f32], u32)>("saxpy")?,
        Err(error) if error.code().is_none() => {
            Module::from_ptx(stream.context(), kernels::SAXPY)?.kernel("saxpy")?
        }
        Err(error) => return Err(error),
    };
    let x = DeviceBuffer::from_slice(&stream, &[1.0, 2.0, 3.0])?;
    let mut y = DeviceBuffer::from_slice(&stream, &[10.0, 20.0, 30.0])?;
    // SAFETY: `saxpy` reads x, writes y, and guards its index with the length of both.
    unsafe { saxpy.launch(&stream, LaunchConfig::for_elements(3), (2.0, &x, &mut y, 3)) }?;
    y.to_vec()
}
