//! cuBLAS: on the simulator with the library for simulated devices, and with
//! `CURIUM_TEST_DRIVER=cuda` with this machine's.
#![cfg(not(miri))]

mod alignment;
mod batched;
mod capture;
mod coverage;
mod handle;
mod hostile;
mod interop;
mod library_operation;
mod mixed;
mod operations;
mod random;
mod reference;
mod wide;

use curium_blas::{Blas, CuBlas};
use curium_driver::Stream;
use curium_tests::{TestDriver, uses_cuda};

fn cublas() -> CuBlas {
    if uses_cuda() {
        CuBlas::load().expect("CURIUM_TEST_DRIVER=cuda needs cuBLAS")
    } else {
        curium_sim_libraries::cublas()
    }
}

fn blas_on(stream: &Stream) -> Blas {
    let mut blas = Blas::new(&cublas(), stream).expect("failed to create a handle");
    // Smaller than the default, which each test would fill.
    blas.set_workspace(1 << 16)
        .expect("failed to set the workspace");
    blas
}

fn blas(test: &TestDriver) -> Blas {
    blas_on(&test.stream())
}
