//! Functions of the host that run in stream order.

use std::ffi::c_void;

use curium_sys::{CUhostFn, CUhostTaskSyncMode, CUresult, CUstream_st, CUstreamCallback};

use crate::argument::Pointer;
use crate::call::Call;
use crate::driver::schedule::Work;
use crate::host_function::{Callee, HostFunction};
use crate::object::graph::content::Content;
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuLaunchHostFunc(
        &self,
        stream: Pointer<CUstream_st>,
        function: CUhostFn,
        data: Pointer<c_void>,
    ) -> Result {
        let function = HostFunction::new(function, data.as_ptr())?;
        let mut state = self.lock();
        let stream = state.working_stream(stream)?;
        state.enqueue(stream, Content::Host(function))
    }

    /// Accepts the mode, which affects only latency: the workers wait as before.
    pub(crate) fn cuLaunchHostFunc_v2(
        &self,
        stream: Pointer<CUstream_st>,
        function: CUhostFn,
        data: Pointer<c_void>,
        mode: u32,
    ) -> Result {
        if mode > CUhostTaskSyncMode::CU_HOST_TASK_SPINWAIT.0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        self.cuLaunchHostFunc(stream, function, data)
    }

    pub(crate) fn cuStreamAddCallback(
        &self,
        stream: Pointer<CUstream_st>,
        callback: CUstreamCallback,
        data: Pointer<c_void>,
        flags: u32,
    ) -> Result {
        let callback = callback
            .filter(|_| flags == 0)
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let callee = Callee::Callback(callback, stream.as_ptr());
        let mut state = self.lock();
        let stream = state.uncaptured_stream(stream)?;
        state.queue(
            stream,
            Work::Host(HostFunction {
                callee,
                data: data.as_ptr(),
            }),
        );
        Ok(())
    }
}
