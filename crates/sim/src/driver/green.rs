//! Green contexts: parts of a device within its primary context.
//!
//! A green context has its own streams. Memory, events, code and settings are those of the primary
//! context, which it retains: [`State::owning_context`].

use curium_sys::{CUgreenCtx_st, CUresult};

use crate::argument::Pointer;
use crate::context::Context;
use crate::driver::state::State;
use crate::handle::Id;
use crate::result::Result;

impl State {
    /// Returns the live green context of a handle.
    pub(crate) fn green(&self, raw: Pointer<CUgreenCtx_st>) -> Result<Id<Context>> {
        let id = Id::from_number(raw.address());
        let is_green = self.valid_context(id)?.green.is_some();
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
            Some(green) if green.green.is_some() => self
                .devices
                .get(green.device)
                .and_then(|device| device.primary)
                .unwrap_or(context),
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
            .filter(|(_, context)| context.green.is_some() && context.device == device);
        green.count() as u32
    }
}
