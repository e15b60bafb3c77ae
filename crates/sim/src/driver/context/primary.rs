//! Primary contexts: one per device, retained and released.

use crate::context::Context;
use crate::driver::context::MAP_HOST;
use crate::driver::state::State;
use crate::handle::Id;

impl State {
    /// Returns the active primary context of a device, with its retain count.
    pub(crate) fn primary(&self, device: usize) -> Option<(Id<Context>, u32)> {
        let id = self.devices[device].primary?;
        self.contexts
            .get(id)
            .filter(|context| context.is_active())
            .map(|context| (id, context.retained))
    }

    /// Retains the primary context of a device, which always has the same handle.
    pub(crate) fn retain_primary(&mut self, device: usize) -> Id<Context> {
        let flags = self.devices[device].primary_flags | MAP_HOST;
        let Some(id) = self.devices[device].primary else {
            let id = self.new_context(device, flags, true);
            self.devices[device].primary = Some(id);
            return id;
        };
        let number = self.next_number();
        if let Some(context) = self.contexts.get_mut(id) {
            if context.is_active() {
                context.retained += 1;
            } else {
                *context = Context::new(device, flags, true, number);
                self.create_default_streams(id);
                self.contexts.renew(id);
            }
        }
        id
    }
}
