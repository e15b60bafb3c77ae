//! Contexts.

pub(crate) mod primary;
pub(crate) mod stack;

use curium_sys::CUresult;

use crate::context::Context;
use crate::driver::Driver;
use crate::handle::Id;
use crate::result::Result;

/// `CU_CTX_MAP_HOST`, which every context reports except those of `cuCtxCreate`.
pub(crate) const MAP_HOST: u32 = 8;

/// The maximum stack size of a thread, and the maximum local memory of a kernel; hardware refuses
/// larger values.
pub(crate) const MAX_STACK: usize = (512 << 10) - 1;

impl Driver {
    /// Returns the current context's handle, even if the context is not valid any more.
    pub(crate) fn current(&self) -> Result<Id<Context>> {
        self.thread()
            .top()
            .ok_or(CUresult::CUDA_ERROR_INVALID_CONTEXT)
    }
}
