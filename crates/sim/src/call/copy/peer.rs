//! Copies between contexts.

use curium_sys::{CUcontext, CUctx_st, CUdeviceptr, CUstream_st};

use crate::argument::Pointer;
use crate::call::Call;
use crate::call::copy::{CopyOperands, Wait};
use crate::driver::copy::legacy;
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuMemcpyPeer(
        &self,
        to: CUdeviceptr,
        to_context: Pointer<CUctx_st>,
        from: CUdeviceptr,
        from_context: Pointer<CUctx_st>,
        size: usize,
    ) -> Result {
        self.require_current()?;
        self.check_live_contexts(to_context.as_ptr(), from_context.as_ptr())?;
        let operands = CopyOperands {
            to: self.device_operand(to, size)?,
            from: self.device_operand(from, size)?,
        };
        self.transfer_between_contexts(legacy(), operands, size, Wait::UnlessOnDevice)
    }

    /// Copies between contexts. Without peer access the copy is staged through the host.
    pub(crate) fn cuMemcpyPeerAsync(
        &self,
        to: CUdeviceptr,
        to_context: Pointer<CUctx_st>,
        from: CUdeviceptr,
        from_context: Pointer<CUctx_st>,
        size: usize,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        // As on hardware, such a copy cannot be a node.
        self.lock().uncaptured_stream(stream)?;
        self.check_live_contexts(to_context.as_ptr(), from_context.as_ptr())?;
        let operands = CopyOperands {
            to: self.device_operand(to, size)?,
            from: self.device_operand(from, size)?,
        };
        self.transfer_between_contexts(stream, operands, size, Wait::Never)
    }
}

impl Call<'_> {
    /// Checks that both contexts of a copy exist; null stands for the current context.
    pub(crate) fn check_live_contexts(&self, to: CUcontext, from: CUcontext) -> Result {
        let state = self.lock();
        for context in [to, from] {
            // SAFETY: a context is a handle, which is only compared.
            let context = unsafe { Pointer::from_raw(context) };
            state
                .contexts
                .valid_context(self.handle_or_current(context)?)?;
        }
        Ok(())
    }
}
