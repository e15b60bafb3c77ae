//! The kernels of this package, on the simulator with all checks.
#![cfg(not(miri))]

mod mutants;
mod small_numbers;
