//! cuFFT: on the simulator with the library for simulated devices, and with
//! `CURIUM_TEST_DRIVER=cuda` with this machine's.
#![cfg(not(miri))]

mod capture;
mod handle;
mod hostile;
mod random;
mod reference;
mod shapes;

use curium_driver::Stream;
use curium_fft::{CuFft, Plan, Shape, Transform};
use curium_tests::uses_cuda;

fn cufft() -> CuFft {
    if uses_cuda() {
        CuFft::load().expect("CURIUM_TEST_DRIVER=cuda needs cuFFT")
    } else {
        curium_sim_libraries::cufft()
    }
}

fn plan<I: Transform<O>, O>(stream: &Stream, shape: &Shape) -> Plan<I, O> {
    Plan::new(&cufft(), stream, shape).expect("the shape is possible")
}
