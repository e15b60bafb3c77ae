//! The context stack of each thread.

use curium_sys::{CUcontext, CUctx_st, CUresult};

use crate::argument::Pointer;
use crate::call::Call;
use crate::context::Context;
use crate::handle::Id;
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuCtxGetCurrent(&self, context: Pointer<CUcontext>) -> Result {
        context.write(self.current_raw())
    }

    pub(crate) fn cuCtxSetCurrent(&self, context: Pointer<CUctx_st>) -> Result {
        if context.is_null() {
            self.thread().pop();
            return Ok(());
        }
        let id = Id::from(context);
        self.lock().contexts.live_context(id)?;
        self.thread().pop();
        self.thread().push(id);
        Ok(())
    }

    pub(crate) fn cuCtxPushCurrent_v2(&self, context: Pointer<CUctx_st>) -> Result {
        let id = Id::from(context.required()?);
        self.lock().contexts.live_context(id)?;
        self.thread().push(id);
        Ok(())
    }

    pub(crate) fn cuCtxPopCurrent_v2(&self, context: Pointer<CUcontext>) -> Result {
        let id = self
            .thread()
            .pop()
            .ok_or(CUresult::CUDA_ERROR_INVALID_CONTEXT)?;
        context.write_if_not_null(id.as_raw());
        Ok(())
    }
}

impl Call<'_> {
    /// Returns `true` if a context is in the calling thread's stack.
    pub(crate) fn is_stacked(&self, context: Id<Context>) -> bool {
        self.thread()
            .with_stack(|contexts| contexts.contains(&context))
            .unwrap_or_default()
    }
}
