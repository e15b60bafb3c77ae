//! Shared test support: the driver that a test runs on, and work whose progress a test controls.
//!
//! A contract test states a property of *every* driver. It runs on a simulator of its own, which
//! must end without a live handle and without an unsupported call; with `CURIUM_TEST_DRIVER=cuda`
//! it runs on this machine's driver instead.

#[cfg(doctest)]
mod book;
mod c_library;
mod called;
mod context_stack;
mod during;
#[cfg(target_os = "linux")]
mod fork;
mod function_table;
mod fused;
mod gate;
mod idle_driver;
pub mod kernels;
mod own_process;
mod peers;
mod resume_panic;
mod samples;
mod soak;
pub mod stream_work;
mod test_driver;
mod test_result;
#[cfg(target_os = "linux")]
mod two_processes;

pub use curium_test_macros::{driver_test, simulator_test};

pub use self::c_library::c_library;
pub use self::context_stack::{ContextStack, CreatedContext};
pub use self::during::{During, assert_reentrant};
#[cfg(target_os = "linux")]
pub use self::fork::in_fork;
pub use self::function_table::{address_of, copy_of};
pub use self::fused::Fused;
pub use self::gate::Gate;
pub use self::idle_driver::{assume_current, idle_driver, idle_driver_that_assumes_a_context};
#[cfg(unix)]
pub use self::own_process::beside_a_process_that_is_killed;
pub use self::own_process::{
    in_new_process, in_own_process, outcome_of_new_process, outcomes_of_processes, own_program,
    with_output_of_new_process,
};
pub use self::peers::on_peers;
pub use self::resume_panic::resume_panic;
pub use self::samples::Samples;
pub use self::soak::{Soak, Soaked};
pub use self::stream_work::begin;
pub use self::test_driver::{
    TestDriver, looks_for_races, on_driver, on_incomplete_simulator, on_simulator,
    shared_handle_types, uses_cuda,
};
pub use self::test_result::{TestError, TestOutcome, TestResult, skip};
#[cfg(target_os = "linux")]
pub use self::two_processes::{Peer, in_two_processes};
