//! Measures the cost of opening the driver compared to C, each in fresh processes, in turn.
//!
//! The C version opens the library, looks up three functions and queries the driver version. Curium
//! opens it, resolves every symbol and queries the version. Both query the version because the
//! first call of a driver includes its set-up. `cuInit` is the same call for both and varies by
//! more than all of that, so it is measured separately; the time that `Driver` adds around it is
//! the time of creating a `Driver` when the library is already initialized.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::error::Error;
use std::process::Command;
use std::time::{Duration, Instant};

use curium_driver::{CudaVersion, Driver, sys};
use curium_tests::Samples;

/// The role of a measuring process.
const ROLE: &str = "CURIUM_BENCH_OPEN";
/// The number of measurements of each, after a first one that brings the library into the page
/// cache.
const ROUNDS: usize = 24;

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::var(ROLE).as_deref() {
        Ok("c") => print(open_as_c()?),
        Ok("curium") => print(open_as_curium()?),
        _ => compare()?,
    }
    Ok(())
}

/// The times of one process.
#[derive(Clone, Copy)]
struct Opening {
    /// The time until the functions of the library can be called and its version is known.
    open: Duration,
    /// The part of `open` spent in the first call of the library.
    first_call: Duration,
    /// The time of `cuInit`.
    init: Duration,
    /// The time that `Driver` adds around `cuInit`.
    around: Duration,
}

impl Opening {
    /// Returns the total without `cuInit`, in nanoseconds.
    fn cost(&self) -> f64 {
        (self.open + self.around).as_nanos() as f64
    }
}

/// Runs both in turn and prints their times, then the functions that the driver lacks.
fn compare() -> Result<(), Box<dyn Error>> {
    measure("c")?;
    let rounds = (0..ROUNDS)
        .map(|_| Ok((measure("c")?, measure("curium")?)))
        .collect::<Result<Vec<_>, Box<dyn Error>>>()?;
    let of =
        |part: fn(&(Opening, Opening)) -> Duration| rounds.iter().map(part).collect::<Samples>();
    println!("{ROUNDS} pairs of processes: median [quartiles]");
    println!("cuInit:                    {}", of(|(c, _)| c.init));
    println!("open, C:                   {}", of(|(c, _)| c.open));
    println!("  the first call of it:    {}", of(|(c, _)| c.first_call));
    println!(
        "open, Curium:              {}",
        of(|(_, curium)| curium.open)
    );
    println!(
        "around cuInit, Curium:     {}",
        of(|(_, curium)| curium.around)
    );
    let on_top: Samples = rounds
        .iter()
        .map(|(c, curium)| curium.cost() - c.cost())
        .collect();
    println!("on top of C and of cuInit: {on_top}");
    println!("opened once more:          {}", open_again()?);
    print_absent(&Driver::load()?);
    Ok(())
}

/// Opens the driver in the given role and prints the times.
fn measure(role: &str) -> Result<Opening, Box<dyn Error>> {
    let output = Command::new(std::env::current_exe()?)
        .env(ROLE, role)
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    let figures: Vec<_> = text
        .split_whitespace()
        .filter_map(|figure| figure.parse().ok())
        .collect();
    let &[open, first_call, init, around] = figures.as_slice() else {
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("no figures for {role}: {text}{errors}").into());
    };
    let [open, first_call, init, around] =
        [open, first_call, init, around].map(Duration::from_nanos);
    Ok(Opening {
        open,
        first_call,
        init,
        around,
    })
}

fn open_as_c() -> Result<Opening, Box<dyn Error>> {
    type Init = unsafe extern "C" fn(u32) -> sys::CUresult;
    type Version = unsafe extern "C" fn(*mut i32) -> sys::CUresult;
    let name = std::env::var_os("CURIUM_DRIVER_PATH").unwrap_or_else(|| "libcuda.so.1".into());
    let begin = Instant::now();
    // SAFETY: this is the name of the CUDA driver, whose initializers may run.
    let library = unsafe { libloading::Library::new(name) }?;
    // SAFETY: `cuInit` has this signature in every CUDA driver.
    let init = unsafe { library.get::<Init>(b"cuInit\0") }?;
    // SAFETY: `cuDriverGetVersion` has this signature in every CUDA driver.
    let version = unsafe { library.get::<Version>(b"cuDriverGetVersion\0") }?;
    let mut number = 0;
    let call = Instant::now();
    // SAFETY: `number` is valid for writes.
    succeeded("cuDriverGetVersion", unsafe { version(&raw mut number) })?;
    let open = begin.elapsed();
    let first_call = call.elapsed();
    let call = Instant::now();
    // SAFETY: 0 is the only valid argument.
    succeeded("cuInit", unsafe { init(0) })?;
    let init = call.elapsed();
    std::mem::forget(library);
    Ok(Opening {
        open,
        first_call,
        init,
        around: Duration::ZERO,
    })
}

fn succeeded(function: &str, code: sys::CUresult) -> Result<(), Box<dyn Error>> {
    if code == sys::CUresult::CUDA_SUCCESS {
        Ok(())
    } else {
        Err(format!("{function} returned {}", code.0).into())
    }
}

fn open_as_curium() -> Result<Opening, Box<dyn Error>> {
    let begin = Instant::now();
    let api = sys::Api::load()?;
    let open = begin.elapsed();
    // SAFETY: these are the functions of this machine's driver, which stays loaded.
    unsafe { Driver::from_api(api.clone()) }?;
    let init = begin.elapsed() - open;
    let again = Instant::now();
    // SAFETY: these are the functions of this machine's driver, which stays loaded.
    unsafe { Driver::from_api(api) }?;
    Ok(Opening {
        open,
        first_call: Duration::ZERO,
        init,
        around: again.elapsed(),
    })
}

/// Measures the time to fill the function table from a library that is already open.
fn open_again() -> Result<Samples, Box<dyn Error>> {
    sys::Api::load()?;
    let times = (0..ROUNDS).map(|_| {
        let begin = Instant::now();
        sys::Api::load()?;
        Ok(begin.elapsed())
    });
    times.collect()
}

fn print_absent(driver: &Driver) {
    let absent: Vec<_> = driver.api().absent().collect();
    println!(
        "this driver is for CUDA {} and lacks {} functions:",
        driver.version(),
        absent.len()
    );
    for function in absent {
        println!(
            "  {}",
            driver.api().missing(function, Some(driver.version()))
        );
    }
    println!(
        "the bindings cover CUDA up to {}",
        CudaVersion::NEWEST_KNOWN
    );
}

fn print(
    Opening {
        open,
        first_call,
        init,
        around,
    }: Opening,
) {
    println!(
        "{} {} {} {}",
        open.as_nanos(),
        first_call.as_nanos(),
        init.as_nanos(),
        around.as_nanos()
    );
}
