//! Measures the host cost of queued calls of cuBLAS, cuBLASLt, cuFFT and cuRAND, and the time of
//! matrix products on the device, beside calls of C's functions with the same handles, memory and
//! stream in the same run.
//!
//! Options: `--only host` or `--only products`; `--device gpu` or `--device sim`, by default that
//! of the tests (`CURIUM_TEST_DRIVER=cuda` for the GPU). On the simulator, everything runs a few
//! times with small matrices: this checks that everything works.
//!
//! In each round, all forms are measured one after the other, in changing order, and their ratios
//! are taken. The median of the ratios is printed with its standard error, which is derived from
//! the quartiles.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

mod c;
mod host;
mod matrices;
mod products;
mod rounds;

use std::error::Error;
use std::fmt::Debug;

use curium_blas::CuBlas;
use curium_blas::lt::CuBlasLt;
use curium_driver::{Context, Driver, Stream};
use curium_fft::CuFft;
use curium_rand::CuRand;
use curium_sim::{Config, Simulator};
use curium_tests::uses_cuda;

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// The device, and the libraries that this machine has.
struct Machine {
    context: Context,
    stream: Stream,
    is_simulated: bool,
    blas: Option<CuBlas>,
    lt: Option<CuBlasLt>,
    fft: Option<CuFft>,
    rand: Option<CuRand>,
}

fn main() -> Result {
    let device = option("--device");
    let only = option("--only");
    let is_simulated = match device.as_deref() {
        Some("gpu") => false,
        Some("sim") => true,
        None => !uses_cuda(),
        Some(other) => return Err(format!("--device {other}: it may be gpu or sim").into()),
    };
    let wants_host = only.as_deref().is_none_or(|only| only == "host");
    let wants_products = only.as_deref().is_none_or(|only| only == "products");
    if !wants_host && !wants_products {
        return Err("--only may be host or products".into());
    }
    let machine = if is_simulated {
        Machine::simulated()
    } else {
        Machine::real()
    }?;
    // The C functions need a current context, and Curium's then switch none.
    machine.context.set_current()?;
    println!("{}", machine.context.device().name()?);
    if wants_host {
        host::run(&machine)?;
    }
    if wants_products {
        products::run(&machine)?;
    }
    Ok(())
}

impl Machine {
    fn real() -> Result<Self> {
        let context = Driver::load()?.device(0)?.primary_context()?;
        Ok(Self {
            stream: context.stream()?,
            context,
            is_simulated: false,
            blas: found(CuBlas::load()),
            lt: found(CuBlasLt::load()),
            fft: found(CuFft::load()),
            rand: found(CuRand::load()),
        })
    }

    fn simulated() -> Result<Self> {
        let context = Simulator::new(Config::new())?
            .driver::<Driver>()?
            .device(0)?
            .primary_context()?;
        Ok(Self {
            stream: context.stream()?,
            context,
            is_simulated: true,
            blas: Some(curium_sim_libraries::cublas()),
            lt: Some(curium_sim_libraries::cublaslt()),
            fft: Some(curium_sim_libraries::cufft()),
            rand: Some(curium_sim_libraries::curand()),
        })
    }
}

/// Prints the library's version, or why it is left out.
fn found<L: Debug, E: Error>(library: std::result::Result<L, E>) -> Option<L> {
    match library {
        Ok(library) => {
            println!("{library:?}");
            Some(library)
        }
        Err(error) => {
            println!("left out: {error}");
            None
        }
    }
}

/// Returns the word after `name` on the command line.
fn option(name: &str) -> Option<String> {
    std::env::args()
        .skip_while(|argument| argument != name)
        .nth(1)
}
