//! Contexts.

pub(crate) mod create;
pub(crate) mod limits;
pub(crate) mod primary;
pub(crate) mod stack;

use curium_sys::CUresult;

use crate::context::Context;
use crate::driver::Driver;
use crate::handle::Id;
use crate::result::Result;

impl Driver {
    /// Returns the current context's handle, even if the context is not valid any more.
    pub(crate) fn current(&self) -> Result<Id<Context>> {
        self.thread()
            .top()
            .ok_or(CUresult::CUDA_ERROR_INVALID_CONTEXT)
    }
}
