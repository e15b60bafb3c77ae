//! cuRAND: on the simulator with the library for simulated devices, and with
//! `CURIUM_TEST_DRIVER=cuda` with this machine's.
#![cfg(not(miri))]

mod capture;
mod distributions;
mod handle;
mod hostile;
mod sequences;

use curium_driver::Stream;
use curium_rand::{CuRand, Generator, PseudoRandom, QuasiRandom};
use curium_tests::{TestResult, uses_cuda};

fn curand() -> CuRand {
    if uses_cuda() {
        CuRand::load().expect("CURIUM_TEST_DRIVER=cuda needs cuRAND")
    } else {
        curium_sim_libraries::curand()
    }
}

fn seeded<A: PseudoRandom>(stream: &Stream, seed: u64) -> TestResult<Generator<A>> {
    Ok(Generator::seeded(&curand(), stream, seed)?)
}

fn with_dimensions<A: QuasiRandom>(stream: &Stream, dimensions: u32) -> TestResult<Generator<A>> {
    Ok(Generator::with_dimensions(&curand(), stream, dimensions)?)
}
