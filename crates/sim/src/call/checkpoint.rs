//! Checkpoints of processes, which the simulator cannot make.

use std::ffi::c_int;
use std::path::Path;

use curium_sys::{CUprocessState, CUresult};

use crate::argument::Pointer;
use crate::call::Call;
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    /// Returns the state of a process. This one is running if the driver is initialized, since it
    /// cannot be suspended. The simulators of other processes are not visible.
    pub(crate) fn cuCheckpointProcessGetState(
        &self,
        process: c_int,
        state: Pointer<CUprocessState>,
    ) -> Result {
        if state.is_null() {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        if u32::try_from(process) == Ok(std::process::id()) {
            return if self.is_initialized() {
                state.write(CUprocessState::CU_PROCESS_STATE_RUNNING)
            } else {
                Err(CUresult::CUDA_ERROR_NOT_INITIALIZED)
            };
        }
        Err(other_process(process))
    }

    /// Fails: no process of the simulator has a thread that restores it.
    pub(crate) fn cuCheckpointProcessGetRestoreThreadId(
        &self,
        process: c_int,
        thread: Pointer<c_int>,
    ) -> Result {
        thread.required()?;
        if u32::try_from(process) == Ok(std::process::id()) {
            return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
        }
        Err(other_process(process))
    }
}

/// Returns the code for a process that is not this one: it does not exist, or has not initialized a
/// driver.
fn other_process(process: c_int) -> CUresult {
    if process > 0 && Path::new("/proc").join(process.to_string()).exists() {
        CUresult::CUDA_ERROR_NOT_INITIALIZED
    } else {
        CUresult::CUDA_ERROR_OPERATING_SYSTEM
    }
}
