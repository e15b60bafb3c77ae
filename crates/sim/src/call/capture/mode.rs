//! The capture mode of threads.

use curium_sys::{CUresult, CUstreamCaptureMode};

use crate::argument::Pointer;
use crate::call::Call;
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuThreadExchangeStreamCaptureMode(
        &self,
        mode: Pointer<CUstreamCaptureMode>,
    ) -> Result {
        let new = mode.read()?;
        if new.0 > CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED.0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let old = self.thread().capture_mode();
        self.thread().set_capture_mode(new);
        mode.write(old)
    }
}
