//! What opening the driver costs on top of C, each measured in fresh processes, in turn.
//!
//! C's twin opens the library and looks up `cuInit` alone; Curium opens it, resolves every symbol and asks for the version. `cuInit`
//! itself is the same call for both and varies by more than all of that, so it is measured apart; what `Driver` adds around it is
//! the time of making one from a driver that is initialised already.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::error::Error;
use std::process::Command;
use std::time::{Duration, Instant};

use curium_driver::{CudaVersion, Driver, sys};

/// Which of the two a process measures.
const ROLE: &str = "CURIUM_BENCH_OPEN";
const ROUNDS: usize = 9;

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::var(ROLE).as_deref() {
        Ok("c") => print(open_as_c()?),
        Ok("curium") => print(open_as_curium()?),
        _ => compare()?,
    }
    Ok(())
}

/// What one process measures.
#[derive(Clone, Copy)]
struct Opening {
    /// From nothing to a library whose functions can be called.
    open: Duration,
    /// `cuInit`.
    init: Duration,
    /// What is done around `cuInit`.
    around: Duration,
}

/// Runs both in turn and prints the medians, then what the driver lacks.
fn compare() -> Result<(), Box<dyn Error>> {
    let (mut c, mut curium) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        c.push(measure("c")?);
        curium.push(measure("curium")?);
    }
    let of = |openings: &[Opening], part: fn(&Opening) -> Duration| {
        median(&mut openings.iter().map(part).collect::<Vec<_>>())
    };
    let (c_open, open) = (of(&c, |c| c.open), of(&curium, |curium| curium.open));
    let around = of(&curium, |curium| curium.around);
    println!("cuInit:                    {:>12.3?}", of(&c, |c| c.init));
    println!("open, C:                   {c_open:>12.3?}");
    println!("open, Curium:              {open:>12.3?}");
    println!("around cuInit, Curium:     {around:>12.3?}");
    println!("on top of C and of cuInit: {:>12.3?}", (open + around).saturating_sub(c_open));
    println!("all symbols, resolved:     {:>12.3?}", resolve()?);
    print_absent(&Driver::load()?);
    Ok(())
}

/// One process that opens the driver as `role` says.
fn measure(role: &str) -> Result<Opening, Box<dyn Error>> {
    let output = Command::new(std::env::current_exe()?).env(ROLE, role).output()?;
    let text = String::from_utf8(output.stdout)?;
    let figures: Vec<_> = text.split_whitespace().filter_map(|figure| figure.parse().ok()).collect();
    let &[open, init, around] = figures.as_slice() else {
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("no figures for {role}: {text}{errors}").into());
    };
    let [open, init, around] = [open, init, around].map(Duration::from_nanos);
    Ok(Opening { open, init, around })
}

fn open_as_c() -> Result<Opening, Box<dyn Error>> {
    type Init = unsafe extern "C" fn(u32) -> sys::CUresult;
    let name = std::env::var_os("CURIUM_DRIVER_PATH").unwrap_or_else(|| "libcuda.so.1".into());
    let begin = Instant::now();
    // SAFETY: this is the name of the CUDA driver, whose initialisers may run.
    let library = unsafe { libloading::Library::new(name) }?;
    // SAFETY: `cuInit` has this signature in every CUDA driver.
    let init = unsafe { library.get::<Init>(b"cuInit\0") }?;
    let open = begin.elapsed();
    // SAFETY: 0 is the only valid argument.
    let result = unsafe { init(0) };
    let init = begin.elapsed() - open;
    std::mem::forget(library);
    if result != sys::CUresult::CUDA_SUCCESS {
        return Err(format!("cuInit returned {}", result.0).into());
    }
    Ok(Opening { open, init, around: Duration::ZERO })
}

fn open_as_curium() -> Result<Opening, Box<dyn Error>> {
    let begin = Instant::now();
    let api = sys::Api::load()?;
    let open = begin.elapsed();
    // SAFETY: these are the functions of this machine's driver, which stays loaded.
    unsafe { Driver::from_api(api.clone()) }?;
    let init = begin.elapsed() - open;
    let again = Instant::now();
    // SAFETY: as above.
    unsafe { Driver::from_api(api) }?;
    Ok(Opening { open, init, around: again.elapsed() })
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

fn print(Opening { open, init, around }: Opening) {
    println!("{} {} {}", open.as_nanos(), init.as_nanos(), around.as_nanos());
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}
