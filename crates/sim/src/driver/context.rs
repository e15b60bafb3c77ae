//! Contexts.

pub(crate) mod create;
pub(crate) mod limits;
pub(crate) mod primary;
pub(crate) mod stack;

use curium_sys::CUresult;

use crate::context::Context;
use crate::driver::Driver;
use crate::driver::locked::Locked;
use crate::handle::Id;
use crate::result::Result;

impl Driver {
    /// Returns the current context's handle, even if the context is not valid any more.
    pub(crate) fn current(&self) -> Result<Id<Context>> {
        self.top().ok_or(CUresult::CUDA_ERROR_INVALID_CONTEXT)
    }

    /// Returns the locked state with the current context, which must be valid.
    pub(crate) fn enter_current(&self) -> Result<(Locked<'_>, Id<Context>)> {
        let current = self.current()?;
        let state = self.lock();
        state.valid_context(current)?;
        Ok((state, current))
    }

    /// Checks that the current context is valid.
    pub(crate) fn require_current(&self) -> Result {
        self.enter_current().map(|_| ())
    }
}
