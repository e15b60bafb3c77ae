//! Primary contexts: one per device, retained and released.

use crate::context::Context;
use crate::driver::context::{Contexts, MAP_HOST};
use crate::handle::Id;

impl Contexts {
    /// Returns the active primary context of a device, with its retain count.
    pub(crate) fn primary_context(&self, device: usize) -> Option<(Id<Context>, u32)> {
        let id = self.primary_handle(device)?;
        self.contexts
            .get(id)
            .filter(|context| context.is_active())
            .map(|context| (id, context.retained()))
    }

    /// Returns the handle of the primary context of a device, if it was ever retained.
    pub(crate) fn primary_handle(&self, device: usize) -> Option<Id<Context>> {
        self.devices.get(device)?.primary
    }

    /// Returns the flags for the next activation of the primary context of a device.
    pub(crate) fn primary_flags(&self, device: usize) -> u32 {
        self.devices
            .get(device)
            .map_or(0, |device| device.primary_flags)
    }

    /// Sets the flags of the primary context of a device, also for its next activation.
    pub(crate) fn set_primary_flags(&mut self, device: usize, flags: u32) {
        if let Some(device) = self.devices.get_mut(device) {
            device.primary_flags = flags;
        }
        if let Some((id, _)) = self.primary_context(device)
            && let Some(context) = self.contexts.get_mut(id)
        {
            context.set_flags(flags | MAP_HOST);
        }
    }

    /// Retains the primary context of a device, which always has the same handle.
    pub(crate) fn retain_primary(&mut self, device: usize) -> Id<Context> {
        let flags = self.primary_flags(device) | MAP_HOST;
        let number = self.numbers.next();
        let Some(id) = self.primary_handle(device) else {
            let id = self.insert_context(Context::new_primary(device, flags, number));
            if let Some(device) = self.devices.get_mut(device) {
                device.primary = Some(id);
            }
            return id;
        };
        if let Some(context) = self.contexts.get_mut(id) {
            if context.is_active() {
                context.retain();
            } else {
                *context = Context::new_primary(device, flags, number);
                self.create_legacy_stream(id);
                self.contexts.renew(id);
            }
        }
        id
    }

    /// Ends all retentions of a primary context but some. Without any it is not active.
    pub(crate) fn set_retained(&mut self, id: Id<Context>, retained: u32) {
        if let Some(context) = self.contexts.get_mut(id) {
            context.set_retained(retained);
        }
    }
}
