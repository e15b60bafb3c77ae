//! Checkpoints of processes, which the simulator cannot make.

use std::ffi::c_int;

use curium_sys::{CUprocessState, CUresult};

use crate::argument::Pointer;
use crate::driver::{Driver, Result};

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Driver {
    /// Returns the state of a process. Since none can be suspended, every process is running.
    pub(crate) fn cuCheckpointProcessGetState(
        &self,
        process: c_int,
        state: Pointer<CUprocessState>,
    ) -> Result {
        if process <= 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        state.write(CUprocessState::CU_PROCESS_STATE_RUNNING)
    }
}
