//! Green contexts: parts of a device within its primary context.
//!
//! A green context has its own streams. Memory, events, code and settings are those of the primary
//! context, which it retains: [`Contexts::owning_context`].

use curium_sys::{CUgreenCtx_st, CUresult};

use crate::argument::Pointer;
use crate::context::Context;
use crate::driver::context::Contexts;
use crate::handle::Id;
use crate::result::Result;

impl Contexts {
    /// Returns the live green context of a handle.
    pub(crate) fn green_context(&self, raw: Pointer<CUgreenCtx_st>) -> Result<Id<Context>> {
        let id = Id::from_number(raw.address());
        let is_green = self.valid_context(id)?.is_green();
        if is_green {
            Ok(id)
        } else {
            Err(CUresult::CUDA_ERROR_INVALID_CONTEXT)
        }
    }

    /// Returns the context that owns objects created in `context`: the primary one if it is green,
    /// else itself.
    pub(crate) fn owning_context(&self, context: Id<Context>) -> Id<Context> {
        match self.contexts.get(context) {
            Some(green) if green.is_green() => {
                self.primary_handle(green.device()).unwrap_or(context)
            }
            _ => context,
        }
    }

    /// Returns `true` if work of `context` is work of `outer`: the two are the same, or `context`
    /// is a green context of `outer`.
    pub(crate) fn is_within(&self, context: Id<Context>, outer: Id<Context>) -> bool {
        context == outer || self.owning_context(context) == outer
    }

    /// Returns the number of green contexts of a device.
    pub(crate) fn green_contexts(&self, device: usize) -> u32 {
        let green = self
            .contexts
            .iter()
            .filter(|(_, context)| context.is_green() && context.device() == device);
        green.count() as u32
    }
}
