//! What opening the driver costs on top of C: the library, its symbols, and `cuInit`, each measured in a fresh process.
//!
//! C's twin opens the library, looks up `cuInit` alone and calls it. The two are run in turn, since the first of them warms the
//! system's caches.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::error::Error;
use std::process::Command;
use std::time::{Duration, Instant};

use curium_driver::{CudaVersion, Driver, sys};

/// Which of the two a process measures.
const ROLE: &str = "CURIUM_BENCH_OPEN";
const ROUNDS: usize = 7;

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::var(ROLE).as_deref() {
        Ok("c") => print_nanoseconds(open_as_c()?),
        Ok("curium") => print_nanoseconds(open_as_curium()?),
        _ => compare()?,
    }
    Ok(())
}

/// Runs both in turn and prints the medians, then what the driver lacks.
fn compare() -> Result<(), Box<dyn Error>> {
    let (mut c, mut curium) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        c.push(measure("c")?);
        curium.push(measure("curium")?);
    }
    let (c, curium) = (median(&mut c), median(&mut curium));
    println!("open and cuInit, C:      {c:>12.3?}");
    println!("open and cuInit, Curium: {curium:>12.3?}");
    println!("symbols of one opened driver, resolved: {:.3?}", resolve()?);
    print_absent(&Driver::load()?);
    Ok(())
}

/// One process that opens the driver as `role` says.
fn measure(role: &str) -> Result<Duration, Box<dyn Error>> {
    let output = Command::new(std::env::current_exe()?).env(ROLE, role).output()?;
    let text = String::from_utf8(output.stdout)?;
    let nanoseconds = text.trim().parse().map_err(|_| {
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        format!("no figure for {role}: {text}{errors}")
    })?;
    Ok(Duration::from_nanos(nanoseconds))
}

fn open_as_c() -> Result<Duration, Box<dyn Error>> {
    type Init = unsafe extern "C" fn(u32) -> sys::CUresult;
    let name = std::env::var_os("CURIUM_DRIVER_PATH").unwrap_or_else(|| "libcuda.so.1".into());
    let begin = Instant::now();
    // SAFETY: this is the name of the CUDA driver, whose initialisers may run.
    let library = unsafe { libloading::Library::new(name) }?;
    // SAFETY: `cuInit` has this signature in every CUDA driver.
    let init = unsafe { library.get::<Init>(b"cuInit\0") }?;
    // SAFETY: 0 is the only valid argument.
    let result = unsafe { init(0) };
    let elapsed = begin.elapsed();
    std::mem::forget(library);
    if result == sys::CUresult::CUDA_SUCCESS {
        Ok(elapsed)
    } else {
        Err(format!("cuInit returned {}", result.0).into())
    }
}

fn open_as_curium() -> Result<Duration, Box<dyn Error>> {
    let begin = Instant::now();
    Driver::load()?;
    Ok(begin.elapsed())
}

/// The time to fill the table from a library that is open already.
fn resolve() -> Result<Duration, Box<dyn Error>> {
    sys::Api::load()?;
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        sys::Api::load()?;
        times.push(begin.elapsed());
    }
    Ok(median(&mut times))
}

fn print_absent(driver: &Driver) {
    let absent: Vec<_> = driver.api().absent().collect();
    println!("this driver is for CUDA {} and lacks {} functions:", driver.version(), absent.len());
    for function in absent {
        println!("  {}", driver.api().missing(function, Some(driver.version())));
    }
    println!("the bindings know CUDA up to {}", CudaVersion::NEWEST_KNOWN);
}

fn print_nanoseconds(elapsed: Duration) {
    println!("{}", elapsed.as_nanos());
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}
